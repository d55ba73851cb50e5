# SPDX-License-Identifier: Apache-2.0
"""Compute a point of xfp walk again, --lazy .95 --strict .96, from the surveys in a cache.

    walk_point.py MODEL CACHE

Prints bits per weight by class, and the mean error, as JSON.
"""
import json, math, re, sqlite3, struct, sys

LAZY, STRICT = .95, .96
FLOORS = {"lm_head": .9995, "embedding": .999, "routed_expert": LAZY}
WEIGHTS = {"lm_head": 4.5, "embedding": 3, "routed_expert": .7}

with open(sys.argv[1] + "/model.safetensors", "rb") as file:
    shapes = {name: t["shape"] for name, t in
              json.loads(file.read(struct.unpack("<Q", file.read(8))[0])).items() if name != "__metadata__"}


def class_of(unit):
    return ("routed_expert" if ".experts." in unit else "lm_head" if unit.startswith("lm_head")
            else "embedding" if "embed" in unit else "attention")


def worth(c, weights):
    return 8 * c["bytes"] / weights + math.log2(max(c["error"], 1e-30)) / 2


def choose(candidates, floor, weights):
    likely = floor + .01 * (1 - floor)
    smaller = [c for c in candidates if c["bytes"] < 2 * weights and c["cos_median"] >= 0]
    met = [c for c in smaller if c["cos_median"] >= likely]
    target = min(met, key=lambda c: (c["bytes"], -c["cos_median"])) if met else max(
        smaller, key=lambda c: c["cos_median"])
    least = min(target["cos_median"], likely)
    same = [c for c in smaller if [c[k] for k in ("mode", "group", "k")] == [target[k] for k in ("mode", "group", "k")]
            and c["mode"] != "fp8" and c["cos_median"] >= least]
    return min([target, *same], key=lambda c: worth(c, weights))


manifest = sqlite3.connect(sys.argv[2] + "/manifest.sqlite")
manifest.row_factory = sqlite3.Row
size, weight, error, total = {}, {}, 0, 0
for key, unit in manifest.execute("select key, unit from artifacts where kind = 'survey'").fetchall():
    pattern = re.compile(re.escape(unit).replace(r"\*", r"\d+"))
    weights = sum(math.prod(shape) for name, shape in shapes.items() if pattern.fullmatch(name))
    class_ = class_of(unit)
    chosen = choose(manifest.execute("select * from candidates where fit_key = ? order by number", [key]).fetchall(),
                    FLOORS.get(class_, STRICT), weights)
    size[class_] = size.get(class_, 0) + chosen["bytes"]
    weight[class_] = weight.get(class_, 0) + weights
    error += WEIGHTS.get(class_, 1) * chosen["error"]
    total += WEIGHTS.get(class_, 1)
print(json.dumps({"classes": {c: 8 * size[c] / weight[c] for c in size}, "error": error / total}))

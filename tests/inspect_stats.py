#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What `xfp inspect --stats` should say, by numpy: inspect_stats.py make FOLDER | check MODEL FILE

make writes a model with every kind of tensor that statistics of a distribution can get wrong. check reads the
safetensors file of MODEL, recomputes all statistics from their definitions in xfp-inspect(1), exactly or in long doubles
where that matters, and compares them with FILE, the output of --stats --json; standard input is that of --stats --csv.
"""
import csv
import json
import math
import os
import struct
import sys

import numpy as np

CONFIG = {"model_type": "llama", "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
          "num_key_value_heads": 4, "head_dim": 24}
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "i1"}
RELATIVE = 1e-11


def bf16(w):
    """Rounded to nearest, ties to even."""
    bits = np.asarray(w, "<f4").view("<u4").astype(np.uint64)
    rounded = (bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(w), 0x7FC0, rounded).astype("<u2")


def tensors():
    random = np.random.RandomState(7)  # its numbers do not change between versions of numpy
    layer = "model.layers.%d."
    # one of each dtype, with tails; a little more than three blocks of a sum
    for l, dtype in enumerate(("BF16", "F16", "F32")):
        w = random.standard_t(4, (2080, 96)).astype(np.float32) * .02
        yield layer % l + "self_attn.q_proj.weight", dtype, w
        yield layer % l + "self_attn.q_proj.bias", dtype, w[0] * 3
        yield layer % l + "input_layernorm.weight", dtype, 1 + w[1] / 10
    # sums of squares would lose the variance
    yield "far", "F32", (random.standard_normal(300007) * 1e-3 + 1000).astype(np.float32)
    yield "far.half", "BF16", (random.standard_normal(70000) * 2 + 300).astype(np.float32)
    yield "double", "F64", random.standard_normal(200001)
    yield "double.tiny", "F64", random.standard_normal(1000) * 1e-290
    yield "double.huge", "F64", random.standard_normal(1000) * 1e290
    yield "float.tiny", "F32", (random.standard_normal(1000) * 1e-40).astype(np.float32)
    yield "float.huge", "F32", (random.standard_normal(1000) * 1e37).astype(np.float32)
    for dtype in "F64", "F32", "F16", "BF16":
        yield "constant." + dtype, dtype, np.full(100001, .1, np.float32)
        yield "zero." + dtype, dtype, np.zeros(1000, np.float32)
        yield "one." + dtype, dtype, np.array(-2.5, np.float32)
        yield "two." + dtype, dtype, np.array([1, 3], np.float32)
        yield "empty." + dtype, dtype, np.zeros((0, 4), np.float32)
        w = random.standard_normal(70001).astype(np.float32)
        w[::1000] = np.nan
        w[5::2000] = np.inf
        w[7::3000] = -np.inf
        w[-1] = np.nan
        yield "mixed." + dtype, dtype, w
        yield "none." + dtype, dtype, np.array([np.nan, np.inf, np.nan], np.float32)
    yield "bytes", "I8", np.arange(10)


def make(folder):
    os.makedirs(folder)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, dtype, w in tensors():
        piece = bf16(w).tobytes() if dtype == "BF16" else np.asarray(w).astype(DTYPES[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(np.shape(w)), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    with open(folder + "/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(folder + "/config.json", "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)


def read(model):
    with open(model + "/model.safetensors", "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        w = np.frombuffer(raw[8 + size + begin:8 + size + end], DTYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":
            w = (w.astype("<u4") << 16).view("<f4")
        yield name, entry["dtype"], w.astype(np.longdouble)


def number(value):
    return None if value is None or not math.isfinite(value) else float(value)


def stats(w):
    finite = w[np.isfinite(w)]
    n = len(finite)
    said = {"finite": n, "nan": int(np.isnan(w).sum()), "infinite": int(np.isinf(w).sum()), "min": None, "max": None,
            "mean": None, "sigma": None, "kurtosis": None, "beyond_3_sigma": None, "beyond_4_sigma": None,
            "largest_in_sigma": None}
    if not n:
        return said
    mean = finite.sum() / n
    mean += (finite - mean).sum() / n
    d = finite - mean
    varied = finite.min() < finite.max()
    said.update(min=number(finite.min()), max=number(finite.max()), mean=number(mean if varied else finite[0]),
                beyond_3_sigma=0., beyond_4_sigma=0.)
    if n < 2:
        return said
    sigma = np.sqrt((d * d).sum() / (n - 1)) if varied else np.longdouble(0)
    said["sigma"] = number(sigma)
    if sigma:
        z = np.abs(d) / sigma
        said.update(kurtosis=number(n * (d**4).sum() / (d * d).sum()**2), beyond_3_sigma=float((z > 3).sum() / n),
                    beyond_4_sigma=float((z > 4).sum() / n), largest_in_sigma=number(z.max()))
    return said


def together(parts):
    """The statistics of a role, from those of its tensors."""
    some = [p for p in parts if p["finite"]]
    n = sum(p["finite"] for p in some)
    spread = [p for p in some if p["sigma"] is not None]
    tailed = [p for p in some if p["kurtosis"] is not None]

    def mean(what, of):
        weights = sum(p["finite"] for p in of)
        return math.fsum(p["finite"] * what(p) for p in of) / weights if weights else None

    # the square of 1e290 overflows a double
    sigma = float(np.sqrt(sum(p["finite"] * np.longdouble(p["sigma"])**2 for p in spread) / sum(
        p["finite"] for p in spread)))
    return {"finite": n, "nan": sum(p["nan"] for p in parts), "infinite": sum(p["infinite"] for p in parts),
            "min": min(p["min"] for p in some), "max": max(p["max"] for p in some),
            "mean": mean(lambda p: p["mean"], some), "sigma": sigma,
            "kurtosis": mean(lambda p: p["kurtosis"], tailed),
            "beyond_3_sigma": mean(lambda p: p["beyond_3_sigma"], some),
            "beyond_4_sigma": mean(lambda p: p["beyond_4_sigma"], some),
            "largest_in_sigma": max((p["largest_in_sigma"] for p in tailed), default=None)}


def compare(name, found, wanted):
    assert list(found) == list(wanted), (name, list(found))
    for key, value in wanted.items():
        got = found[key]
        exact = key in ("finite", "nan", "infinite")
        # a mean may be negligible compared with sigma
        slack = RELATIVE * (wanted["sigma"] or 0) if key == "mean" else 0
        good = got == value if value is None or got is None or exact else math.isclose(
            got, value, rel_tol=RELATIVE, abs_tol=slack)
        if not good:
            sys.exit(f"{name}: {key} is {got!r}, should be {value!r}")


def check_csv(tensors_said, roles_said):
    rows = list(csv.DictReader(sys.stdin))
    assert len(rows) == len(tensors_said) + len(roles_said), len(rows)
    for row, said in zip(rows, tensors_said + roles_said):
        if "name" in said:
            assert row["name"] == said["name"] and row["dtype"] == said["dtype"] and row["tensors"] == "1"
            assert row["shape"] == "x".join(map(str, said["shape"])) and row["file"] == said["file"], row
            assert int(row["stored_bytes"]) == said["stored_bytes"], row
        else:
            assert not row["name"] and int(row["tensors"]) == said["tensors"], row
        assert row["class"] == said["class"] and row["roles"] == ", ".join(said["roles"]), row
        assert int(row["weights"]) == said["weights"], row
        for key in stats(np.zeros(0)):
            value = said["stats"][key] if said["stats"] else None
            assert row[key] == "" if value is None else math.isclose(float(row[key]), value, rel_tol=1e-14), (row, key)


def check(model, file):
    with open(file, encoding="utf-8") as stream:
        said = json.load(stream)
    found = {t["name"]: t for t in said["tensors"]}
    wanted = {}
    groups = {}
    for name, dtype, w in read(model):
        if dtype not in DTYPES or dtype == "I8":
            assert found[name]["stats"] is None, name
            continue
        wanted[name] = stats(w)
        compare(name, found[name]["stats"], wanted[name])
        groups.setdefault((found[name]["class"], tuple(found[name]["roles"])), []).append(name)
    roles = {(r["class"], tuple(r["roles"])): r for r in said["by_role"]}
    assert len(roles) == len(said["by_role"]) and set(roles) == set(groups), (list(roles), list(groups))
    for key, names in groups.items():
        compare(key, roles[key]["stats"], together([wanted[name] for name in names]))
        assert roles[key]["tensors"] == len(names) and roles[key]["weights"] == sum(found[n]["weights"] for n in names)
    check_csv(said["tensors"], said["by_role"])
    print(len(wanted), "tensors,", len(roles), "roles")


if sys.argv[1:2] not in (["make"], ["check"]) or len(sys.argv) != (3 if sys.argv[1] == "make" else 4):
    sys.exit(__doc__)
if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    check(sys.argv[2], sys.argv[3])

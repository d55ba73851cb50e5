# SPDX-License-Identifier: Apache-2.0
"""Compute the bits that samples of experts would choose, from bundles of one number of bits each.

    sample_bits.py skew MODEL          give some experts of the model heavier tails, as a sample would miss or hit them
    sample_bits.py choose MODEL FLOOR BITS=BUNDLE=UNPACKED ...

`choose` prints, for each role of stacks of experts, how many stacks 4 and 16 experts would store in the same bytes, in
fewer and in more than all experts do. FLOOR is a cosine, or "between": halfway between the medians of all experts and
of 16 of them, for 3 bits in the first stack. The floor is printed, too. Models have one safetensors file of f32.
"""
import json, re, struct, subprocess, sys

import numpy

STACK = re.compile(r"model\.layers\.(\d+)\.mlp\.experts\.(\d+)\.(\w+)_proj\.weight")


def read(folder):
    with open(folder + "/model.safetensors", "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
            for name, t in header.items()}


def skew(model):
    """Experts 2, 7, 12 ... are those that a sample of 4 of 20 has: the middle ones of equal parts."""
    with open(model + "/model.safetensors", "r+b") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        for name, tensor in header.items():
            match = STACK.fullmatch(name)
            if not match or (int(match[2]) % 5 == 2) != (int(match[1]) % 2 == 0):
                continue
            file.seek(8 + size + tensor["data_offsets"][0])
            weights = numpy.frombuffer(file.read(tensor["data_offsets"][1] - tensor["data_offsets"][0]), "<f4")
            file.seek(8 + size + tensor["data_offsets"][0])
            file.write((weights * numpy.abs(weights) ** .7).astype("<f4").tobytes())


def cosines(source, decoded):
    """[experts, rows] of each stack, by layer and role."""
    found = {}
    for name, w in source.items():
        match = STACK.fullmatch(name)
        if match:
            a, b = w.astype(float), decoded[name].astype(float)
            cosine = (a * b).sum(1) / numpy.sqrt((a * a).sum(1) * (b * b).sum(1))
            found.setdefault((int(match[1]), match[3]), {})[int(match[2])] = cosine
    return {stack: numpy.array([rows for _, rows in sorted(experts.items())]) for stack, experts in found.items()}


def median(rows):
    return numpy.sort(rows.ravel())[(rows.size - 1) // 2]


def sampled(rows, count):
    """`count` experts, each in the middle of one of as many equal parts."""
    return rows[[(2 * i + 1) * len(rows) // (2 * count) for i in range(count)]]


def choose(model, floor, words):
    source, candidates = read(model), {}
    for word in words:
        bits, bundle, unpacked = word.split("=")
        info = json.loads(subprocess.run(["xfp", "info", "--json", bundle], capture_output=True, check=True).stdout)
        size = {(int(re.search(r"layers\.(\d+)", u["name"])[1]), u["role"]): u["bytes"]
                for u in info["units"] if u["experts"] > 1}
        for stack, rows in cosines(source, read(unpacked)).items():
            candidates.setdefault(stack, {})[int(bits)] = (size[stack], rows)
    if floor == "between":
        rows = candidates[min(candidates)][3][1]
        floor = "%.9f" % ((median(rows) + median(sampled(rows, 16))) / 2)
    result = {"floor": floor, "roles": {}}
    for (_, role), by_bits in sorted(candidates.items()):
        of = result["roles"].setdefault(role, {"by_%d" % n: {"same": 0, "too_few": 0, "too_many": 0} for n in (4, 16)})
        need = [[size for size, rows in by_bits.values() if median(pick(rows)) >= float(floor)]
                for pick in (lambda r: r, lambda r: sampled(r, 4), lambda r: sampled(r, 16))]
        least = [min(sizes, default=1e99) for sizes in need]
        for key, some in zip(("by_4", "by_16"), least[1:]):
            of[key]["same" if some == least[0] else "too_few" if some < least[0] else "too_many"] += 1
    print(json.dumps(result))


skew(sys.argv[2]) if sys.argv[1] == "skew" else choose(sys.argv[2], sys.argv[3], sys.argv[4:])

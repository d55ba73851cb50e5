#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every kernel of kernels/cuda/ in the emulator, for a small table of cases, compared with numpy:
kernels.py COUNTS FILE.ptxARCH ..., prints TAP. Counts of executed instructions, by launch, go to COUNTS, which
executed.py reads.

A case prepares vectors and multiplies, as the host would, twice: with blocks in order and in reverse order; results
must have the same bits. If tiles are split into parts, it multiplies once more with the workspace left by the first
time. Architectures with identical code are run once. Code for 9.0 and later runs as the host launches it there: each
launch may begin before the previous one has ended.
"""
import json
import os
import re
import struct
import sys

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP numpy is not installed")
    sys.exit(0)

import ptx
from image import (COLUMNS, PARTS_OFFSET, EACH_VECTORS, M1_PLANES, M4_PLANES, PART_BYTES, TILE_ROWS, TYPES, WIDE_PLANES,
                   WIDE_ROWS, Weights, bfloat, chunk_columns, device_order, from_bfloat, lane_words, pack, padded)


def stored(values, kind):
    return bfloat(values) if kind == "bf16" else values.astype({"f32": np.float32, "f16": np.float16}[kind])


def number(array, kind):
    return (from_bfloat(array) if kind == "bf16" else array).astype(np.float32)


def waits(modules):
    """Whether kernels wait for the previous launch (griddepcontrol): those for 9.0 and later do."""
    return any(instruction.kind == "griddepcontrol" for module in modules for function in module.functions.values()
               for instruction in function.code)


class Run:
    """Runs launches in sequence in its own memory. `launches` collects the counts of a case's launches with blocks in
    order: (kernel, size, number of weights or, if vectors are prepared, of numbers, counts)."""
    launches = []

    def __init__(self, modules, order):
        self.modules, self.order, self.memory = modules, order, ptx.Memory()
        self.early, self.launched = waits(modules), False

    def launch(self, name, grid, args, shared=0, size="", numbers=1):
        module = next(module for module in self.modules if name in module.functions)
        threads = 1024 if name.startswith("xfp_prepare") else 256
        counts = ptx.launch(module, name, grid, (threads,), args, self.memory, shared=shared, order=self.order,
                            dependent=self.early and self.launched)
        self.launched = True
        if self.order == "forward":
            Run.launches.append((name, size, numbers, dict(counts)))

    def prepare(self, x, kind, down):
        """Upload x [vectors, cols]; returns struct xfp_cuda_vectors."""
        vectors, cols = x.shape
        columns = padded(cols, COLUMNS)
        source = self.memory.upload(stored(x, kind))
        self.each = 2 if kind == "f32" or down is not None else 1
        place = [self.memory.alloc(vectors * size) for size in
                 (columns * 4, columns * 2 * self.each, columns * 3, 16, 4)]
        out = struct.pack("<5Q4I", *place, columns, vectors, self.each, 0)
        factors = self.memory.upload(down) if down is not None else 0
        self.launch("xfp_prepare_" + kind, (vectors, 1), struct.pack("<3Q", source, cols, factors) + out +
                    struct.pack("<2I", cols, 0), size=f"{vectors} x {cols}" + (", balanced" if factors else ""),
                    numbers=vectors * cols)
        return out

    def workspace(self, parts):
        """Allocate a workspace for that many blocks; memory after the counters is uninitialized."""
        place = self.memory.alloc(PARTS_OFFSET + parts * PART_BYTES)
        self.memory.write(place, np.zeros(PARTS_OFFSET, np.uint8))
        return place

    def result(self, vectors, rows, kind):
        size = 4 if kind == "f32" else 2
        self.y = self.memory.alloc(vectors * rows * size)
        return struct.pack("<2Q2I", self.y, rows, TYPES[kind], vectors)

    def read(self, vectors, rows, kind):
        dtype = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}[kind]
        return self.memory.download(self.y, dtype, vectors * rows).reshape(vectors, rows)


# (name, planes of a block, rows of a block) of the forms, except those for lists and for any number of planes
FORMS = [("m1", M1_PLANES, TILE_ROWS), ("m4", M4_PLANES, TILE_ROWS), ("wide", WIDE_PLANES, WIDE_ROWS)]


def form_for(weights, count, each, wide):
    """The kernel's name, and the vectors and rows of a block."""
    if weights.kind in TYPES and not wide:
        return "each", EACH_VECTORS, TILE_ROWS
    if weights.integers and count <= 4 and not wide:
        return {1: "i1", 2: "i2"}.get(count, "i4"), 4, TILE_ROWS
    name, planes, rows = FORMS[2 if wide else count * each > M1_PLANES]
    return name, planes // each, rows


def name_of(weights):
    if not weights.k:
        return "xfp_multiply_" + weights.kind
    kind = "v2c32" if weights.kind == "v2c" and weights.group >= 32 else weights.kind
    return f"xfp_multiply_{kind}_k{weights.k}"


def measured(weights, what, parts):
    """The size that is recorded for a launch with these weights."""
    residuals = weights.matrices[0].residuals
    outliers = f", {np.count_nonzero(residuals)} outliers" if residuals is not None else ""
    split = f", {parts} parts" if parts > 1 else ""
    return {"size": f"{weights.rows} x {weights.cols}, {what}{outliers}{split}", "numbers": weights.rows * weights.cols}


def tile_end(k):
    """The cost of finishing a tile, in chunks (XFP_CUDA_TILE_END)."""
    return 1 if k == 3 else 2


def multiply(run, weights, x, kind, down, parts=1, wide=False, share=None):
    """Results of all runs; tiles have `parts`, or as many as possible with equal numbers of chunks. Some are multiplied
    by two launches. `share`: the cost of a run, in tiles, of kernels for up to four vectors; 0: one chunk."""
    count, rows = len(x), weights.rows
    vectors, matrices = run.prepare(x, kind, down), weights.weights_bytes(run.memory)
    form, at_once, block = form_for(weights, count, run.each, wide)
    tiles, part_chunks = -(-rows // block), -(-weights.chunks // parts)
    parts = -(-weights.chunks // part_chunks)
    cost, few = weights.chunks + tile_end(weights.k), form in ("i1", "i2", "i4")
    # Workers have runs that end inside tiles; `parts` is then that many more.
    part_run = max(1, (tiles * cost + 6) // (7 + 4 * (parts - 1))) if few else 0
    if share is not None:
        part_run = max(1, round(share * cost))
    cuts = [0, count // 3, count] if count > 5 and count % 5 == 0 else [0, count]
    workspace = run.workspace(tiles * -(-count // at_once) * parts) if parts > 1 or few else 0
    found = []
    for _ in range(2 if parts > 1 or few else 1):
        result = run.result(count, rows, kind)
        for first, end in zip(cuts, cuts[1:]):
            some = end - first
            grid = (-(-tiles * cost // (8 * part_run)), 1, 1) if few else (tiles, -(-some // at_once), parts)
            run.launch(f"{name_of(weights)}_{form}", grid, matrices + vectors + result +
                       weights.first_matrix + struct.pack("<2Q6I", 0, workspace, 0, first, some, part_chunks, 0, part_run),
                       weights.shared_bytes(form), **measured(weights, f"M = {some}", parts))
        found.append(run.read(count, rows, kind))
    return found


def multiply_list(run, weights, x, kind, products, results, parts=1, runs=1):
    """Results for a list, whose tiles have `parts` of the columns in each of `runs` of the products."""
    rows = weights.rows
    vectors, matrices = run.prepare(x, kind, None), weights.weights_bytes(run.memory)
    table = run.memory.upload(np.frombuffer(b"".join(struct.pack("<3If", *p) for p in products), np.uint8))
    tiles, part_chunks = -(-rows // TILE_ROWS), -(-weights.chunks // parts)
    part_products = -(-len(products) // results // runs)
    parts = -(-weights.chunks // part_chunks) * runs
    workspace = run.workspace(tiles * results * parts) if parts > 1 else 0
    found = []
    for _ in range(2 if parts > 1 else 1):
        result = run.result(results, rows, kind)
        # As if these results were the end of a longer list: the first launch has one of them, the second the others.
        for first, some in [(0, 1), (1, results - 1)]:
            run.launch(name_of(weights) + "_list", (tiles, some, parts), matrices + vectors + result +
                       bytes(88) + struct.pack("<2Q6I", table, workspace, len(products), first, 0, part_chunks,
                                               part_products, 0),
                       weights.shared_bytes("list"), **measured(weights, f"{len(products)} products, results {first} to "
                                                           f"{first + some - 1}", parts))
        found.append(run.read(results, rows, kind))
    return found


def bits(found):
    """Whether all results are the same, in both orders and every time."""
    return all(np.array_equal(one.view(np.uint8), found[0].view(np.uint8)) for one in found)


def check(y, kind, want, bound):
    """The largest error, as a share of the bound."""
    got = number(y, kind).astype(np.float64)
    if not (np.isfinite(want).all() and (want != 0).all()):
        return float("nan")  # a case without meaning
    if kind != "f32":
        bound = bound + np.abs(want) * (2.0 ** -11 if kind == "f16" else 2.0 ** -8) + 2.0 ** -25
    return float((np.abs(got - want) / np.maximum(bound, 1e-300)).max())


def table():
    """(name, options of Weights, vectors, type, parts, whether x of 16 bits is balanced): every mode, k and group
    size, tails of both dimensions, outliers."""
    cases = []
    for k in range(2, 7):
        cases.append((f"v2 k{k}", dict(kind="v2", rows=37, cols=1100, k=k, outliers=60), 1, "f32"))
        cases.append((f"v2 k{k}, {4 + k} vectors", dict(kind="v2", rows=16, cols=512, k=k), 4 + k, "bf16"))
        for group in (16, 32, 64, 128, 1024):
            cases.append((f"v2c k{k} groups of {group}",
                          dict(kind="v2c", rows=20, cols=1200, k=k, group=group, codebooks=16, outliers=9), 2, "f32"))
        cases.append((f"v2c k{k}, 27 vectors", dict(kind="v2c", rows=17, cols=700, k=k, group=32, codebooks=64), 27,
                      "bf16", 1, k % 2))
        cases.append((f"v2 k{k}, f16", dict(kind="v2", rows=7, cols=300, k=k, outliers=3), 2, "f16"))
        cases.append((f"v2a k{k} groups of 128",
                      dict(kind="v2a", rows=33, cols=900, k=k, group=128, codebooks=8, outliers=200), 3, "f32"))
        cases.append((f"v2a k{k} groups of 16, 9 vectors",
                      dict(kind="v2a", rows=5, cols=70, k=k, group=16, codebooks=2), 9, "f32"))
    for kind in ("fp8", "f32", "f16", "bf16"):
        cases.append((kind, dict(kind=kind, rows=19, cols=333), 1, "f32"))
        cases.append((f"{kind}, 7 vectors", dict(kind=kind, rows=16, cols=64), 7, "bf16"))
    cases.append(("one row and one column", dict(kind="v2", rows=1, cols=1, k=4), 1, "f32"))
    return cases


def parts_table():
    """(name, options of Weights, vectors, type, parts, as above): each method's tiles shared by several blocks."""
    v2c = dict(kind="v2c", k=4, group=32, codebooks=16)
    return [("v2, 2 parts", dict(kind="v2", rows=37, cols=1100, k=4, outliers=90), 1, "f32", 2),
            ("v2, 6 vectors, 3 parts, the last smaller", dict(kind="v2", rows=16, cols=2200, k=2, outliers=40), 6,
             "bf16", 3),
            ("v2a, 4 parts", dict(kind="v2a", rows=17, cols=1500, k=3, group=64, codebooks=8, outliers=50), 3,
             "f32", 4),
            ("v2c, 4 parts", dict(rows=20, cols=1300, outliers=60, **v2c), 2, "f32", 4),
            ("v2c, 27 vectors, 2 parts", dict(rows=17, cols=700, outliers=30, **v2c), 27, "bf16", 2),
            ("v2c, 27 vectors of two planes, 2 parts", dict(rows=17, cols=700, outliers=30, **v2c), 27, "bf16", 2, 1),
            ("fp8, 5 parts", dict(kind="fp8", rows=19, cols=600), 1, "f32", 5),
            ("f32, 19 vectors, 2 parts", dict(kind="f32", rows=18, cols=300), 19, "f16", 2),
            ("bf16, 7 vectors, 3 parts", dict(kind="bf16", rows=27, cols=700), 7, "bf16", 3)]


def few_table():
    """(name, options of Weights, vectors, type, costs of runs in tiles): kernels for up to four vectors, with workers whose
    runs begin and end anywhere; 0: a run of one chunk. Results are the same bits whatever the runs are."""
    cases = []
    for k, cols in ((2, 1800), (3, 3000), (4, 1000)):
        v2 = dict(kind="v2", k=k, cols=cols, rows=37, outliers=120)
        v2c = dict(v2, kind="v2c", group=32, codebooks=16)
        chunks = -(-cols // chunk_columns(k))
        without_end = chunks / (chunks + tile_end(k))
        cases += [(f"v2 k{k}, M = 1", v2, 1, "f32", (0, 2, 3)), (f"v2 k{k}, M = 2", v2, 2, "bf16", (0, 1)),
                  (f"v2 k{k}, M = 3", v2, 3, "f32", (1 / 2, without_end)), (f"v2 k{k}, M = 4", v2, 4, "f32", (0, 3)),
                  (f"v2c k{k}, M = 1", v2c, 1, "f32", (1, 3)), (f"v2c k{k}, M = 2", v2c, 2, "f32", (without_end, 2)),
                  (f"v2c k{k}, M = 3", v2c, 3, "f32", (0, 3 / 2)), (f"v2c k{k}, M = 4", v2c, 4, "f32", (1 / 2, 3 / 2)),
                  (f"v2 k{k}, one row", dict(v2, rows=1, outliers=5), 3, "f32", (1 / 3, 1)),
                  (f"v2c k{k}, one row", dict(v2c, rows=1, outliers=5), 2, "f32", (1 / 3, 1))]
    many = dict(kind="v2", k=4, rows=18, cols=2500, outliers=40)
    cases += [("v2 k4, M = 1, 20 workers per tile", many, 1, "f32", (0, 1)),
              ("v2 k4, M = 4, 20 workers per tile", many, 4, "f32", (0, 1)),
              ("v2 k4, M = 1, 256 workers per tile", dict(many, rows=2, cols=32768), 1, "f32", (0, 1))]
    return [("few, " + name, *rest) for name, *rest in cases]


def wide_table():
    """Like table(), for many vectors: tails of rows, columns and planes, more planes than a block has, one or two each."""
    cases = []
    for k in range(2, 7):
        cases.append((f"v2 k{k}", dict(kind="v2", rows=19, cols=530, k=k, outliers=200), 9, "bf16"))
        cases.append((f"v2c k{k} groups of 32", dict(kind="v2c", rows=18, cols=300, k=k, group=32, codebooks=16,
                                                     outliers=90), 17, "f32"))
        cases.append((f"v2c k{k} groups of 16", dict(kind="v2c", rows=5, cols=70, k=k, group=16, codebooks=8), 3,
                      "f32"))
        cases.append((f"v2a k{k} groups of 64", dict(kind="v2a", rows=11, cols=200, k=k, group=64, codebooks=8,
                                                     outliers=50), 9, "f32"))
    for kind in ("fp8", "f16", "bf16"):
        cases.append((kind, dict(kind=kind, rows=133, cols=333), 7, "f32"))
    cases.append(("v2 k4, more than a block has", dict(kind="v2", rows=3, cols=20, k=4, outliers=7), 70, "f32"))
    cases.append(("fp8, of one plane", dict(kind="fp8", rows=20, cols=20), 131, "f16"))
    return [(f"wide, {case[0]}", *case[1:], 1, False, True) for case in cases]


def run_case(modules, options, vectors, kind, parts=1, balance=False, wide=False, shares=(None,)):
    """Share of the bound, and whether both orders and all runs of workers give the same results."""
    rng = np.random.default_rng(7)
    weights = Weights(rng, **options)
    x = rng.normal(size=(vectors, weights.cols)) * np.exp(2 * rng.normal(size=weights.cols))
    x[:, -1] = np.abs(x).max()  # a lost tail shows there
    x = number(stored(x, kind), kind)
    balanced = balance or weights.k and kind == "f32"
    down = (2.0 ** (-rng.integers(0, 9, weights.cols) / 4)).astype(np.float32) if balanced else None
    seen = x * down if down is not None else x
    found = [y for share in shares for order in ("forward", "reverse")
             for y in multiply(Run(modules, order), weights, x, kind, down, parts, wide, share)]
    want, bound = weights.product(0, seen)
    if vectors <= 4 and not wide:
        bound += weights.integer_bound(0, seen)
    return check(found[0], kind, want.T, bound.T), bits(found)


def long_list(rng):
    """Lists of more products than a warp has lanes, some with an expert, vector or result that does not exist."""
    return [(int(rng.integers(0, 4)), int(rng.integers(0, 3)), int(rng.integers(0, 3)), float(rng.normal()))
            for _ in range(41)]


def run_list(modules, options, parts=1, runs=1, long=False):
    rng = np.random.default_rng(8)
    weights = Weights(rng, experts=3, **options)
    x = rng.normal(size=(2, weights.cols)).astype(np.float32)
    products = long_list(rng) if long else [(2, 0, 0, 0.5), (0, 1, 1, 0.25), (1, 0, 0, 2.0), (2, 1, 1, -1.0)]
    found = [y for order in ("forward", "reverse")
             for y in multiply_list(Run(modules, order), weights, x, "f32", products, 2, parts, runs)]
    want, bound = np.zeros((2, weights.rows)), np.zeros((2, weights.rows))
    for expert, vector, y, weight in products:
        if expert == 3 or vector == 2 or y == 2:
            continue
        weight = np.float64(np.float32(weight))
        value, size = weights.product(expert, x[vector:vector + 1])
        size += weights.integer_bound(expert, x[vector:vector + 1])
        want[y] += weight * value[:, 0]
        bound[y] += abs(weight) * size[:, 0] * (1 + 2.0 ** -20) + np.abs(weight * value[:, 0]) * 2.0 ** -19
    return check(found[0], "f32", want, bound), bits(found)


def run_integers(modules, options):
    """Test the limits of the integer path: the largest share of a bound."""
    rng = np.random.default_rng(10)
    weights = Weights(rng, **options)
    cols = weights.cols
    usual = lambda: rng.normal(size=cols).astype(np.float32)
    x = np.stack([usual(), 0 * usual(), usual(), -np.abs(usual())])
    x[2, ::97] *= 1000
    x[3, :] *= np.float32(2.0 ** 100)
    down = (2.0 ** (-rng.integers(0, 9, cols) / 4)).astype(np.float32)
    run = Run(modules, "forward")

    def share(y, vectors):
        seen = (vectors * down).astype(np.float32)  # subnormal numbers have few bits left
        want, bound = weights.product(0, seen)
        bound = bound + weights.integer_bound(0, seen) + 2e-45
        return float((np.abs(y.T - want) / np.maximum(bound, 1e-300)).max())
    y = multiply(run, weights, x, "f32", down)[0]
    shares = [share(y, x)]
    same = True
    for first, end in ((0, 1), (2, 3), (1, 3), (1, 4)):
        same = same and np.array_equal(y[first:end], multiply(run, weights, x[first:end], "f32", down)[0])
    for exponent in (-118, -140):
        tiny = (usual() * np.float32(2.0 ** exponent))[None]
        shares.append(share(multiply(run, weights, tiny, "f32", down)[0], tiny))
    for what in (np.inf, np.nan):
        spoilt = x[:3].copy()
        spoilt[1, cols - 1] = what
        y = multiply(run, weights, spoilt, "f32", down)[0]
        shares.append(share(y[[0, 2]], x[[0, 2]]))
        same = same and not np.isfinite(y[1]).any()
    return max(shares), same


def run_repack(modules, k):
    """Permutation from one order to the other."""
    rng = np.random.default_rng(9)
    index = rng.integers(0, 1 << k, (7, 90 * chunk_columns(k)))
    found = []
    for order in ("forward", "reverse"):
        run = Run(modules, order)
        packed = pack(k, index)
        place, chunks = run.memory.upload(packed), packed.size // (64 * lane_words(k))
        run.launch(f"xfp_repack_k{k}", (-(-chunks // 256), 1), struct.pack("<2Q", place, chunks),
                   size=f"{chunks} chunks", numbers=index.size)
        found.append(run.memory.download(place, np.uint8, packed.size))
    return float((found[0] != device_order(k, index).reshape(-1)).sum() * 2), np.array_equal(*found)


def architectures(paths):
    """{names: files} of the architectures whose code differs."""
    found = {}
    for path in paths:
        found.setdefault(os.path.splitext(path)[1][4:], []).append(path)
    different = {}
    for name, files in found.items():
        text = ""
        for path in sorted(files):
            with open(path, encoding="utf-8") as file:
                text += re.sub(r"^(//|\.target).*\n", "", file.read(), flags=re.M)
        different.setdefault(text, []).append((name, files))
    return {", ".join("sm_" + name for name, _ in same): same[0][1] for same in different.values()}


def cases_of(modules):
    cases = [(f"the device order, k{k}", lambda k=k: run_repack(modules, k)) for k in (2, 3, 4)]
    cases += [(name, lambda rest=rest: run_case(modules, *rest))
              for name, *rest in table() + parts_table() + wide_table()]
    cases += [(name, lambda rest=rest: run_case(modules, *rest[:3], shares=rest[3])) for name, *rest in few_table()]
    for k in (2, 3, 4):
        for name, extra in [("v2", dict(kind="v2", rows=37, cols=1100, outliers=60))] + \
                [(f"v2c groups of {group}", dict(kind="v2c", rows=18, cols=600 + 8 * group, group=group, codebooks=8))
                 for group in (32, 64, 128)]:
            cases.append((f"integers, k{k}, {name}", lambda o=dict(k=k, **extra): run_integers(modules, o)))
    for kind, extra in [("v2", dict(k=4)), ("v2a", dict(k=3, group=64, codebooks=4)), ("fp8", {}), ("bf16", {}),
                        ("v2c", dict(k=4, group=32, codebooks=16, outliers=30))]:
        options = dict(kind=kind, rows=24, cols=320, **extra)
        cases.append((f"a list of products, {kind}", lambda o=options: run_list(modules, o)))
        if kind in ("v2c", "bf16"):
            cases.append((f"a list of products, {kind}, 2 parts of columns", lambda o=options: run_list(modules, o, 2)))
            cases.append((f"a list of products, {kind}, 2 of columns and 2 of products",
                          lambda o=options: run_list(modules, o, 2, 2)))
        if kind in ("v2", "bf16"):
            cases.append((f"a long list of products, {kind}, 3 parts of them",
                          lambda o=options: run_list(modules, o, 1, 3, True)))
    return cases


def main():
    cases, executed = [], {}
    counts, paths = sys.argv[1], sys.argv[2:]
    if os.path.exists(counts):
        os.remove(counts)
    for names, files in architectures(paths).items():
        modules = [ptx.load(path) for path in files]
        cases += [(names, name, case) for name, case in cases_of(modules)]
    print(f"1..{len(cases)}")
    failed = 0
    for at, (names, name, case) in enumerate(cases, 1):
        why = None
        Run.launches = []
        try:
            share, same = case()
            executed.setdefault(name, Run.launches)  # of the first architecture
            if not share <= 1:
                why = f"{share:.3g} of the bound"
            elif not same:
                why = "another order of blocks gives other bits"
        except ptx.Fault as fault:
            why = str(fault)
        print(f"{'not ok' if why else 'ok'} {at} - {names}: {name}" +
              (f"\n# {why}" if why else f" # {share:.2g} of the bound"), flush=True)
        failed += why is not None
    if not failed:
        with open(counts + ".new", "w", encoding="utf-8") as file:
            json.dump(executed, file)
        os.replace(counts + ".new", counts)
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)

# SPDX-License-Identifier: Apache-2.0
"""Error feedback on one core: its kernels, next to the f64 multiply-adds of the processor; and the whole fit of a
matrix with generated inputs, next to llama.cpp's quantizers with an importance matrix of the same inputs.

All figures are processor time, and the least of some interleaved rounds, since machines are busy with other things.
GGML_LIBRARY=FILE names llama.cpp's libggml-base.so.
"""
import os
import re
import struct
import sys
import time

import numpy as np

from common import HERE, settle, table, timed

sys.path.insert(0, os.path.join(HERE, "..", "models"))
from ggml import Ggml  # noqa: E402
from safetensors_io import Checkpoint  # noqa: E402

OURS = {"v2c k = 2": 2, "v2c k = 3": 3, "v2c k = 4": 4}
TYPES = {"IQ2_XS": "v2c k = 2", "IQ3_S": "v2c k = 3", "IQ4_XS": "v2c k = 4"}  # of about as many bits
GOALS = {("encode", 1024): 8e6, ("encode", 4096): 5e6, ("passes", 1024): 4e6, ("passes", 4096): 1e6}
FACTOR_GOAL = 2  # seconds at 4096 columns
NO_EXPERT = 2**32 - 1
ROWS = 256  # of the matrix, for llama.cpp


def kernels(bench, rounds, cols):
    """[{name, cols, weights, seconds, of_peak}], of bench/feedback."""
    _, out = timed([bench.tool("feedback"), str(rounds), str(cols)])
    rows = [line.split("\t") for line in out.splitlines()]
    return [{"name": name, "cols": cols, "weights": int(weights), "seconds": float(seconds),
             "of_peak": float(share)} for name, weights, seconds, _, share in rows]


# ---- a matrix ----------------------------------------------------------------------------------------


def generate_inputs(tokens, cols):
    """Bits of bf16: columns of different sizes, with something in common."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((tokens, cols), np.float32)
    x += rng.standard_normal((tokens, cols // 16), np.float32) @ rng.standard_normal((cols // 16, cols), np.float32)
    x *= np.exp(0.7 * rng.standard_normal(cols, np.float32))
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def write_case(path, x, tensor):
    """What tests/inputs reads: one input, which multiplies one tensor of layer 0."""
    with open(path, "wb") as file:
        file.write(struct.pack("<QQ6I", len(x), len(x) // 16, 0, 1, x.shape[1], 0, 1, 1))
        file.write(struct.pack("<24sQQ", b"attention", *x.shape) + x.tobytes())
        file.write(struct.pack("<96sII", tensor.encode(), 0, NO_EXPERT))


def fit(bench, model, case, bits):
    """Processor seconds of xfp-libfit, on one thread."""
    bench.fresh()
    work, cache = bench.path("out.xfp.work"), bench.path("cache")
    environment = {"XFP_WORK": work, "XFP_CACHE": cache, "OMP_NUM_THREADS": "1"}
    timed(["xfp", "prepare", model.path, "-o", bench.path("out.xfp"), "--mode", "v2c", "--bits", str(bits),
           "--group-size", "32", "--outlier-sigma", "4"], environment)
    timed([os.path.join(bench.tools, "inputs"), "write", work, cache, case])
    with open(os.path.join(work, "units.mk"), encoding="utf-8") as file:
        units = sorted(set(re.findall(r"u\d+", file.read())))
    for unit in units:
        timed(["xfp-outlier-extract", unit], environment)
    settle(model.file)
    return sum(timed(["xfp-libfit", unit], environment)[0].cpu for unit in units)


def quantize(ggml, name, weights, squares):
    """Processor seconds of llama.cpp's quantizer."""
    before = time.process_time()
    ggml.encoded(name, weights, squares)
    return time.process_time() - before


def measure_fit(bench, rounds, size, tokens):
    model = bench.model("model", "--dense", f"{size}x{size}:1")
    checkpoint = Checkpoint(model.path)
    tensor = next(name for name in checkpoint.names() if name.endswith("q_proj.weight"))
    x, case, library = generate_inputs(tokens, size), bench.path("case"), os.environ.get("GGML_LIBRARY")
    write_case(case, x, tensor)
    seconds = {name: [] for name in OURS}
    if library and os.path.exists(library):
        ggml, rows = Ggml(library, TYPES), checkpoint.read(tensor)[:ROWS].astype(np.float32)
        squares = np.square((x.astype(np.uint32) << 16).view(np.float32)).mean(axis=0)
        for name in TYPES:
            ggml.encoded(name, rows[:1], squares)  # initializes its tables
            seconds[name] = []
    for _ in range(rounds):
        for name, list_of in seconds.items():
            list_of.append(fit(bench, model, case, OURS[name]) if name in OURS
                           else quantize(ggml, name, rows, squares) * size / len(rows))
    return {"size": size, "training_rows": tokens - tokens // 8,
            "seconds": {name: min(list_of) for name, list_of in seconds.items()}}


# ---- the tables --------------------------------------------------------------------------------------


def show_kernels(found):
    rows = []
    for kernel in found:
        name, rate = kernel["name"], kernel["weights"] / kernel["seconds"]
        goal = GOALS.get((name.split()[0], kernel["cols"]))
        text = f"{goal / 1e6:.0f} M weights/s" if goal else ""
        if name == "factor" and kernel["cols"] == 4096:
            text = f"{FACTOR_GOAL} s"
        rows.append([name, kernel["cols"], f"{kernel['seconds']:.3f}", f"{rate / 1e6:.1f}" if rate else "", text,
                     f"{100 * kernel['of_peak']:.0f} %"])
    print(table(["kernel", "columns", "seconds", "M weights/s", "goal", "of f64 multiply-adds"], rows))


def show_fit(result):
    size, seconds = result["size"], result["seconds"]
    weights = size * size
    print(f"\nA matrix of {size}×{size}, {result['training_rows']} rows of inputs, one thread\n")
    print(table(["", "seconds", "M weights/s", "v2c of about as many bits, relative to it"],
                [[f"`xfp-libfit`, {name}" if name in OURS else f"llama.cpp {name}", f"{took:.2f}",
                  f"{weights / took / 1e6:.2f}", "" if name in OURS else f"{took / seconds[TYPES[name]]:.2f}"]
                 for name, took in seconds.items()]))
    if len(seconds) == len(OURS):
        print("\n(GGML_LIBRARY names no libggml-base.so, so llama.cpp's quantizers are missing.)")


def run(bench, options):
    found = [kernel for cols in ((64,) if bench.quick else (1024, 4096))
             for kernel in kernels(bench, options.rounds, cols)]
    show_kernels(found)
    size, tokens = (256, 512) if bench.quick else (4096, 8192)
    result = {"kernels": found, "fit": measure_fit(bench, options.rounds, size, tokens)}
    show_fit(result["fit"])
    bench.remove("model")
    return result

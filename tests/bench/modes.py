# SPDX-License-Identifier: Apache-2.0
"""The same as speed for every mode, beside the quantizer that their users come from.

In the named modes, and in auto with a given threshold, all of k = 2, 3 and 4 are measured on all rows, in every group
size of the mode; auto as it comes surveys all bits and thresholds on some rows and measures what it aims at.
"""
from common import BITS, count, table
from speed import measure

SETTINGS = {
    "v2": ["--mode", "v2", *BITS],
    "v2a": ["--mode", "v2a", *BITS],
    "v2c": ["--mode", "v2c", *BITS],
    "auto, 4 sigma": ["--outlier-sigma", "4", *BITS],
    "auto": [],
}


def run(bench, options):
    matrices, size = (2, 64) if bench.quick else (options.matrices, 4096)
    result = measure(bench, options.jobs, options.rounds, matrices, size, SETTINGS, ["Q4_K"])
    found = result["contenders"]
    others = [name for name in ("int4", "Q4_K") if name in found]
    print(f"{matrices} matrices of {size}×{size} in bf16, {count(result['weights'])} weights, {options.jobs} jobs or "
          f"threads; medians of {options.rounds} interleaved runs\n")
    print(table(["", "seconds", "least – most", "CPU seconds", "M weights/s", *(f"of {name}" for name in others)],
                [[{"int4": "int4, groups of 32", "Q4_K": "llama.cpp Q4_K"}.get(name, f"`--mode {name}`"),
                  f"{run['seconds']:.2f}", f"{run['least']:.2f} – {run['most']:.2f}", f"{run['cpu']:.2f}",
                  f"{run['rate'] / 1e6:.0f}", *(f"{run['ratio'][other]:.2f}" for other in others)]
                 for name, run in found.items()]))
    if "Q4_K" not in found:
        print("\n(LLAMA_QUANTIZE names no llama-quantize, so there is no Q4_K beside it.)")
    bench.remove("model")
    return result

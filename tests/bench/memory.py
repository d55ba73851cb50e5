# SPDX-License-Identifier: Apache-2.0
"""Peak memory: proportional set sizes of all processes of a conversion together, sampled.

The largest matrix is 4096×14336 everywhere: ten of them stand beside two layers of experts, so that 16 units are
in flight at -j16. Stacks of 64 and of 512 experts have fewer rows an expert than such a model would have, 896 and
112, so that all stacks are of the same weight and the run ends in time; the last line has as many rows to
a stack as a model of 400 billion weights.
"""
from common import USUAL, count, mib, note, table

STACKS = {
    "4 experts of 14336×4096": "4x14336x4096:2",
    "64 experts of 896×4096": "64x896x4096:2",
    "512 experts of 112×4096": "512x112x4096:2",
    "512 experts of 1024×512": "512x1024x512:2",
}
QUICK = {"2 experts of 48×64": "2x48x64:2"}
BOUND = {2: 300 << 20, 16: 1 << 30}


def run(bench, _options):
    dense = "64x96:10" if bench.quick else "4096x14336:10"
    result, rows = [], []
    for name, stack in (QUICK if bench.quick else STACKS).items():
        model = bench.model("model", "--dense", dense, "--stack", stack)
        for jobs, bound in BOUND.items():
            peak = bench.peak(model, jobs, *USUAL)
            note(f"{name}, -j{jobs}: {mib(peak['pss'])} MiB")
            most = max(peak["largest"], key=peak["largest"].get)
            result.append({"model": name, "weights": model.weights, "jobs": jobs, "pss": peak["pss"],
                           "disk": peak["disk"], "seconds": peak["wall"], "largest": peak["largest"]})
            rows.append([name, count(model.weights), f"-j{jobs}", mib(peak["pss"]), mib(bound),
                         f"{most} {mib(peak['largest'][most])}", mib(peak["disk"]), f"{peak['wall']:.0f}"])
        bench.remove("model")
    print(table(["model", "weights", "jobs", "peak MiB", "at most", "largest process", "disk MiB", "seconds"], rows))
    return result

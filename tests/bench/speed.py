# SPDX-License-Identifier: Apache-2.0
"""Weights a second of the whole pipeline, beside plain quantizers of the same weights in the same minutes.

Timed is what a user waits for: from the start of `xfp convert` in empty folders to the bundle under its name,
without verify. The model is in the page cache. Every round runs each contender once; a ratio is the median of
the rounds' ratios.
"""
import functools
import os
import statistics

from common import USUAL, count, settle, table, timed
import gguf_write

STAGES = ["outlier-extract", "lloyd-fit", "autoselect", "pack"]


def contenders(bench, model, jobs, settings, types):
    """Name -> function that runs a contender once, without existing output: (Timing, Conversion or None). `settings`
    are options of xfp convert by name, `types` those of llama.cpp's quantizer."""
    program, gguf_file = os.environ.get("LLAMA_QUANTIZE"), bench.path("model.gguf")

    def ours(options):
        bench.fresh()
        settle(model.file)
        done = bench.convert(model, jobs, *options)
        return done.timing, done

    def other(source, out, command):
        if os.path.exists(out):
            os.unlink(out)
        settle(source)
        return timed(command, {"OMP_NUM_THREADS": str(jobs)})[0], None

    def plain():
        out = bench.path("out.int4")
        return other(model.file, out, [bench.tool("int4"), model.path, out])

    def llama(kind):
        out = bench.path("out.gguf")
        return other(gguf_file, out, [program, "--pure", gguf_file, out, kind, str(jobs)])

    runs = {name: functools.partial(ours, options) for name, options in settings.items()}
    runs["int4"] = plain
    if program:
        gguf_write.write(model.path, gguf_file)
        runs.update({kind: functools.partial(llama, kind) for kind in types})
    return runs


def measure(bench, jobs, rounds, matrices, size, settings, types):
    model = bench.model("model", "--dense", f"{size}x{size}:{matrices}")
    weights = matrices * size * size
    runs = contenders(bench, model, jobs, settings, types)
    walls, processor, conversions = {name: [] for name in runs}, {name: [] for name in runs}, []
    for _ in range(rounds):
        for name, run in runs.items():
            timing, conversion = run()
            walls[name].append(timing.wall)
            processor[name].append(timing.cpu)
            if conversion:
                conversions.append(conversion)
    result = {"weights": weights, "matrices": matrices, "size": size, "jobs": jobs, "rounds": rounds,
              "bundle_bytes": conversions[0].summary["bytes"], "contenders": {}, "stages": {}}
    for name in runs:
        result["contenders"][name] = {
            "seconds": statistics.median(walls[name]), "least": min(walls[name]), "most": max(walls[name]),
            "cpu": statistics.median(processor[name]), "rate": weights / statistics.median(walls[name]),
            "ratio": {other: statistics.median(b / a for a, b in zip(walls[name], walls[other])) for other in runs},
        }
    for stage in [*STAGES, "bundle"]:
        result["stages"][stage] = statistics.median(run.stages.get(stage, 0) for run in conversions)
    return result


def show(result):
    found, jobs, weights = result["contenders"], result["jobs"], result["weights"]
    others = [name for name in found if name != "xfp"]
    print(f"{result['matrices']} matrices of {result['size']}×{result['size']} in bf16, {count(weights)} weights, "
          f"{jobs} jobs or threads; medians of {result['rounds']} interleaved runs\n")
    print(table(["", "seconds", "least – most", "CPU seconds", "M weights/s", *(f"of {name}" for name in others)],
                [[{"xfp": "`xfp convert`", "int4": "int4, groups of 32", "Q4_0": "llama.cpp Q4_0"}[name],
                  f"{run['seconds']:.2f}", f"{run['least']:.2f} – {run['most']:.2f}", f"{run['cpu']:.2f}",
                  f"{run['rate'] / 1e6:.0f}", *(f"{run['ratio'][other]:.2f}" for other in others)]
                 for name, run in found.items()]))
    if "Q4_0" not in found:
        print("\n(LLAMA_QUANTIZE names no llama-quantize, so there is no Q4_0 beside it.)")

    stages, wall = result["stages"], found["xfp"]["seconds"]
    in_units = sum(seconds for stage, seconds in stages.items() if stage != "bundle")
    rest = jobs * (wall - stages["bundle"]) - in_units
    print(f"\nWhere it goes: seconds of all {jobs} jobs together, {jobs} × {wall:.2f} in all\n")
    rows = [[stage, f"{stages[stage]:.2f}", f"{100 * stages[stage] / (jobs * wall):.0f} %",
             f"{weights / stages[stage] / 1e6:.0f}" if stages[stage] >= 0.01 else ""] for stage in STAGES]
    rows.append(["inspect, make, processes, idle jobs", f"{rest:.2f}", f"{100 * rest / (jobs * wall):.0f} %", ""])
    rows.append(["bundle (one job, the others wait)", f"{jobs * stages['bundle']:.2f}",
                 f"{100 * stages['bundle'] / wall:.0f} %", ""])
    print(table(["stage", "seconds", "share", "M weights/s a job"], rows))


def run(bench, options):
    matrices, size = (2, 64) if bench.quick else (options.matrices, 4096)
    result = measure(bench, options.jobs, options.rounds, matrices, size, {"xfp": USUAL}, ["Q4_0"])
    show(result)
    bench.remove("model")
    return result

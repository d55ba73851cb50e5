# SPDX-License-Identifier: Apache-2.0
"""How time and memory grow: with weights, from 10 million to a billion, and with experts at equal weights.

By weights, all matrices are 2048×2048. By experts, all are 256×1024 and there are 1,536 of them, in stacks of 1 to
512. Time is the median of three runs; memory is sampled in a run of its own, since the sampling takes
time from the conversion. Writes scale.csv and scale.svg.
"""
import csv
import os
import statistics

import plot
from common import USUAL, count, mib, note, settle, table

FIELDS = ["sweep", "weights", "experts", "units", "seconds", "peak_mib"]


def by_weights(most):
    weights = [w for w in (1e7, 3e7, 1e8, 3e8, 1e9, 3e9, 1e10) if w <= most * 1.01]
    return [("weights", 0, ["--dense", f"2048x2048:{round(w / 2048 ** 2)}"]) for w in weights]


def by_experts():
    return [("experts", experts, ["--stack", f"{experts}x256x1024:{512 // experts}"])
            for experts in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)]


def quick():
    return ([("weights", 0, ["--dense", f"32x32:{matrices}"]) for matrices in (1, 3)]
            + [("experts", experts, ["--stack", f"{experts}x16x32:{2 // experts}"]) for experts in (1, 2)])


def measure(bench, jobs, rounds, sweep, experts, shape):
    model = bench.model("model", *shape)
    seconds = []
    for _ in range(rounds):
        bench.fresh()
        settle(model.file)
        done = bench.convert(model, jobs, *USUAL)
        seconds.append(done.timing.wall)
    peak = bench.peak(model, jobs, *USUAL)
    bench.remove("model")
    return {"sweep": sweep, "weights": done.summary["weights"], "experts": experts, "units": done.summary["units"],
            "seconds": round(statistics.median(seconds), 3), "peak_mib": float(mib(peak["pss"]))}


def run(bench, options):
    points = quick() if bench.quick else by_weights(options.weights or 1e9) + by_experts()
    rows = []
    for sweep, experts, shape in points:
        row = measure(bench, options.jobs, min(options.rounds, 3), sweep, experts, shape)
        rows.append(row)
        note(f"{count(row['weights'])} weights, {experts} experts: {row['seconds']} s, {row['peak_mib']:.0f} MiB")
    print(table(["sweep", "weights", "experts", "units", "seconds", "M weights/s", "peak MiB"],
                [[row["sweep"], count(row["weights"]), row["experts"], row["units"], f"{row['seconds']:.2f}",
                  f"{row['weights'] / row['seconds'] / 1e6:.0f}", f"{row['peak_mib']:.0f}"] for row in rows]))
    os.makedirs(options.results, exist_ok=True)
    with open(os.path.join(options.results, "scale.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    plot.write(rows, options.jobs, os.path.join(options.results, "scale.svg"))
    return rows

# SPDX-License-Identifier: Apache-2.0
"""How long xfp plan says that a conversion takes, by how long it then takes.

A plan and a conversion, one after the other: of dense matrices, of stacks of experts, of many small units, and of the
dense ones with other floors, with what the first conversion left in the cache. Each ratio is of a pair that ran side by
side, so that a machine that is busy for a while spoils no other.

What else runs still takes more of a conversion's time than of a plan's, whose measurement is one short process after
another. So there is a second ratio, by processor time: what was planned, for all jobs, as far as the plan had a
processor while it measured, by the processor time of the conversion.
"""
import json
import statistics

from common import note, settle, table, timed

# Arguments of make-weights: models that take a few seconds each, and a tiny one.
MODELS = {
    "dense": (["--dense", "2048x2048:24"], ["--dense", "64x64:2"]),
    "stacks": (["--stack", "64x512x1024:1"], ["--stack", "2x32x64:1"]),
    "small units": (["--dense", "64x64:100"], ["--dense", "32x64:4"]),
}


WARM = ["--min-cos-strict", "0.998"]


class Pair:
    """Run a plan, and the conversion after it."""

    def __init__(self, bench, model, jobs, *options):
        settle(model.file)
        timing, out = timed(["xfp", "plan", *bench.command(model, jobs, *options)[2:], "--json"])
        run = bench.convert(model, jobs, *options)
        had = min(1, timing.cpu / timing.wall)
        self.planned, self.took = json.loads(out)["time"]["seconds"], run.timing.wall
        self.ratio = self.planned / self.took
        self.processor_ratio = self.planned * jobs * had / run.timing.cpu


def figures(pairs):
    return {"planned_seconds": statistics.median(pair.planned for pair in pairs),
            "seconds": statistics.median(pair.took for pair in pairs),
            "ratio": statistics.median(pair.ratio for pair in pairs),
            "processor_ratio": statistics.median(pair.processor_ratio for pair in pairs)}


def measure(bench, name, given, options):
    """Measure from scratch; for dense matrices also with another floor afterwards."""
    model = bench.model(name.replace(" ", "-"), *given)
    pairs = {name: [], **({"warm cache": []} if name == "dense" else {})}
    for _ in range(options.rounds):
        bench.fresh()
        for which, list_ in pairs.items():
            list_.append(Pair(bench, model, options.jobs, *([] if which == name else WARM)))
            note(f"{which}: planned {list_[-1].planned:.1f} s, took {list_[-1].took:.1f} s; "
                 f"by processor time {list_[-1].processor_ratio:.2f}")
    bench.remove(name.replace(" ", "-"))
    return {which: {"weights": model.weights, **figures(list_)} for which, list_ in pairs.items()}


def show(result, rounds):
    rows = [[name, f"{one['planned_seconds']:.1f} s", f"{one['seconds']:.1f} s", f"{one['ratio']:.2f}",
             f"{one['processor_ratio']:.2f}", "0.75 to 1.25"]
            for name, one in result.items()]
    print(f"medians of {rounds} runs\n")
    print(table(["", "planned", "took", "ratio", "by processor time", "wanted"], rows))


def run(bench, options):
    result = {}
    for name, (given, quick) in MODELS.items():
        result.update(measure(bench, name, quick if bench.quick else given, options))
    show(result, options.rounds)
    return result

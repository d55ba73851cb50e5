# SPDX-License-Identifier: Apache-2.0
"""How long xfp plan says that a conversion takes, by how long it then takes.

A plan and a conversion, cold, one after the other: of dense matrices, of stacks of experts, and of many small units.
Each ratio is of a pair that ran side by side, so that a machine that is busy for a while spoils no other.
"""
import json
import statistics

from common import note, settle, table, timed

# What make-weights is given: figures of a few seconds each, and next to nothing.
MODELS = {
    "dense": (["--dense", "2048x2048:8"], ["--dense", "64x64:2"]),
    "stacks": (["--stack", "64x512x1024:1"], ["--stack", "2x32x64:1"]),
    "small units": (["--dense", "64x64:300"], ["--dense", "32x64:4"]),
}


def measure(bench, name, given, options):
    model = bench.model(name.replace(" ", "-"), *given)
    pairs = []
    for _ in range(options.rounds):
        bench.fresh()
        settle(model.file)
        plan = json.loads(timed(["xfp", "plan", model.path, f"-j{options.jobs}", "--json"])[1])
        run = bench.convert(model, options.jobs)
        pairs.append((plan["time"]["seconds"], run.timing.wall))
        note(f"{name}: planned {pairs[-1][0]:.1f} s, took {pairs[-1][1]:.1f} s")
    bench.remove(name.replace(" ", "-"))
    return {"weights": model.weights,
            "planned_seconds": statistics.median(planned for planned, _ in pairs),
            "seconds": statistics.median(took for _, took in pairs),
            "ratio": statistics.median(planned / took for planned, took in pairs)}


def show(result, rounds):
    rows = [[name, f"{one['planned_seconds']:.1f} s", f"{one['seconds']:.1f} s", f"{one['ratio']:.2f}", "0.75 to 1.25"]
            for name, one in result.items()]
    print(f"medians of {rounds} runs\n")
    print(table(["", "planned", "took", "ratio", "wanted"], rows))


def run(bench, options):
    result = {name: measure(bench, name, quick if bench.quick else given, options)
              for name, (given, quick) in MODELS.items()}
    show(result, options.rounds)
    return result

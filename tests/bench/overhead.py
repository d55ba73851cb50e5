# SPDX-License-Identifier: Apache-2.0
"""What a unit costs beside its arithmetic: a thousand units of next to no weights.

A cold run at one job and at two; the same command again, which finds everything done; and `xfp plan` of a
header of 100,000 tensors.
"""
import statistics
import subprocess

from common import USUAL, settle, table, timed

JOBS = (1, 2)


def knows_plan(model):
    return subprocess.run(["xfp", "plan", model.path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode != 2


def measure(bench, rounds, units, experts):
    result = {"units": units, "rounds": rounds, "cold": {}}
    model = bench.model("tiny", "--dense", f"64x64:{units}")
    for jobs in JOBS:
        cold, again = [], []
        for _ in range(rounds):
            bench.fresh()
            settle(model.file)
            cold.append(bench.convert(model, jobs, *USUAL))
            again.append(bench.convert(model, jobs, *USUAL))
        stages = cold[-1].stages
        result["cold"][jobs] = {"wall_ms": statistics.median(run.timing.wall for run in cold) * 1000 / units,
                                "cpu_ms": statistics.median(run.timing.cpu for run in cold) * 1000 / units,
                                "stage_ms": {stage: seconds * 1000 / units for stage, seconds in stages.items()}}
    result["rerun_seconds"] = statistics.median(run.timing.wall for run in again)
    result["rerun_made"] = again[-1].summary["fitted"] + again[-1].summary["repacked"]
    result["rerun_unchanged"] = again[-1].summary["unchanged"]
    bench.remove("tiny")

    model = bench.model("wide", "--split", "--stack", f"{experts}x16x16:66")
    result["header_tensors"] = 66 * (3 * experts + 3) + 2
    if knows_plan(model):
        result["plan_seconds"] = statistics.median(timed(["xfp", "plan", model.path])[0].wall for _ in range(rounds))
    bench.remove("wide")
    return result


def show(result):
    units, plan = result["units"], result.get("plan_seconds")
    rows = [[f"a unit, cold run of {units}, -j{jobs}", f"{run['wall_ms']:.1f} ms", f"{run['cpu_ms']:.1f} ms", ""]
            for jobs, run in result["cold"].items()]
    rows[0][3] = "30 ms"
    rows.append([f"that run again: {result['rerun_made']} fitted or packed"
                 + (", bundle unchanged" if result["rerun_unchanged"] else ", bundle written"),
                 f"{result['rerun_seconds']:.2f} s", "", "2 s"])
    rows.append([f"`xfp plan` of {result['header_tensors']} tensors",
                 "not there" if plan is None else f"{plan:.2f} s", "", "2 s"])
    print(f"medians of {result['rounds']} runs\n")
    print(table(["", "wall", "CPU", "at most"], rows))
    run = result["cold"][1]
    stages = [f"{stage} {ms:.1f}" for stage, ms in run["stage_ms"].items()]
    print(f"\nOf the {run['wall_ms']:.1f} ms at -j1, in the stages' own account: {', '.join(stages)}; the rest, "
          f"{run['wall_ms'] - sum(run['stage_ms'].values()):.1f}, is make and the start and end of processes.")


def run(bench, options):
    units, experts = (14, 2) if bench.quick else (1000, 512)
    result = measure(bench, options.rounds, units, experts)
    show(result)
    return result

# SPDX-License-Identifier: Apache-2.0
"""Conversions on one and two nodes of a Slurm cluster, which tests/slurm/cluster starts on this machine; and locally.

Every step is timed twice, around the launcher and around the command that it runs: launching costs the difference.
"""
import glob
import json
import os
import signal
import statistics
import subprocess
import time

from common import HERE, note, settle, table, timed
from resume import packed

CLUSTER = os.path.join(HERE, "..", "slurm", "cluster")

# A file for each step and side; `times` writes two lines as "0m1.250s 0m0.100s", of the shell and of its children.
LAUNCHER = """#!/usr/bin/env bash
began=$EPOCHREALTIME
if [ "$1" = --inside ]; then
	"${@:2}"
	status=$?
	{ echo "inside $began $EPOCHREALTIME" && times; } >"$0.$HOSTNAME.$$"
else
	srun -Q -N1 -n1 "$0" --inside "$@"
	status=$?
	echo "outside $began $EPOCHREALTIME" >"$0.outside.$$"
fi
exit $status
"""


def seconds(text):
    minutes, rest = text.rstrip("s").split("m")
    return 60 * int(minutes) + float(rest)


def step_times(launcher):
    """Sums over the steps of a run: their number, seconds outside and inside of the launcher, and processor time."""
    sums = {"steps": 0, "outside": 0, "inside": 0, "cpu": 0}
    for path in glob.glob(glob.escape(launcher) + ".*"):
        with open(path, encoding="utf-8") as file:
            where, began, ended, *cpu = file.read().split()
        os.unlink(path)
        sums[where] += float(ended) - float(began)
        sums["steps"] += where == "outside"
        sums["cpu"] += sum(map(seconds, cpu))
    return sums


def command(bench, model, nodes):
    """`nodes` is None for a local conversion, with a job for each processor."""
    if not nodes:
        return bench.command(model, len(os.sched_getaffinity(0)), "--quiet", "--json")
    return ["salloc", "-Q", f"-N{nodes}", f"-n{nodes}",
            *bench.command(model, nodes, "--quiet", "--json", "--launcher", bench.path("launcher"))]


def convert(bench, model, nodes):
    """Convert with what the cache has."""
    step_times(bench.path("launcher"))  # of a run that was interrupted
    timing, out = timed(command(bench, model, nodes))
    return {"wall": timing.wall, "sha256": json.loads(out)["sha256"], **step_times(bench.path("launcher"))}


def interrupt(bench, model, units):
    """Interrupt a conversion on two nodes once half of its units are packed; returns how many are."""
    bench.fresh()
    with subprocess.Popen(command(bench, model, 2), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and packed(bench) < units / 2:
            time.sleep(0.1)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)  # salloc releases the nodes, and passes the signal on
    return packed(bench)


def measure(bench, rounds, units, columns):
    model = bench.model("nodes", "--dense", f"{columns}x{columns}:{units}")
    with open(bench.path("launcher"), "w", encoding="utf-8") as file:
        file.write(LAUNCHER)
    os.chmod(bench.path("launcher"), 0o755)
    runs = {None: [], 1: [], 2: []}
    for _ in range(rounds):
        for nodes, done in runs.items():
            bench.fresh()
            settle(model.file)
            done.append(convert(bench, model, nodes))
            note(f"{nodes or 'local'}: {done[-1]}")
    kept = interrupt(bench, model, units)
    resumed = convert(bench, model, 2)
    note(f"{kept} units, then {resumed}")
    results = [run["sha256"] for done in runs.values() for run in done] + [resumed["sha256"]]
    return {"weights": model.weights, "units": units, "rounds": rounds, "runs": list(runs.values()),
            "kept": kept, "resumed": resumed, "same": len(set(results)) == 1}


def show(result):
    rows = []
    for name, runs in zip(["local", "one node", "two nodes"], result["runs"]):
        median = {key: statistics.median(run[key] for run in runs) for key in ("wall", "steps", "cpu")}
        launching = [f"{run['outside'] - run['inside']:.2f} s, {1 - run['inside'] / run['outside']:.1%}"
                     for run in runs if run["outside"]]
        rows.append([name, f"{median['wall']:.1f} s", f"{result['weights'] / median['wall'] / 1e6:.1f}",
                     f"{median['cpu']:.1f} s" if launching else "", median["steps"] if launching else "",
                     "; ".join(launching)])
    print(f"{result['units']} units, {result['weights']} weights; medians of {result['rounds']} runs\n")
    print(table(["", "wall", "M weights/s", "CPU of steps", "steps", "launching, of the steps' time"], rows))
    print(f"\nInterrupted with {result['kept']} units packed; the rest took {result['resumed']['wall']:.1f} s. "
          f"All SHA-256 are {'equal' if result['same'] else 'NOT EQUAL'}.")


def run(bench, options):
    os.environ["SLURM_CONF"] = os.path.join(bench.path("cluster"), "slurm.conf")
    timed([CLUSTER, "start", bench.path("cluster")])
    try:
        result = measure(bench, 1 if bench.quick else options.rounds, *((8, 64) if bench.quick else (200, 2048)))
    finally:
        timed([CLUSTER, "stop", bench.path("cluster")])
    show(result)
    return result

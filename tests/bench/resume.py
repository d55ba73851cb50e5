# SPDX-License-Identifier: Apache-2.0
"""A large conversion, killed and resumed twice: the same bytes as the one that was left alone, in bounded space.

Four billion weights in 512-expert stacks of 512×1024. Killed means SIGKILL to every process of the run at once, when a
third of its units are packed, and again when two thirds are.
"""
import hashlib
import json
import os
import signal
import subprocess
import time

from common import MEASURE_PEAK, USUAL, count, mib, settle, table


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def session(leader):
    """The processes of the leader's session, without the leader."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and int(entry) != leader:
            found.append(int(entry))
    return found


def packed(bench):
    """The number of units whose last stamp exists."""
    try:
        return sum(name.endswith("-packed") for name in os.listdir(bench.path("out.xfp.work")))
    except FileNotFoundError:
        return 0


def attempt(bench, model, jobs, kill_after=None):
    """A run under measure-peak, which leads the session and survives the kill."""
    report = bench.path("peak.json")
    settle()
    with subprocess.Popen([*MEASURE_PEAK, "-d", bench.path("out.xfp.work"), "-d", bench.path("cache"), "-d",
                           bench.path("out.xfp"), "-o", report, *bench.command(model, jobs, *USUAL), "--quiet"],
                          start_new_session=True, stdout=subprocess.DEVNULL) as process:
        while kill_after and process.poll() is None:
            if packed(bench) >= kill_after:
                while left := session(process.pid):  # a process may have been forked meanwhile
                    for pid in left:
                        try:
                            os.kill(pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                    time.sleep(0.01)
                break
            time.sleep(0.002)
        process.wait()
    if process.returncode != (128 + signal.SIGKILL if kill_after else 0):
        raise SystemExit(f"the conversion ended with status {process.returncode}"
                         + (" before it could be killed" if not process.returncode else ""))
    with open(report, encoding="utf-8") as file:
        return {"packed": packed(bench), **json.load(file)}


def run(bench, options):
    layers = max(1, round((options.weights or 4e9) / (512 * 3 * 512 * 1024)))
    stack = "4x32x64:5" if bench.quick else f"512x512x1024:{layers}"
    model = bench.model("model", "--stack", stack)
    attempts = {}
    bench.fresh()
    attempts["left alone"] = whole = attempt(bench, model, options.jobs)
    expected = sha256(bench.path("out.xfp"))
    bench.fresh()
    attempts["killed"] = attempt(bench, model, options.jobs, whole["packed"] // 3)
    attempts["resumed, killed"] = attempt(bench, model, options.jobs, 2 * whole["packed"] // 3)
    attempts["resumed"] = attempt(bench, model, options.jobs)
    same = sha256(bench.path("out.xfp")) == expected
    print(f"{count(model.weights)} weights ({os.path.getsize(model.file) / 1e9:.2f} GB), -j{options.jobs}\n")
    rows = [[name, f"{a['wall']:.1f}", a["packed"], mib(a["pss"]), mib(a["disk"])] for name, a in attempts.items()]
    print(table(["run", "seconds", "units packed", "peak MiB", "disk MiB"], rows))
    print(f"\nbundle {mib(os.path.getsize(bench.path('out.xfp')))} MiB, sha256 {expected}; resumed twice: "
          + ("the same" if same else "DIFFERENT"))
    bench.remove("model")
    if not same:
        raise SystemExit("the bundle of the resumed conversion differs")
    return {"weights": model.weights, "jobs": options.jobs, "sha256": expected, "same": same, "runs": attempts}

# SPDX-License-Identifier: Apache-2.0
"""kill -9 of xfp alone, or of its guard process and then of xfp, while the processes that it started run.

All of them inherit the lock of the work folder. When the lock is free, and another run can begin, no process of the
killed run has a file of the conversion open, and none of these files changes. The times until then are measured and
reported.
"""
import fcntl
import os
import signal
import time

from common import Failed, PATIENCE_S, SANE, end_session, seeded
from syscalls import cases, check_moved, prepare

# Every fit of a first conversion; and the bundle, while units move into it and xfp removes them from the cache.
CASES = ["convert-first", "drop"]
MOMENTS = {"xfp": 100, "guard": 40}


def points(_, __):
    """IDs: survivors/CASE/xfp|guard/N"""
    return (f"survivors/{case}/{who}/{number}" for case in CASES for who, count in MOMENTS.items()
            for number in range(count))


def processes(session):
    """{process: parent} of a session, without zombies."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                state, parent, _, its = file.read().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its) == session and state not in "ZX":
            found[int(entry)] = int(parent)
    return found


def open_files(process):
    found = []
    try:
        for number in os.listdir(f"/proc/{process}/fd"):
            found.append(os.readlink(f"/proc/{process}/fd/{number}"))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    return found


def kill(process, who):
    """Kill xfp and, before it, if requested, the guard: the child of xfp that leads a process group."""
    for child, parent in processes(process.pid).items() if who == "guard" else ():
        try:
            if parent == process.pid and os.getpgid(child) == child:
                os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.kill(process.pid, signal.SIGKILL)


def take_lock(path):
    """The file, open and locked; None if xfp was killed before it created one."""
    deadline = time.monotonic() + PATIENCE_S
    try:
        lock = open(path, "rb")
    except FileNotFoundError:
        return None
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Failed("the lock of the work folder is still held") from None
            time.sleep(0.0002)


def measure(scene, case, who, number, seed):
    """(processes left right after the kill, seconds until the lock was free, seconds until all were gone)"""
    command = [*case.command, "-j3"]
    if case.name not in scene.usual_seconds:
        prepare(scene, case)
        began = time.monotonic()
        scene.run(command)
        scene.usual_seconds[case.name] = time.monotonic() - began
    prepare(scene, case)
    process = scene.start(command)
    part = (number + seeded(seed, case.name, who, number).random()) / MOMENTS[who]
    time.sleep(scene.usual_seconds[case.name] * part)
    try:
        kill(process, who)
        began = time.monotonic()
        there = len(processes(process.pid).keys() - {process.pid})
        lock = take_lock(scene.path("out.xfp.work", "lock"))
        free, before = time.monotonic() - began, scene.live()
        if lock:
            check_open(scene, process.pid)
        while processes(process.pid):
            if time.monotonic() - began > PATIENCE_S:
                raise Failed("processes of the killed run do not end")
            time.sleep(0.0002)
        gone = time.monotonic() - began
        changed = {path for path, mark in scene.live().items() if before.get(path) != mark} | \
            before.keys() - scene.live().keys()
        if lock and changed:
            raise Failed(f"written after the lock was free: {', '.join(sorted(changed))}")
        if lock:
            lock.close()
    finally:
        end_session(process.pid)
        scene.check_status(scene.wait(process), SANE, True)
    return there, free, gone


def check_open(scene, session):
    for process in processes(session):
        for path in open_files(process):
            if path.startswith(tuple(scene.path(name) for name in ("out.xfp", ".out.xfp", "cache"))):
                raise Failed(f"the lock is free, and a process has {os.path.relpath(path, scene.folder)} open")


def run(scene, point, seed):
    _, name, who, number = point.split("/")
    case = cases(scene)[name]
    scene.measured = (f"{name}, {who} killed", *measure(scene, case, who, int(number), seed))
    scene.check_names()
    if case.drops:
        check_moved(scene, case.state[0], True)
    else:
        scene.check_rerun(case.state[0])
    return case.state[0]


def summary(measured):
    """A line for each case and killed process: times of those kills that left processes."""
    for kind in sorted({kind for kind, *_ in measured}):
        times = [[1000 * free, 1000 * gone] for its, there, free, gone in measured if its == kind and there]
        line = f"{kind} {sum(its == kind for its, *_ in measured)} times: processes left {len(times)} times"
        for what, ms in zip(["lock free", "all gone"], map(sorted, zip(*times))):
            line += f"; {what} after {ms[len(ms) // 2]:.0f} ms (median), {ms[len(ms) * 9 // 10]:.0f} ms (90 %), " \
                f"{ms[-1]:.0f} ms (maximum)"
        yield line

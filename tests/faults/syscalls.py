# SPDX-License-Identifier: Apache-2.0
"""System calls that fail, and a kill at each: strace injects both, into static and dynamic programs alike.

strace counts calls per process, so each program is run by hand for one unit; for `xfp convert` and make, only the
process itself is traced, not its children. In the case `whole` all of them are, and the Nth call of every process
fails, for the first forty and then every 25th. The errors that fit a call are used in turn.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import time

from common import CALIBRATED, Failed, SANE, STAGE_SANE, STATIC, Skipped, describe, end_session, seeded

# Not brk: the kernel never answers it with an error, and libc crashes when strace does.
ERRORS = {
    "openat": ["EMFILE", "EACCES", "EIO"],
    "read": ["EIO", "EINTR"], "pread64": ["EIO", "EINTR"],
    "write": ["ENOSPC", "EINTR", "EIO"], "pwrite64": ["ENOSPC", "EIO"],
    "fsync": ["EIO"], "fdatasync": ["EIO"], "close": ["EIO"],
    "rename": ["EACCES", "ENOSPC"], "renameat": ["EACCES"], "renameat2": ["EACCES"],
    "mkdir": ["ENOSPC", "EACCES"], "unlink": ["EACCES", "EIO"], "ftruncate": ["ENOSPC"],
    "getdents64": ["EIO"], "flock": ["ENOLCK"], "mmap": ["ENOMEM"],
    "clone": ["EAGAIN"], "clone3": ["EAGAIN"], "fork": ["EAGAIN"], "vfork": ["EAGAIN"],
}
READS_WEIGHTS = {"inspect", "survey", "outlier-extract", "lloyd-fit", "libfit", "pack", "pack-rows", "pack-kept",
                 "verify"}
CALIBRATES = {"calibrate", "calibrate-hit", "calibrate-next", "calibrate-begin", "survey", "survey-hit", "libfit",
              "libfit-hit", "autoselect", "pack", "convert", "drop", "whole"}
# A kill between two calls without side effects equals a kill before the next one that has some.
LOOKS = {"read", "pread64", "mmap", "getdents64"}
MOMENTS = 200  # number of kills of a whole conversion at spaced times

Case = collections.namedtuple("Case", "name command state allowed sane follow drops")


def cases(scene):
    """{name: Case}. A stage runs by hand from the state just before it (stage), or with all results present
    (stage-hit)."""
    library, calibrated = scene.unit_with("library"), scene.model == CALIBRATED
    alone = [unit for unit in sorted({name.split("-")[0] for name in scene.references["same"][1]})
             if list(scene.keys(unit)) == ["packed"]]
    stages = [("survey", "survey", library), ("outlier-extract", "outliers", library), ("libfit", "library", library),
              ("autoselect", "choice", library), ("pack", "packed", library)]
    if calibrated:
        stages += [("calibrate", "inputs", "l000000"), ("calibrate-next", "inputs", "l000001")]
    else:
        rows = scene.unit_with("fit", without="library")
        stages += [("lloyd-fit", "fit", rows), ("pack-rows", "packed", rows), ("pack-fp8", "packed", alone[0]),
                   ("pack-kept", "packed", alone[1])]
    found = {}

    def add(name, command, state, sane=frozenset(STAGE_SANE), allowed=("same",), follow=False, drops=False):
        found[name] = Case(name, command, state, allowed, sane, follow, drops)

    for name, stamp, unit in stages:
        program = "xfp-" + (name if name in ("outlier-extract", "lloyd-fit") else name.split("-")[0])
        add(name, scene.by_hand(program, unit), ("before-" + name, before(scene, unit, stamp)))
        add(name + "-hit", scene.by_hand(program, unit), ("no-bundle", NO_BUNDLE))
    add("bundle", scene.by_hand("xfp-bundle", "out.xfp"), ("no-bundle", NO_BUNDLE))
    add("inspect", ["xfp-inspect", "--work", "out.xfp.work", *scene.options("same"), "m"],
        ("no-bundle", NO_BUNDLE))
    add("verify", ["xfp-verify", "out.xfp", "--source", "m"], ("finished", []), SANE)
    if calibrated:
        add("calibrate-begin", ["xfp-calibrate", "--work", "out.xfp.work", "--begin", "--tokens", "m/ids.npy", "m"],
            ("no-calibration", [*NO_BUNDLE, "out.xfp.work/calibration.h5"]))
    convert = scene.convert_command()
    one_unit = ("before-outlier-extract", before(scene, library, "outliers"))
    if calibrated:
        one_unit = ("before-calibrate", before(scene, "l000000", "inputs"))
    add("convert", convert, one_unit, SANE)
    add("convert-again", convert, ("finished", []), SANE)
    add("convert-first", convert, ("nothing", None), SANE)
    add("convert-floor", scene.convert_command("floor"), ("finished", []), SANE, ("same", "floor"))
    # Surveys exist; the solution, the assignment, and its fits and units do not.
    add("goal", scene.convert_command("goal"), ("finished", []), SANE, ("same", "goal"))
    # Units move from the cache into the bundle; faults on both sides of that. They do not if there is a goal.
    if calibrated:
        add("drop", [*scene.convert_command("floor"), "--drop-cache"], ("finished", []), SANE, ("same", "floor"),
            drops=True)
    else:
        add("drop", [*convert, "--drop-cache"], ("no-bundle", NO_BUNDLE), SANE, drops=True)
    add("drop-bundle", [*convert, "--drop-cache"], ("no-bundle", NO_BUNDLE), SANE, drops=True)
    add("make", convert, one_unit, SANE)
    add("make-unit", convert, one_unit, SANE)
    add("whole", convert, one_unit, SANE | {127}, follow=True)  # 127: the loader's own, of xfp itself
    return found


def tried(scene):
    """Cases of packed checkpoints: only programs that read them, as the others do not depend on packing; of calibrated
    conversions, those that differ."""
    names = CALIBRATES if scene.model == CALIBRATED else READS_WEIGHTS
    return {name: case for name, case in cases(scene).items() if not scene.model or name in names}


NO_BUNDLE = ["out.xfp", "out.xfp.work/bundle"]


def before(scene, unit, stamp):
    """The files that are missing just before a stage of a unit ran."""
    keys = scene.keys(unit)
    later = list(keys)[list(keys).index(stamp):]
    gone = NO_BUNDLE + [scene.artifact(keys[name]) for name in later]
    gone += [f"out.xfp.work/{unit}-{name}" for name in later]
    if stamp == "inputs":  # and units that need them
        gone += before(scene, scene.unit_with("library"), "survey")
    return gone + ([f"out.xfp.work/{unit}-fits.mk"] if stamp == "survey" else [])


def prepare(scene, case):
    name, remove = case.state
    if name == "finished":
        return scene.finished()
    if remove is None:
        if name not in scene.states:
            scene.finished()
            scene.states[name] = {}
        scene.restore(name)
        for folder in ["out.xfp.work", "cache"]:
            shutil.rmtree(scene.path(folder), ignore_errors=True)
        return name
    return scene.state(name, remove)


def traced(scene, case, *how):
    """Run the case under strace; for make the outer one, or that of one unit, by a folder that is first in PATH."""
    trace = ["strace", "-qq", "-o", scene.path("trace"), *how]
    if os.path.exists(scene.path("trace")):
        os.unlink(scene.path("trace"))
    if case.name == "drop-bundle":
        if os.path.exists(scene.path("first", "make")):
            os.unlink(scene.path("first", "make"))
        scene.put_first("xfp-bundle", f'exec {" ".join(trace)} {shutil.which("xfp-bundle")} "$@"')
        ended = scene.run([scene.path("first", "xfp"), *case.command[1:]])
        os.unlink(scene.path("first", "xfp-bundle"))
        return ended
    if not case.name.startswith("make"):
        return scene.run([*trace, *(["-f"] if case.follow else []), *case.command])
    script, make, trace = scene.path("first", "make"), shutil.which("make"), " ".join(trace)
    outer, inner = (trace, "") if case.name == "make" else ("", trace)
    scene.put_first("make", f'case "$*" in\n*unit.mk*) exec {inner} {make} "$@" ;;\nesac\n'
                            f'exec {outer} {make} "$@" MAKE={script}')
    return scene.run([scene.path("first", "xfp"), *case.command[1:]])


def calls_of(scene, case):
    """{call: (first, last)}, without the loader's calls before main."""
    prepare(scene, case)
    ended = traced(scene, case, "-e", "trace=" + ",".join([*ERRORS, "munmap"]))
    if ended.status not in case.sane:
        raise Failed("without any fault: " + describe(ended))
    counts, first, loading = collections.Counter(), {}, not case.follow and case.command[0] not in STATIC
    each = collections.defaultdict(collections.Counter)
    with open(scene.path("trace"), encoding="utf-8", errors="replace") as file:
        for line in file:
            called = re.match(r"(\d+ +)?(\w+)\(", line)
            if not called:
                continue
            counts[called[2]] += 1
            each[called[1]][called[2]] += 1
            if loading and called[2] == "munmap":  # ld.so.cache: the last file that the loader reads
                first, loading = dict(counts), False
    if case.follow:
        counts = {call: max(process[call] for process in each.values()) for call in ERRORS}
    if os.environ.get("XFP_TEST_SANITIZERS"):
        counts["mmap"] = 0  # most of them the sanitizer's own
    return {call: (first.get(call, 0) + 1, counts[call]) for call in ERRORS if counts[call]}


def points(scene, seed):
    """IDs: calls/CASE/CALL/N/ERROR, kills/CASE/CALL/N, kills/at/N."""
    why = not_possible()
    if why:
        yield f"calls/{why}"
        yield f"kills/{why}"
        return
    kills = []
    for case in tried(scene).values():
        for call, (first, last) in calls_of(scene, case).items():
            for number in range(first, last + 1):
                if case.follow and (call == "mmap" or (number > 40 and number % 25)):
                    continue  # the loader maps files in every program
                errors = ERRORS[call]
                yield f"calls/{case.name}/{call}/{number}/{errors[(number + seed) % len(errors)]}"
                if call not in LOOKS:
                    kills.append(f"kills/{case.name}/{call}/{number}")
    yield from kills
    yield from (f"kills/at/{number}" for number in range(MOMENTS))


def not_possible():
    if not shutil.which("strace"):
        return "SKIP/strace is not installed"
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "SKIP/this machine does not permit ptrace" if tried.returncode else None


def run(scene, point, seed):
    kind, name, *rest = point.split("/")
    if name == "SKIP":
        raise Skipped(rest[0])
    if name == "at":
        return kill_at(scene, int(rest[0]), seed)
    case = cases(scene)[name]
    state = prepare(scene, case)
    kill = kind == "kills"
    fault = "signal=KILL" if kill else "error=" + rest[2]
    ended = traced(scene, case, "-e", f"trace={rest[0]}", "-e", f"inject={rest[0]}:{fault}:when={rest[1]}")
    with open(scene.path("trace"), encoding="utf-8", errors="replace") as file:
        injected = [line.strip() for line in file if "INJECTED" in line or "killed by SIGKILL" in line]
    if not injected:
        scene.check_status(ended, case.sane)
        raise Skipped("the call did not come this time")
    try:
        mute = any(re.search(r"write\(2,", line) for line in injected)
        scene.check_status(ended, case.sane | ({-9} if kill else set()), kill, mute)
        scene.wait_for_lock()
        scene.check_names(case.allowed)
        if not ended.status and case.command[:2] == ["xfp", "convert"]:
            scene.check_bundle(ended, case.allowed[-1])
        if case.allowed[-1] != "same":
            scene.wait_for_lock()
            scene.expect(scene.convert(case.allowed[-1]), case.allowed[-1])
        if case.drops:
            check_moved(scene, state, kill)
        else:
            scene.check_rerun(state)
    except Failed as problem:
        raise Failed(f"{injected[0][:160]}\n  {problem}") from None
    return state


def check_moved(scene, state, killed):
    """Artifacts may be missing if the bundle has them: after a kill, nothing that was packed is made again."""
    scene.wait_for_lock()
    ended = scene.convert()
    scene.expect(ended)
    repacked = json.loads(ended.out)["repacked"]
    if killed and repacked and scene.model != CALIBRATED:  # whose units were packed with other options
        raise Failed(f"rerun: {repacked} units that had been packed are made again: {describe(ended)}")
    scene.check_rerun(state, damaged=scene.states[state])


def kill_at(scene, number, seed):
    """Kill all processes of a first conversion at once, at one of many moments."""
    case = cases(scene)["convert-first"]
    if "kill" not in scene.usual_seconds:
        prepare(scene, case)
        began = time.monotonic()
        scene.run(case.command)
        scene.usual_seconds["kill"] = time.monotonic() - began
    state = prepare(scene, case)
    process = scene.start(case.command)
    time.sleep(scene.usual_seconds["kill"] * (number + seeded(seed, number).random()) / MOMENTS)
    end_session(process.pid)
    ended = scene.wait(process)
    scene.check_status(ended, SANE | {-9}, True)
    scene.check_names()
    scene.check_rerun(state)
    return state

# SPDX-License-Identifier: Apache-2.0
"""Failing allocations, one at a time: fail_allocation.c, preloaded or, for static programs, linked."""
import bisect
import collections
import os
import shutil
import subprocess

from common import Failed, Skipped, STATIC, describe
from syscalls import cases, check_moved, prepare, tried

# Points a place that asks for memory, spaced: one of ours, or of libc, which regexec and strdup do for us; and one of
# a library.
OWN, OTHERS = 20, 2
SYMBOLS = {}
OTHERS_BEGIN = ("H5", "ld-", "lib")  # prefixes of the functions of libraries, or of those linked into static programs
# HDF5 tells of a failure by allocating, and crashes or exits where that fails as well; glibc's regcomp frees twice what
# it could not make larger. Nobody can catch that. All else must hold then, too.
CRASHES = {-11, -6, 255}
CRASHING = ("H5", "libhdf5")
LEFT_OUT = {"make", "make-unit", "whole", "convert-first"}  # not ours, or the same program


def failing(scene, case, number):
    """The case with its Nth allocation failing; for `xfp convert` in xfp itself."""
    faults = os.path.join(scene.tools, "faults")
    program, *arguments = case.command
    environment = {"FAIL_ALLOCATION": f"{program} {number} {scene.path('allocation')}"}
    if program in STATIC:
        program = os.path.join(faults, program)
    else:
        environment["LD_PRELOAD"] = os.path.join(faults, "fail_allocation.so")
    if os.path.exists(scene.path("allocation")):
        os.unlink(scene.path("allocation"))
    ended = scene.run([program, *arguments], environment)
    told = []
    if os.path.exists(scene.path("allocation")):
        with open(scene.path("allocation"), encoding="utf-8") as file:
            told = file.read().splitlines()
    return program, ended, told


def who(program, told):
    """The function that allocated, or its library if that has no symbols."""
    where, *file = told.split(None, 1)
    file = shutil.which(file[0] if file else program)
    if not file:
        return os.path.basename(told.split()[-1])
    if file not in SYMBOLS:
        listed = subprocess.run(["nm", "-n", "--defined-only", file], capture_output=True, text=True, check=False)
        SYMBOLS[file] = [(int(line.split()[0], 16), line.split()[2]) for line in listed.stdout.splitlines()
                         if line.split()[1] in "tTwWi"]
    at = bisect.bisect_right(SYMBOLS[file], (int(where, 16), "~")) - 1
    return SYMBOLS[file][at][1] if at >= 0 else os.path.basename(file)


def points(scene, _):
    """IDs: memory/CASE/N"""
    if os.environ.get("XFP_TEST_SANITIZERS"):
        yield "memory/SKIP/sanitizers have an allocator of their own"
        return
    for name, case in tried(scene).items():
        if name in LEFT_OUT:
            continue
        prepare(scene, case)
        program, ended, told = failing(scene, case, 0)
        if not told or ended.status:
            raise Failed("allocations are not counted: " + describe(ended))
        places = collections.defaultdict(list)
        for number, place in enumerate(told, 1):
            places[place].append(number)
        chosen = []
        for place, numbers in places.items():
            asker = who(program, place)
            own = asker.startswith("libc.") or not asker.startswith(OTHERS_BEGIN)
            chosen += numbers[::-(-len(numbers) // (OWN if own else OTHERS))]
        yield from (f"memory/{name}/{number}" for number in sorted(chosen))


def run(scene, point, _):
    _, name, number = point.split("/")
    if name == "SKIP":
        raise Skipped(number)
    case = cases(scene)[name]
    state = prepare(scene, case)
    program, ended, told = failing(scene, case, int(number))
    if not told:
        raise Skipped("there were fewer allocations this time")
    asker = who(program, told[0])
    try:
        library = asker.startswith(CRASHING) or (asker.startswith("libc.") and "free()" in ended.err)
        if not (ended.status in CRASHES and library):
            scene.check_status(ended, case.sane)
        scene.wait_for_lock()
        scene.check_names(case.allowed)
        if not ended.status and case.command[:2] == ["xfp", "convert"]:
            scene.check_bundle(ended, case.allowed[-1])
        if case.drops:
            check_moved(scene, state, True)
        else:
            scene.check_rerun(state)
    except Failed as problem:
        raise Failed(f"the allocation was asked for by {asker}: {problem}") from None
    return state

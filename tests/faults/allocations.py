# SPDX-License-Identifier: Apache-2.0
"""Allocations that fail, one at a time: fail_allocation.c, preloaded or, where a program is static, linked into it."""
import bisect
import os
import subprocess

from common import Failed, Skipped, describe
from syscalls import cases, prepare

# Of more than this, those that follow the first are spaced: a library asks for many small things of one sort.
ALL = 400
STATIC = {"xfp-survey", "xfp-outlier-extract", "xfp-lloyd-fit", "xfp-libfit", "xfp-autoselect", "xfp-pack"}
SYMBOLS = {}
# HDF5 tells of a failure by allocating, and crashes or exits where that fails as well: nobody can catch it. All else
# must hold then, too.
CRASHES = {-11, -6, 255}
LEFT_OUT = {"make", "make-unit", "whole", "convert-first"}  # not ours; or the same program again


def failing(scene, case, number):
    """The case, with its Nth allocation failing; of `xfp convert` that of xfp itself."""
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
    told = None
    if os.path.exists(scene.path("allocation")):
        with open(scene.path("allocation"), encoding="ascii") as file:
            told = file.read()
    if told and not told.isdigit():
        told = who(program, told)
    return ended, told


def who(program, told):
    """The function that asked, or the library: in a static program by its symbols."""
    how, where = told.split(None, 1)
    if how == "by":
        return os.path.basename(where)
    if program not in SYMBOLS:
        listed = subprocess.run(["nm", "-n", "--defined-only", program], capture_output=True, text=True, check=True)
        SYMBOLS[program] = [(int(line.split()[0], 16), line.split()[2]) for line in listed.stdout.splitlines()
                            if line.split()[1] in "tTwWi"]
    at = bisect.bisect_right(SYMBOLS[program], (int(where, 16), "")) - 1
    return SYMBOLS[program][at][1]


def points(scene, _):
    """IDs: memory/CASE/N"""
    if os.environ.get("XFP_TEST_SANITIZERS"):
        yield "memory/SKIP/sanitizers have an allocator of their own"
        return
    for name, case in cases(scene).items():
        if name in LEFT_OUT:
            continue
        prepare(scene, case)
        ended, told = failing(scene, case, 0)
        if not told or not told.isdigit() or ended.status:
            raise Failed("allocations are not counted: " + describe(ended))
        step = max(1, (int(told) - ALL) // ALL)
        yield from (f"memory/{name}/{number}" for number in range(1, int(told) + 1)
                    if number <= ALL or number % step == 0)


def run(scene, point, _):
    _, name, number = point.split("/")
    if name == "SKIP":
        raise Skipped(number)
    case = cases(scene)[name]
    state = prepare(scene, case)
    ended, told = failing(scene, case, int(number))
    if not told or told.isdigit():
        raise Skipped("there were fewer allocations this time")
    try:
        if not (ended.status in CRASHES and (told.startswith("H5") or told.startswith("libhdf5"))):
            scene.check_status(ended, case.sane)
        scene.wait_for_lock()
        scene.check_names(case.allowed)
        if not ended.status and case.command[:2] == ["xfp", "convert"]:
            scene.check_bundle(ended, case.allowed[-1])
        scene.check_rerun(state)
    except Failed as problem:
        raise Failed(f"the allocation was asked for by {told}: {problem}") from None
    return state

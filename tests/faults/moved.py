# SPDX-License-Identifier: Apache-2.0
"""Damage to the files of an unfinished bundle with --drop-cache: the pending file, its record `moving`, and receipts.

The conversion was killed when half of the units had moved into the pending file (half), when all had and the file was
about to be renamed (whole), or just after that (named; the bundle itself is damaged instead). A restart gives the
reference's bytes or is refused with a message; the next one gives those bytes. In every third point the restart is
killed as well, and the files that it leaves are damaged again.
"""
import os
import re
import shutil
import tarfile

from common import Failed, SANE, Skipped, describe, seeded
from syscalls import NO_BUNDLE, not_possible

PENDING, MOVING = ".out.xfp.pending", "out.xfp.work/moving"
STATES = {"half": PENDING, "whole": PENDING, "named": "out.xfp"}
SPACED = 60  # evenly spaced bytes of these, in addition to those at its members' bounds
CUTS = ["empty", "head", "cut", "longer", "zeros", "gone", "other"]


def points(scene, seed):
    """IDs: moved/STATE/FILE/BYTE or WAY"""
    why = not_possible()
    if why:
        yield f"moved/{why}"
        return
    for state in STATES:
        ready(scene, state)
        for file in [STATES[state], MOVING, *(sorted(receipts(scene))[::6] if state != "named" else ())]:
            yield from (f"moved/{state}/{file.replace('/', ':')}/{at}" for at in places(scene, state, file, seed))
            yield from (f"moved/{state}/{file.replace('/', ':')}/{way}" for way in CUTS)


def receipts(scene):
    return [os.path.join("out.xfp.work", name) for name in os.listdir(scene.path("out.xfp.work"))
            if name.endswith("-receipt")]


def places(scene, state, file, seed):
    """Offsets: all of the record; in the bundle the first byte of each header, the first and last of each member, the
    last of its padding, and SPACED others; every fortieth of a receipt."""
    size = os.path.getsize(scene.path(file))
    if file == MOVING:
        return range(size)
    if file != STATES[state]:
        return range(seed % 40, size, 40)
    step = max(1, size // SPACED)
    found = set(range(seeded(seed, state).randrange(step), size, step))
    scene.finished()
    with tarfile.open(scene.path("out.xfp")) as bundle:
        for member in bundle:
            end = member.offset_data + member.size
            found.update([member.offset, member.offset_data, end - 1, end + -end % 512 - 1])
    ready(scene, state)
    return sorted(at for at in found if at < size)


# ---- states -------------------------------------------------------------------------------------


def bundling(scene, kill=None, after=""):
    """Convert with --drop-cache; kill xfp-bundle at rename number `kill`, or run the commands `after` when it has ended.
    Returns the result and the renames."""
    trace = ["strace", "-qq", "-o", scene.path("trace"), "-e", "trace=rename"]
    if kill:
        trace += ["-e", f"inject=rename:signal=KILL:when={kill}"]
    scene.put_first("xfp-bundle", f'{" ".join(trace)} {shutil.which("xfp-bundle")} "$@" || exit\n{after}')
    ended = scene.run([scene.path("first", "xfp"), *scene.convert_command()[1:], "--drop-cache"])
    os.unlink(scene.path("first", "xfp-bundle"))
    scene.wait_for_lock()
    if not os.path.exists(scene.path("trace")):
        return ended, []
    with open(scene.path("trace"), encoding="utf-8", errors="replace") as file:
        return ended, [line for line in file if re.match(r"rename\(", line)]


def ready(scene, state):
    if state in scene.states:
        scene.restore(state)
        return state
    scene.state("no-bundle", NO_BUNDLE)
    ended, renames = bundling(scene)
    if ended.status:
        raise Failed("without any fault: " + describe(ended))
    moves = [number for number, line in enumerate(renames, 1) if '/moving")' in line]
    named = next(number for number, line in enumerate(renames, 1) if PENDING + '"' in line)
    scene.state("no-bundle", NO_BUNDLE)
    if state == "named":
        bundling(scene, after="exit 1")
    else:
        bundling(scene, named if state == "whole" else moves[len(moves) // 2] + 1)
    if not os.path.exists(scene.path(STATES[state])) or not os.path.exists(scene.path(MOVING)):
        raise Failed(f"{state}: no pending bundle was kept")
    scene.save(state)
    return state


# ---- points -------------------------------------------------------------------------------------


def harm(scene, state, file, how, draw):
    path = scene.path(file)
    if not os.path.exists(path):
        return
    size = os.path.getsize(path)
    if how == "gone":
        os.unlink(path)
        return
    if how == "other":  # a valid file of the other state
        other = "whole" if state == "half" else "half"
        if other in scene.states and os.path.exists(scene.saved(other, file)):
            shutil.copy2(scene.saved(other, file), path)
        return
    with open(path, "r+b") as opened:
        if how in ("empty", "head", "cut"):
            opened.truncate({"empty": 0, "head": min(size, 512), "cut": size // 2 + 1}[how])
        elif how == "longer":
            opened.seek(size)
            opened.write(bytes(513))
        else:
            opened.seek(size // 3 if how == "zeros" else min(int(how), max(0, size - 1)))
            at, old = opened.tell(), opened.read(4096 if how == "zeros" else 1)
            opened.seek(at)
            opened.write(bytes(len(old)) if how == "zeros" else bytes(byte ^ 1 << draw.randrange(8) for byte in old))


def run(scene, point, seed):
    _, state, *rest = point.split("/")
    if state == "SKIP":
        raise Skipped(rest[0])
    file, how = rest[0].replace(":", "/"), rest[1]
    draw = seeded(seed, point)
    if how == "other":
        for name in ["half", "whole"]:
            ready(scene, name)
    ready(scene, state)
    harm(scene, state, file, how, draw)
    if not draw.randrange(3):
        ended, _ = bundling(scene, draw.randrange(2, 12))
        scene.check_status(ended, SANE, True)
        check_out(scene, file)
        harm(scene, state, file, how, draw)
    ended = scene.convert() if draw.randrange(2) else scene.run([*scene.convert_command(), "--drop-cache"])
    scene.check_status(ended, {0, 1, 2, 3} if file == "out.xfp" else {0, 1, 3})
    if ended.status == 2 and "remove it" in ended.err:  # without a bundle's signature it may be any file
        os.unlink(scene.path(file))
    check_out(scene, file)
    if not ended.status:
        scene.check_bundle(ended, "same")
    ended = scene.convert()
    scene.expect(ended)
    scene.check_debris()
    return state


def check_out(scene, file):
    """A damaged bundle may stay until a conversion has succeeded."""
    scene.wait_for_lock()
    if file != "out.xfp":
        scene.check_names()

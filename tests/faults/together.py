# SPDX-License-Identifier: Apache-2.0
"""Concurrent conversions to different and to the same outputs, with one cache that is collected, checked and
rebuilt."""
import glob
import os
import shutil
import threading

from common import Failed, OPTIONS, SANE, describe, seeded, sha256

ROUNDS = 80
UPKEEP = [["gc"], ["check", "--read-data"], ["rebuild"]]


def points(_, __):
    """IDs: together/ROUND"""
    return (f"together/{number}" for number in range(ROUNDS))


def keep_up(scene, command, over, problems):
    """Repeat a command until the conversions have ended. It may be refused while they run."""
    while True:
        last = over.is_set()
        ended = scene.run(["xfp", "cache", command[0], "--cache", "cache", *command[1:]])
        try:
            scene.check_status(ended, {0, 1})
        except Failed as problem:
            problems.append(str(problem))
        if last or problems:
            return


def run(scene, point, seed):
    draw = seeded(seed, point)
    state = scene.finished()
    for path in glob.glob(scene.path("side*")):
        (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
    if draw.randrange(2):
        shutil.rmtree(scene.path("cache"))
    jobs = [(draw.choice(["out.xfp", "side1.xfp", "side2.xfp"]), draw.choice(list(OPTIONS)))
            for _ in range(draw.choice([2, 3]))]
    upkeep = [draw.choice(UPKEEP) for _ in range(draw.choice([1, 2]))]
    over, problems = threading.Event(), []
    keepers = [threading.Thread(target=keep_up, args=(scene, command, over, problems)) for command in upkeep]
    started = [(out, options, scene.start(scene.convert_command(options, out))) for out, options in jobs]
    for keeper in keepers:
        keeper.start()
    try:
        ended = [(out, options, scene.wait(process)) for out, options, process in started]
    finally:
        over.set()
        for keeper in keepers:
            keeper.join()
    if problems:
        raise Failed(f"beside {jobs}: {problems[0]}")
    for out in {out for out, _ in jobs}:
        check(scene, out, [(options, end) for other, options, end in ended if other == out])
    for command in (["check", "--read-data"], ["rebuild"]):
        after = scene.run(["xfp", "cache", command[0], "--cache", "cache", *command[1:]])
        if after.status:
            raise Failed("afterwards: " + describe(after))
    scene.wait_for_lock()
    scene.expect(scene.convert())
    scene.check_debris()
    return state


def check(scene, out, runs):
    """At least one succeeds, the others may be refused; the files are those of a successful one."""
    for _, ended in runs:
        scene.check_status(ended, SANE if len(runs) > 1 else {0})
    right = [scene.references[options][0] for options, ended in runs if not ended.status]
    if not right:
        raise Failed(f"{out}: none came through: " + describe(runs[0][1]))
    if sha256(scene.path(out)) not in right:
        raise Failed(f"{out}: status 0, and other bytes: " + describe(runs[0][1]))

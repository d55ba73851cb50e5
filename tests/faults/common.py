# SPDX-License-Identifier: Apache-2.0
"""Shared by all kinds of faults, except the scene."""
import collections
import hashlib
import os
import random
import signal

PATIENCE_S = 60
MODEL = ["--family", "qwen3-moe", "--layers", "1", "--hidden", "32", "--intermediate", "16", "--heads", "2",
         "--kv-heads", "1", "--num-experts", "2", "--vocab", "16"]
# Checkpoints that are packed, in several files each: groups in an order of their own, 4-bit and 8-bit floats; and codes
# that lie by columns. But for that they are as the other.
PACKED = {"mixed": "ct-small", "gptq": "gptq-small"}
# Both fits occur (v has a codebook per row, the experts a library), one fp8 unit, and three kept units. The less work,
# the more points per minute.
USUAL = ["--override", "role:q=keep", "--override", "role:k=keep", "--override", "role:o=keep",
         "--format", "embedding=keep", "--lm-head", "fp8"]
V2 = [*USUAL, "--mode", "v2"]
# `floor` requires measurements of other candidates; `v2-floor` only a new choice among the measured ones. `goal` solves
# for a size with the same surveys: one unit is then assigned v2c with outliers, three fp8.
OPTIONS = {"same": USUAL, "floor": [*USUAL, "--min-cos-strict", "0.97"], "goal": [*USUAL, "--target-size", "116kB"],
           "v2": V2, "v2-floor": [*V2, "--min-cos-strict", "0.95", "--min-cos-lazy", "0.95"]}
# Calibrated conversions by the same names; they keep the inputs of layers (Scene.keep_inputs). Fits have codes, surveys
# have scales, and the head reads the stream of the only layer.
CALIBRATED = "calibrated"
IDS = [*USUAL[:-2], "--calibrate-ids", "m/ids.npy"]
BITS = [*IDS, "--mode", "v2c", "--on-miss", "best", "--bits"]
CALIBRATED_OPTIONS = {"same": [*IDS, "--target-size", "158kB"], "floor": [*BITS, "2,3"],
                      "goal": [*IDS, "--target-size", "150kB"], "v2": [*BITS, "2"],
                      "v2-floor": [*BITS, "2", "--min-cos-strict", "0.95", "--min-cos-lazy", "0.95"]}
# Gives some experts of packed models a library, too.
PACKED_OPTIONS = ["--override", "role:gate=floor:0.98"]
# Tools that no loader and no preloaded library reaches.
STATIC = {"xfp-survey", "xfp-outlier-extract", "xfp-lloyd-fit", "xfp-libfit", "xfp-autoselect", "xfp-pack"}
SANE = {0, 1, 2, 3, 4}
STAGE_SANE = SANE | {75, 76}  # base/xfp_error.h: an earlier artifact is missing; more bits are needed


class Failed(Exception):
    """An invariant does not hold."""


class Skipped(Exception):
    """The point could not be tried; the text is the reason."""


Ended = collections.namedtuple("Ended", "command status out err")


def tail(text, lines=6):
    return "\n".join("    " + line for line in text.strip().split("\n")[-lines:])


def describe(ended):
    return f"{' '.join(ended.command)}\n    ended with status {ended.status}\n{tail(ended.err or ended.out)}"


def seeded(*what):
    """Random numbers seeded by the seed and the point's name, so that a repeated point draws the same."""
    return random.Random("/".join(str(part) for part in what))


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def mark(path, st=None):
    """A value that differs whenever the file was written, replaced or touched."""
    st = st or os.lstat(path)
    return st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns


def entries_below(folder, prefix=""):
    """(relative path, directory entry) of each file: called for every point, so without os.walk and joined paths."""
    if os.path.isdir(folder):
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from entries_below(entry.path, prefix + entry.name + "/")
                else:
                    yield prefix + entry.name, entry


def files_below(folder):
    return [entry.path for _, entry in entries_below(folder)]


def end_session(leader):
    """Kill every process of a session, in any process group."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.getsid(int(entry)) == leader:
                    os.kill(int(entry), signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass

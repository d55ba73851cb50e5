# SPDX-License-Identifier: Apache-2.0
"""A tiny conversion, states of it to start from, and the invariants to check after each point."""
import fcntl
import glob
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

from common import (CALIBRATED, CALIBRATED_OPTIONS, Ended, Failed, MODEL, OPTIONS, PACKED, PACKED_OPTIONS, PATIENCE_S,
                    SANE, describe, end_session, entries_below, files_below, mark, sha256)

MAKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "make-packed-checkpoint.py")


class Scene:
    """A folder with a checkpoint `m`, a conversion of it (out.xfp, out.xfp.work, cache), and saved states."""

    def __init__(self, folder, tools, model=None, first=None):
        """`model`: one of PACKED, CALIBRATED, or None; `first`: a scene of the same model, with known references."""
        self.folder, self.tools, self.model = folder, tools, model
        self.states, self.references = {}, {}
        self.usual_seconds = {}  # {name: duration of a run without faults}
        self.measured = None  # set by the last point, for the summary of its kind
        os.makedirs(self.path("elsewhere"))
        if first:
            shutil.copytree(first.path("m"), self.path("m"))
            self.references.update(first.references)
            return
        made = self.run([sys.executable, MAKER, PACKED[model], "m", "plain", "--shards", "3"] if model in PACKED else
                        [os.path.join(tools, "make-checkpoint"), *MODEL, "m"])
        if made.status:
            raise Failed(describe(made))
        if model == CALIBRATED:
            self.write_ids()
        for name in OPTIONS:
            self.refer(name)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def options(self, name):
        if self.model == CALIBRATED:
            return CALIBRATED_OPTIONS[name]
        return OPTIONS[name] + (PACKED_OPTIONS if self.model else [])

    def write_ids(self):
        """Write token ids of four windows for --calibrate-ids."""
        header = repr({"descr": "<u4", "fortran_order": False, "shape": (4, 16)}).ljust(117).encode() + b"\n"
        ids = [number * number * 7 % 16 for number in range(64)]
        with open(self.path("m", "ids.npy"), "wb") as file:
            file.write(struct.pack("<8sH118s64I", b"\x93NUMPY\x01\x00", len(header), header, *ids))

    # ---- running ----------------------------------------------------------------------------------

    def start(self, command, environment=None):
        settings = {name: value for name, value in os.environ.items() if not name.startswith("XFP_") or
                    name == "XFP_DATADIR"}
        settings.update(OMP_NUM_THREADS="1", LC_ALL="C")
        if os.environ.get("XFP_TEST_SANITIZERS"):
            settings["ASAN_OPTIONS"] = "detect_leaks=0"  # impossible under ptrace
        settings.update(environment or {})
        return subprocess.Popen(command, cwd=self.folder, env=settings, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def wait(self, process):
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            end_session(process.pid)
            process.communicate()
            raise Failed(f"{' '.join(process.args)}\n    was still running after {PATIENCE_S} s") from None
        return Ended(process.args, process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def run(self, command, environment=None):
        return self.wait(self.start(command, environment))

    def by_hand(self, program, *arguments):
        """The path of a stage."""
        return [program, "--work", "out.xfp.work", "--cache", "cache", *arguments]

    def convert_command(self, options="same", out="out.xfp", cache="cache", model="m"):
        return ["xfp", "convert", model, "-o", out, "--cache", cache, "-j1", "-q", "--json", *self.options(options)]

    def convert(self, options="same", prefix=(), environment=None):
        return self.run([*prefix, *self.convert_command(options)], environment)

    def put_first(self, tool, script):
        """Put a script in place of a tool: xfp looks for tools in its own folder first, so copies are made there."""
        os.makedirs(self.path("first"), exist_ok=True)
        with open(self.path("first", tool), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script + "\n")
        os.chmod(file.name, 0o755)
        if not os.path.exists(self.path("first", "xfp")):
            shutil.copy2(shutil.which("xfp"), self.path("first", "xfp"))

    # ---- references -------------------------------------------------------------------------------

    def refer(self, name, model="m"):
        """Convert without faults, separately: returns the bundle's digest, and every stamp."""
        shutil.rmtree(self.path("elsewhere"))
        os.mkdir(self.path("elsewhere"))
        self.keep_inputs("elsewhere/c")
        ended = self.run(self.convert_command(name if name in OPTIONS else "same", "elsewhere/o.xfp", "elsewhere/c",
                                              model))
        if ended.status:
            raise Failed("without any fault: " + describe(ended))
        self.references[name] = (sha256(self.path("elsewhere/o.xfp")), self.stamps("elsewhere/o.xfp.work"))

    def keep_inputs(self, cache):
        """Fail into another output, with the same tokens: conversions then keep the inputs of layers for it."""
        if self.model != CALIBRATED:
            return
        ended = self.run([*self.convert_command("same", "elsewhere/failed.xfp", cache)[:-2], "--on-miss", "fail",
                          "--min-cos-strict", "1", "--min-cos-lazy", "1"])
        if not ended.status:
            raise Failed("no floor is missed: " + describe(ended))
        shutil.rmtree(self.path("elsewhere/failed.xfp.work"), ignore_errors=True)

    def stamps(self, work="out.xfp.work"):
        found = {}
        for name in os.listdir(self.path(work)) if os.path.isdir(self.path(work)) else ():
            if name[0] in "ul" and name[1:2].isdigit() and "-" in name and not name.endswith((".mk", "-receipt")):
                with open(self.path(work, name), "rb") as file:
                    found[name] = file.read()
        return found

    def artifact(self, key):
        return os.path.join("cache", "artifacts", key[:2], key + ".h5")

    def keys(self, unit, options="same"):
        """{stamp: key} of one unit or layer, in the order of the stages."""
        stamps = self.references[options][1]
        chain = ["inputs", "survey", "scales", "outliers", "fit", "library", "extended", "extended-library", "choice",
                 "packed"]
        return {stamp: stamps[f"{unit}-{stamp}"].decode().split()[0] for stamp in chain if f"{unit}-{stamp}" in stamps}

    def unit_with(self, stamp, without=None):
        """The first unit that has this kind of artifact; of a calibrated conversion the last, which has experts."""
        units = sorted({name.split("-")[0] for name in self.references["same"][1]}, reverse=self.model == CALIBRATED)
        return next(unit for unit in units if stamp in self.keys(unit) and without not in self.keys(unit))

    # ---- states -----------------------------------------------------------------------------------

    def live(self):
        """{relative path: mark} of all files that a conversion writes."""
        found = {}
        for where in ["out.xfp.work", "cache"]:
            for relative, entry in entries_below(self.path(where), where + "/"):
                found[relative] = mark(entry.path, entry.stat(follow_symlinks=False))
        for relative in ["out.xfp", ".out.xfp.pending"]:
            if os.path.lexists(self.path(relative)):
                found[relative] = mark(self.path(relative))
        return found

    def saved(self, state, relative):
        return self.path("states", state, relative)

    def copy(self, origin, target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            os.unlink(target)
        shutil.copy2(origin, target)

    def save(self, state):
        shutil.rmtree(self.path("states", state), ignore_errors=True)
        self.states[state] = self.live()
        for relative in self.states[state]:
            self.copy(self.path(relative), self.saved(state, relative))

    def adopt(self, state):
        """A bundle written again with the same bytes, and the stamp with its inode, are equivalent."""
        for relative in ["out.xfp", "out.xfp.work/bundle"]:
            if relative in self.states[state] and self.states[state][relative] != mark(self.path(relative)):
                self.copy(self.path(relative), self.saved(state, relative))
                self.states[state][relative] = mark(self.path(relative))

    def restore(self, state):
        """Restore a state by copying only the files that differ."""
        marks, live = self.states[state], self.live()
        for relative in live.keys() - marks.keys():
            os.unlink(self.path(relative))
        changed = [relative for relative in marks if live.get(relative) != marks[relative]]
        for relative in changed:
            self.copy(self.saved(state, relative), self.path(relative))
            marks[relative] = mark(self.path(relative))
        # The bundle's stamp contains the inode, and a copy has another one: xfp must write both again.
        if "out.xfp" in changed and "out.xfp.work/bundle" in marks:
            self.expect(self.convert(), "same")
            self.save(state)

    def finished(self):
        """The state after conversions without faults, from which most others are made."""
        if "finished" not in self.states:
            self.keep_inputs("cache")
            self.expect(self.convert("v2"), "v2")
            self.expect(self.convert(), "same")
            self.save("finished")
        self.restore("finished")
        return "finished"

    def state(self, name, remove):
        """Make the state `name`: a finished conversion without the files that `remove` returns."""
        if name not in self.states:
            self.finished()
            for relative in remove:
                if os.path.lexists(self.path(relative)):
                    os.unlink(self.path(relative))
            self.save(name)
        self.restore(name)
        return name

    # ---- invariants -------------------------------------------------------------------------------

    def check_status(self, ended, sane=frozenset(SANE), killed=False, mute=False):
        """Check for a documented status, with a message unless it is 0, or for the signal that we sent."""
        if ended.status not in sane and not (killed and ended.status in (-signal.SIGKILL, 128 + signal.SIGKILL)):
            raise Failed("no documented status: " + describe(ended))
        if ended.status and not ended.err.strip() and not (killed or mute or ended.status == 76):
            raise Failed("no message: " + describe(ended))

    def check_names(self, allowed=("same",)):
        """Check, after any outcome, that no wrong or partial file has a final name."""
        if os.path.exists(self.path("out.xfp")):
            if sha256(self.path("out.xfp")) not in [self.references[name][0] for name in allowed]:
                raise Failed("out.xfp is there, and wrong")
        right = [self.references[name][1] for name in allowed]
        for name, content in self.stamps().items():
            if content not in [stamps.get(name) for stamps in right]:
                raise Failed(f"the stamp {name} is wrong: {content!r}")

    def expect(self, ended, options="same"):
        """Check a success: the right bytes, and the right digest in the output."""
        if ended.status:
            raise Failed("it should have succeeded: " + describe(ended))
        self.check_bundle(ended, options)

    def check_bundle(self, ended, options):
        right, out = self.references[options][0], self.path("out.xfp")
        if not os.path.exists(out):
            raise Failed("status 0 without a bundle: " + describe(ended))
        if sha256(out) != right:
            raise Failed("status 0 with wrong bytes: " + describe(ended))
        try:
            reported = json.loads(ended.out)["sha256"]
        except (ValueError, KeyError):
            raise Failed("status 0 without a summary: " + describe(ended)) from None
        if reported != right:
            raise Failed(f"status 0 with a wrong SHA-256 in the summary ({reported}): " + describe(ended))

    def check_kept(self, state, damaged=()):
        """Check that no valid artifact of the state was removed, except the inputs of layers whose units are done."""
        inputs = [self.artifact(text.split()[0].decode()) for name, text in self.references["same"][1].items()
                  if name.endswith("-inputs")]
        for relative in self.states[state]:
            if relative.startswith("cache/artifacts/") and relative not in damaged and relative not in inputs:
                if not os.path.exists(self.path(relative)):
                    raise Failed(f"a sound artifact is gone: {relative}")

    def check_debris(self):
        left = [path for where in ["out.xfp.work", "cache"] for path in files_below(self.path(where))] + \
            glob.glob(self.path(".*"))
        left = [path for path in left if path.endswith((".tmp", ".pending"))]
        if left:
            raise Failed(f"debris stays: {os.path.relpath(left[0], self.folder)}")

    def wait_for_lock(self):
        """Check that stages of a killed xfp end by themselves, soon."""
        path, deadline = self.path("out.xfp.work", "lock"), time.monotonic() + PATIENCE_S
        while os.path.exists(path):
            with open(path, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise Failed("the lock of the work folder is still held") from None
            time.sleep(0.002)

    def check_rerun(self, state, damaged=(), options="same"):
        """Check that a run without faults succeeds with the reference's bytes, and that nothing valid was lost."""
        self.wait_for_lock()
        self.check_kept(state, damaged)
        ended = self.convert(options)
        try:
            self.expect(ended, options)
            self.check_kept(state, damaged)
            self.check_debris()
        except Failed as problem:
            raise Failed(f"rerun: {problem}") from None

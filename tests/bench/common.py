# SPDX-License-Identifier: Apache-2.0
"""What the measurements share: generated models, timed commands, fresh conversions, tables."""
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MEASURE_PEAK = [sys.executable, os.path.join(HERE, "..", "measure-peak")]

# k = 2, 3 and 4 measured and one of them packed, whatever it reaches, with outliers and balance.
BITS = ["--bits", "2,3,4", "--on-miss", "best"]
USUAL = ["--mode", "v2", *BITS]


def processor():
    """Its name, and how many of it we may use."""
    name = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


class Timing:
    """Of a command: seconds of wall, and of processor time of it and all that it waited for."""

    def __init__(self, wall, cpu):
        self.wall, self.cpu = wall, cpu


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(command, environment=None):
    """(Timing, standard output) of a command that must succeed."""
    with tempfile.TemporaryFile("w+") as errors:
        cpu, began = processor_time(), time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False,
                              env={**os.environ, **(environment or {})})
        timing = Timing(time.monotonic() - began, processor_time() - cpu)
        if done.returncode:
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{errors.read()}")
    return timing, done.stdout


class Model:
    """A generated checkpoint: one file, in one folder."""

    def __init__(self, path, weights):
        self.path, self.weights = path, weights
        self.file = os.path.join(path, "model.safetensors")


def settle(*paths):
    """Before a run is timed: what it reads is in the page cache, what others wrote is on the disk."""
    os.sync()
    buffer = bytearray(1 << 22)
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


class Conversion:
    """What a run of xfp convert said and left; `stages` are wall seconds by stage, summed over units."""

    def __init__(self, timing, summary, stages):
        self.timing, self.summary, self.stages = timing, summary, stages


def stage_seconds(work):
    """From the events of a work folder: none after a run with nothing to do, and none of inspect."""
    seconds, path = {}, os.path.join(work, "events")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                _, stage, _, _, microseconds, *_ = line.split("\t")
                seconds[stage] = seconds.get(stage, 0) + int(microseconds) / 1e6
    return seconds


class Bench:
    """The scratch folder, and the tools to work in it with."""

    def __init__(self, folder, tools, quick):
        self.folder, self.tools, self.quick = folder, tools, quick

    def path(self, name):
        return os.path.join(self.folder, name)

    def tool(self, name):
        return os.path.join(self.tools, "bench", name)

    def model(self, name, *options):
        """Make the model, replacing one of that name that another run may have left."""
        self.remove(name)
        _, count = timed([self.tool("make-weights"), *options, self.path(name)])
        return Model(self.path(name), int(count))

    def remove(self, *names):
        for name in names:
            shutil.rmtree(self.path(name), ignore_errors=True)

    def fresh(self):
        """Nothing of an earlier conversion is left."""
        self.remove("out.xfp.work", "cache")
        if os.path.exists(self.path("out.xfp")):
            os.unlink(self.path("out.xfp"))

    def command(self, model, jobs, *options):
        return ["xfp", "convert", model.path, "-o", self.path("out.xfp"), "--cache", self.path("cache"),
                f"-j{jobs}", *options]

    def convert(self, model, jobs, *options):
        """What is there of an earlier conversion is used."""
        timing, out = timed([*self.command(model, jobs, *options), "--json", "--quiet"])
        return Conversion(timing, json.loads(out), stage_seconds(self.path("out.xfp.work")))

    def peak(self, model, jobs, *options):
        """measure-peak's account of a fresh conversion; `disk` is what it takes beside the model."""
        self.fresh()
        report = self.path("peak.json")
        timed([*MEASURE_PEAK, "-i", "5" if self.quick else "20", "-d", self.path("out.xfp.work"),
               "-d", self.path("cache"), "-d", self.path("out.xfp"), "-o", report,
               *self.command(model, jobs, *options), "--quiet"])
        with open(report, encoding="utf-8") as file:
            return json.load(file)


def note(text):
    """A figure as soon as it is there: the tables come at the end."""
    print(text, file=sys.stderr, flush=True)


def table(head, rows):
    """A Markdown table, its columns padded so that it reads well as it is."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    wide = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, wide)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in wide) + "|")
    return "\n".join(lines)


def count(value):
    """234913792 -> 235 M."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return str(value)


def mib(size):
    return f"{size / (1 << 20):.0f}"

# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks: generated models, timed commands, fresh conversions, tables."""
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

# k = 2, 3 and 4 measured and one of them packed, whatever cosine it reaches, with outliers and balance.
BITS = ["--bits", "2,3,4", "--on-miss", "best"]
USUAL = ["--mode", "v2", *BITS]


def processor():
    """The processor's name, and the number of processors that this process may use."""
    name = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


class Timing:
    """Wall seconds of a command, and processor seconds of it and its children."""

    def __init__(self, wall, cpu):
        self.wall, self.cpu = wall, cpu


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(command, environment=None):
    """Run a command that must succeed; returns (Timing, standard output)."""
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
    """Prepare a timed run: read its input into the page cache, and sync dirty pages."""
    os.sync()
    buffer = bytearray(1 << 22)
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


class Conversion:
    """Output and files of a run of xfp convert; `stages` are wall seconds by stage, summed over units."""

    def __init__(self, timing, summary, stages):
        self.timing, self.summary, self.stages = timing, summary, stages


def stage_seconds(work):
    """Stage times, from the events of a work folder; a run without work has none, nor has inspect."""
    seconds, path = {}, os.path.join(work, "events")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                _, stage, _, _, microseconds, *_ = line.split("\t")
                seconds[stage] = seconds.get(stage, 0) + int(microseconds) / 1e6
    return seconds


class Bench:
    """The scratch folder, and the paths of the tools."""

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
        """Convert without any files of an earlier conversion."""
        self.remove("out.xfp.work", "cache")
        if os.path.exists(self.path("out.xfp")):
            os.unlink(self.path("out.xfp"))

    def command(self, model, jobs, *options):
        return ["xfp", "convert", model.path, "-o", self.path("out.xfp"), "--cache", self.path("cache"),
                f"-j{jobs}", *options]

    def convert(self, model, jobs, *options):
        """Convert again, with the cache of an earlier conversion."""
        timing, out = timed([*self.command(model, jobs, *options), "--json", "--quiet"])
        return Conversion(timing, json.loads(out), stage_seconds(self.path("out.xfp.work")))

    def peak(self, model, jobs, *options):
        """The figures of measure-peak for a fresh conversion; `disk` excludes the model."""
        self.fresh()
        report = self.path("peak.json")
        timed([*MEASURE_PEAK, "-i", "5" if self.quick else "20", "-d", self.path("out.xfp.work"),
               "-d", self.path("cache"), "-d", self.path("out.xfp"), "-o", report,
               *self.command(model, jobs, *options), "--quiet"])
        with open(report, encoding="utf-8") as file:
            return json.load(file)


def note(text):
    """Print a figure as soon as it is known: the tables come at the end."""
    print(text, file=sys.stderr, flush=True)


def table(head, rows):
    """A Markdown table with padded columns."""
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

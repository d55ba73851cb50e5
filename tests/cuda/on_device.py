# SPDX-License-Identifier: Apache-2.0
"""libxfp-cuda on the GPU of this machine: builds it for that GPU alone, then

  verify      every kernel against the reference in double, twice and in a graph (xfp-kernel-verify --device cuda)
  sanitize    some of that under compute-sanitizer, where it is found: memcheck, racecheck, initcheck
  bench       how fast products, eight of 128 experts and uploads are, beside plain reads and, where it is found, cuBLAS

and writes a report as it goes, which is there too when it is stopped. nvcc, a C compiler and Python are needed; CC,
CFLAGS, NVCC, NVCCFLAGS and COMPUTE_SANITIZER name others than cc, nvcc and compute-sanitizer of PATH. The device is the
first; CUDA_VISIBLE_DEVICES makes another one that.

Where a command may take only so long, --minutes has to be less than that; where the report is to be elsewhere, --report
says so. What is built on one machine runs on another of the same kind, so that no GPU waits for the compiler:

  tests/on-device --only build --folder F --arch 90      where there is nvcc, and no GPU
  tests/on-device --built --folder F --report OUT/on-device.txt

exit status: 0 all is right; 1 it could not be built or run; 2 the command line is wrong; 4 a kernel is wrong; as of the
signal that it was stopped by
"""
import argparse
import glob
import importlib.util
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from bare_build import Build, BuildError, end, signalled, start

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = ("memcheck", "racecheck", "initcheck")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
OLDEST = 80
SANITIZED = 3           # trials of each kernel
MOST_OF_A_GROUP = 60    # seconds without a word of the verifier
TOLD = re.compile(r"(\S.*?) cuda: \d+ (?:ok|of \d+ FAILED)$")
SANITIZER_ERRORS = 86   # the status that it is told to end with


class Stopped(Exception):
    """By a signal, or because time is up."""


class Failed(Exception):
    """With what to do."""


def parse():
    parser = argparse.ArgumentParser(prog="on-device", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", metavar="DIR", help="build there, and leave it [a temporary one]")
    parser.add_argument("--built", action="store_true", help="run what was built in --folder before")
    parser.add_argument("--report", metavar="FILE", default="on-device.txt", help="[%(default)s]")
    parser.add_argument("--only", metavar="STEP,...", default="verify,sanitize,bench",
                        help="[%(default)s]; build: that alone")
    parser.add_argument("--arch", metavar="NN", help="compute capability, times ten [as the device says]")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count(), help="of building [%(default)s]")
    parser.add_argument("--minutes", metavar="N", type=float, default=9, help="when to stop [%(default)s]")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the inputs [%(default)s]")
    parser.add_argument("--trials", metavar="N", help="of each kernel [all]")
    parser.add_argument("--filter", metavar="GLOB", help="only kernels of such names")
    parser.add_argument("--mib", metavar="N", help="matrices of the bench [64]")
    parser.add_argument("--stand-in", action="store_true",
                        help="no GPU: the stand-in driver and the emulator of PTX of tests/cuda (with numpy), with "
                             "kernels of 9.0, to test this itself; kernels of the bench do nothing")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if not set(options.only) <= {"build", "verify", "sanitize", "bench"} or options.jobs < 1:
        parser.error("--only takes build, verify, sanitize and bench, --jobs a number from 1 on")
    if options.only == ["build"] and (options.built or not options.folder):
        parser.error("--only build goes with --folder, and not with --built")
    if options.built and not options.folder:
        parser.error("--built goes with --folder")
    return options


class Report:
    """Lines to the terminal and to the file, with the time since it began."""

    def __init__(self, path):
        self.path, self.start = path, time.monotonic()
        self.file = open(path, "w", encoding="utf-8")

    def seconds(self):
        return time.monotonic() - self.start

    def write(self, text):
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def tell(self, text):
        self.write(f"[{self.seconds():6.1f} s] {text}")


def output_of(*words, env=None):
    """What a program prints, "" where it is not there or fails."""
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, env=env,
                              check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def first_line(text):
    return text.split("\n", 1)[0]


# ---- the machine

def find(variable, name):
    """A program that the environment names, or of PATH, or where the toolkit is usually."""
    return shutil.which(os.environ.get(variable, name)) or shutil.which("/usr/local/cuda/bin/" + name)


def find_arch(nvcc):
    """Compute capability of the first device, times ten: as nvcc's own helper says, or nvidia-smi."""
    helper = os.path.join(os.path.dirname(os.path.realpath(nvcc)), "__nvcc_device_query")
    found = re.findall(r"\d+", output_of(helper)) or re.findall(r"\d+", output_of("__nvcc_device_query"))
    if not found:
        lines = output_of("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").split("\n")
        found = [line.replace(".", "") for line in lines if re.fullmatch(r"\d+\.\d", line)]
    if not found:
        raise Failed("no device is found, by nvcc's __nvcc_device_query or nvidia-smi: install the driver, or name "
                     "the compute capability with --arch")
    return found[0]


def buildable(arch, nvcc):
    """The architecture to build for: this one, or an older one whose code it runs."""
    known = re.findall(r"sm_(\d+)\b", output_of(nvcc, "--list-gpu-code"))
    if int(arch) < OLDEST:
        raise Failed(f"the device has compute capability {int(arch) / 10}; the kernels want {OLDEST / 10} or newer")
    fits = [int(code) for code in known if code[:-1] == arch[:-1] and int(code) <= int(arch)]
    if not fits:
        raise Failed(f"nvcc compiles for nothing that compute capability {int(arch) / 10} runs; use a newer one "
                     "(NVCC=...)")
    return str(max(fits))


def blas_folders(nvcc):
    """Where a toolkit has its libraries, cuBLAS for one, which the loader may not know."""
    if not nvcc:
        return []
    root = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return [folder for folder in [os.path.join(root, "lib64"), *sorted(glob.glob(os.path.join(root, "targets/*/lib")))]
            if os.path.isdir(folder)]


def tell_machine(report, nvcc, cc):
    report.write(time.strftime("date: %Y-%m-%d %H:%M:%S %Z"))
    report.write(f"machine: {platform.machine()}, {os.cpu_count()} processors, {platform.system()} "
                 f"{platform.release()}")
    report.write(f"compiler: {first_line(output_of(*cc, '--version')) or ' '.join(cc) + ' is not found'}")
    toolkit = output_of(nvcc, "--version").split("\n")
    report.write(f"toolkit: {toolkit[-2] if len(toolkit) > 1 else nvcc + ' is not found'}")
    smi = output_of("nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total,clocks.max.sm,"
                    "clocks.max.memory,power.limit,ecc.mode.current", "--format=csv,noheader")
    report.write("nvidia-smi: " + (smi.replace("\n", "; ") or "not found"))


# ---- running

class Run:
    """One program after another, each with what is left of the time."""

    def __init__(self, options, report, folder, nvcc):
        self.options, self.report, self.folder = options, report, folder
        self.child, self.lines = None, []
        given = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
        self.environment = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join([folder, *given, *blas_folders(nvcc)]))
        if options.stand_in:
            self.environment.update(STAND_IN_SERVER=os.path.join(SOURCE, "tests/cuda/ptx_server.py"),
                                    STAND_IN_ARCH="90", PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1")
        self.verifier = [os.path.join(folder, "xfp-kernel-verify"), "--device", "cuda", "--seed", str(options.seed)]

    def left(self):
        return self.options.minutes * 60 - self.report.seconds()

    def stop(self):
        if self.child and self.child.poll() is None:
            end([self.child])

    def run(self, words, most=None, environment=None, quiet=None):
        """Its status; what it prints goes to the report. None: it took too long, or was silent for `quiet` seconds."""
        limit = min(self.left(), self.left() if most is None else most)
        if limit <= 0:
            return None
        self.lines = []
        self.child = start(words, env=dict(self.environment, **(environment or {})))
        late, heard = threading.Event(), threading.Event()
        watch = threading.Thread(target=self.watch, args=(self.child, limit, quiet or limit, late, heard), daemon=True)
        watch.start()
        try:
            for line in self.child.stdout:
                self.report.tell(line.rstrip("\n"))
                self.lines.append(line)
                heard.set()
            status = self.child.wait()
        finally:
            self.stop()
        return None if late.is_set() else status

    @staticmethod
    def watch(child, limit, quiet, late, heard):
        until = time.monotonic() + limit
        last = time.monotonic()
        while child.poll() is None:
            if heard.wait(0.1):
                heard.clear()
                last = time.monotonic()
            if time.monotonic() > min(until, last + quiet):
                late.set()
                signalled(child, signal.SIGKILL)
                return

    def filtered(self):
        return self.verifier + (["--filter", self.options.filter] if self.options.filter else [])

    def verify(self):
        """All groups at once, in half of the time that is left where something comes after. Where that ends before all
        were told of, as one hung or had the device fail, those that were not run one by one, each in a process of its
        own, and the one that hung last: what it does costs no other."""
        extra = ["--trials", self.options.trials] if self.options.trials else []
        half = 0.5 if {"sanitize", "bench"} & set(self.options.only) else 1
        until = self.report.seconds() + self.left() * half
        listed = output_of(*self.filtered(), "--list", env=self.environment)
        missing = [line.split(":")[0] for line in listed.split("\n") if line]
        quiet = min((until - self.report.seconds()) / 4, MOST_OF_A_GROUP)
        status = self.run(self.filtered() + extra, until - self.report.seconds(), quiet=quiet)
        told = {found[1] for found in map(TOLD.match, self.lines) if found}
        missing = [group for group in missing if group not in told]
        if not missing or status in (0, 1, 2):
            return self.judge("verify", status)
        self.report.tell("verify: " + ("stopped" if status is None else f"ended with status {status}") +
                         f"; {len(missing)} kernels that it told nothing of are run one by one")
        worst = 1 if status is None or status < 0 else status  # even if all the others are right
        for group in missing if status == 4 else missing[1:] + missing[:1]:
            left = until - self.report.seconds()
            status = self.run([*self.verifier, "--filter", group, *extra], min(left, quiet)) if left > 1 else None
            if status is None:
                self.report.tell(f"{group}: " + ("stopped: it takes too long" if left > 1 else "not run: no time"))
            worst = max(worst, 1 if status is None or status < 0 else status)
        return self.judge("verify", worst)

    def sanitize(self):
        sanitizer = find("COMPUTE_SANITIZER", "compute-sanitizer")
        if not sanitizer:
            self.report.tell("sanitize: skipped: compute-sanitizer is not found")
            return 0
        worst = 0
        for tool in TOOLS:
            self.report.tell(f"sanitize: {tool}")
            words = [sanitizer, "--tool", tool, "--error-exitcode", str(SANITIZER_ERRORS), *self.filtered(), "--trials",
                     self.options.trials or str(SANITIZED)]
            # Before the bench has no time left.
            status = self.run(words, self.left() / 4)
            if status == SANITIZER_ERRORS:
                self.report.tell(f"sanitize {tool}: it found errors")
                worst = 4
            else:
                worst = max(worst, self.judge(f"sanitize {tool}", status, late_is_fine=True))
        return worst

    def bench(self):
        mib = self.options.mib or ("1" if self.options.stand_in else None)
        words = self.filtered() + ["--trials", "0", "--bench"] + (["--mib", mib] if mib else [])
        words += ["--unchecked"] if self.options.stand_in else []
        return self.judge("bench", self.run(words, environment={"STAND_IN_IDLE": "1"}))

    def judge(self, what, status, late_is_fine=False):
        if status is None:
            self.report.tell(f"{what}: stopped: its time is up")
            return 0 if late_is_fine else 1
        if status < 0:
            self.report.tell(f"{what}: ended by signal {-status}")
            return 1
        self.report.tell(f"{what}: " + ("done" if not status else f"FAILED, status {status}"))
        return status


def build_all(options, report, folder, nvcc, cc, on_stop):
    for program, name, variable in ((nvcc, "nvcc", "NVCC"), (shutil.which(cc[0]), cc[0], "CC")):
        if not program:
            raise Failed(f"{name} is not found; {variable} may name another")
    arch = "90" if options.stand_in else buildable(options.arch or find_arch(nvcc), nvcc)
    build = Build(SOURCE, folder, arch, nvcc, report.tell, options.jobs, ptx=options.stand_in)
    on_stop.append(build.stop)
    report.tell(f"building in {folder}, {options.jobs} at a time")
    build.all()


def all_steps(options, report, folder, on_stop):
    nvcc, cc = find("NVCC", "nvcc"), os.environ.get("CC", "cc").split()
    tell_machine(report, nvcc or "nvcc", cc)
    if options.stand_in:
        report.write("no GPU: the stand-in driver and the emulator of PTX; times mean nothing")
    if options.stand_in and not importlib.util.find_spec("numpy"):
        raise Failed(f"{sys.executable} has no numpy, which the emulator takes; PYTHON may name another")
    if not options.built:
        build_all(options, report, folder, nvcc, cc, on_stop)
    if options.only == ["build"]:
        return 0
    run = Run(options, report, folder, nvcc)
    on_stop.append(run.stop)
    worst = 0
    for step in ("verify", "sanitize", "bench"):
        if step in options.only:
            report.tell(f"{step}:")
            worst = max(worst, getattr(run, step)())
    return worst


def main():
    options = parse()
    try:
        report = Report(options.report)
    except OSError as error:
        sys.exit(f"on-device: {error}")
    on_stop = []

    def stopped(number, frame):
        del frame
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        for stop in on_stop:
            stop()
        raise Stopped(number)

    for number in SIGNALS:
        signal.signal(number, stopped)
    # Each step has a limit of its own, but for building.
    signal.alarm(int(options.minutes * 60) + 5)
    folder = os.path.abspath(options.folder) if options.folder else tempfile.mkdtemp(prefix="xfp-on-device-")
    try:
        os.makedirs(folder, exist_ok=True)
        status = all_steps(options, report, folder, on_stop)
        report.tell("all is right" if not status else f"status {status}: not all is right")
    except Stopped as stop:
        late = stop.args[0] == signal.SIGALRM
        status = 1 if late else 128 + stop.args[0]
        report.tell("stopped: time is up" if late else f"stopped by {signal.Signals(stop.args[0]).name}")
    except (Failed, BuildError, OSError) as error:
        status = 1
        report.tell(f"failed: {error}")
    finally:
        if not options.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"the report is {options.report}")
    return status


if __name__ == "__main__":
    sys.exit(main())

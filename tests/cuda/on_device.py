# SPDX-License-Identifier: Apache-2.0
"""Builds libxfp-cuda for the GPU of this machine, then runs these steps, the quickest and most important first:

  contact     ask the driver, open the library, launch one kernel, read the clocks
  check       four trials of every kernel against the reference in double (xfp-kernel-verify --device cuda)
  first       measure products with one vector: codebooks of 16 entries (k=4) first, then the others, then experts
  python      operators of python/xfp on tensors of torch, if torch with CUDA is there
  compare     verify and measure variants of the build (--variant) in turn, and print a table of them
  bench       measure 1 to 512 vectors, experts and uploads, next to plain reads and to cuBLAS if it is found
  verify      all trials of every kernel
  sanitize    some of them under compute-sanitizer, if it is found: memcheck, racecheck, initcheck

The report is written line by line, so that a run that is cut off at any moment leaves what it has measured. A step that
takes longer than its share of --minutes is stopped, and the next one runs. Clocks, power and throttling are sampled
with nvidia-smi during each bench.

on-device needs nvcc, a C compiler and Python. CC, CFLAGS, NVCC, NVCCFLAGS and COMPUTE_SANITIZER name others than cc,
nvcc and compute-sanitizer of PATH. It uses the first device; CUDA_VISIBLE_DEVICES selects another.

A build runs on other machines of the same kind, so that no GPU waits for the compiler:

  tests/on-device --only build --folder F --arch 90      on a machine with nvcc, without a GPU
  tests/on-device --built --folder F --report OUT/on-device.txt

A driver runs the code of no newer major version of CUDA than its own. --nvcc, given once for each nvcc, builds with
several; --built chooses the newest build that the driver runs.

exit status: 0 all is right; 1 it could not be built or run, or was cut off; 2 the command line is wrong; 4 a kernel is
wrong; 128 + N signal N stopped it
"""
import argparse
import importlib.util
import os
import shutil
import signal
import sys
import tempfile

from bare_build import BuildError
from on_device_builds import SOURCE, build_all, builds, choose, parse_variant, variants, version_name
from on_device_clocks import Clocks
from on_device_machine import find, probe, report_host, report_tools, require
from on_device_report import Failed, Report, Stopped
from on_device_run import Runner
from on_device_steps import WEIGHTS, Steps

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


def parse():
    parser = argparse.ArgumentParser(prog="on-device", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", metavar="DIR", help="build there, and leave it [a temporary one]")
    parser.add_argument("--built", action="store_true", help="run what was built in --folder before")
    parser.add_argument("--report", metavar="FILE", default="on-device.txt", help="[%(default)s]")
    parser.add_argument("--only", metavar="STEP,...", default=",".join(WEIGHTS),
                        help="[%(default)s]; build: only build")
    parser.add_argument("--arch", metavar="NN", help="compute capability, times ten [the device's]")
    parser.add_argument("--nvcc", metavar="PATH", action="append", default=[],
                        help="build with this nvcc, or this libnvrtc.so of an older CUDA [NVCC, or nvcc of PATH]; "
                             "repeatable")
    parser.add_argument("--variant", metavar="NAME=FLAGS", action="append", default=[],
                        help="build a variant, too, with the first nvcc: FLAGS for nvcc, and those that define macros "
                             "also for the C compiler; repeatable")
    parser.add_argument("--compare", metavar="GLOB", default="matvec v2*k=4",
                        help="kernels to compare variants by [%(default)s]")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count(), help="of building [%(default)s]")
    parser.add_argument("--minutes", metavar="N", type=float, default=9, help="when to stop [%(default)s]")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the inputs [%(default)s]")
    parser.add_argument("--trials", metavar="N", type=int, help="of each kernel [all]")
    parser.add_argument("--filter", metavar="GLOB", help="only kernels of such names")
    parser.add_argument("--mib", metavar="N", help="matrices of the bench [64]")
    parser.add_argument("--stand-in", action="store_true",
                        help="no GPU: the stand-in driver and the PTX emulator of tests/cuda (with numpy), with "
                             "kernels of 9.0, to test this program; kernels of the bench do nothing")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if not set(options.only) <= {"build", *WEIGHTS} or options.jobs < 1:
        parser.error(f"--only takes build, {', '.join(WEIGHTS)}; --jobs takes a number from 1 on")
    if options.only == ["build"] and (options.built or not options.folder):
        parser.error("--only build goes with --folder, and not with --built")
    if options.built and not options.folder:
        parser.error("--built goes with --folder")
    if options.built and (options.nvcc or options.variant):
        parser.error("--nvcc and --variant go with building, not with --built")
    try:
        options.variant = [parse_variant(text) for text in options.variant]
    except ValueError as error:
        parser.error(f"--variant: {error}")
    if len(dict(options.variant)) < len(options.variant):
        parser.error("--variant: two have the same name")
    return options


def stand_in_environment(options):
    if not options.stand_in:
        return {}
    return {"STAND_IN_SERVER": os.path.join(SOURCE, "tests/cuda/ptx_server.py"), "PYTHON": sys.executable,
            "STAND_IN_ARCH": os.environ.get("STAND_IN_ARCH", "90"), "PYTHONDONTWRITEBYTECODE": "1"}


def build(options, report, folder, on_stop):
    nvccs = options.nvcc or [find("NVCC", "nvcc") or "nvcc"]
    report_tools(report, nvccs, os.environ.get("CC", "cc").split())
    arch = options.arch
    if not arch and not options.stand_in:
        driver = probe(os.environ)
        if not driver.arch:
            raise Failed(f"no device to build for: {driver.error}; install the NVIDIA driver, or name the compute "
                         "capability with --arch")
        arch = str(driver.arch)
    build_all(options, report, folder, nvccs, arch, on_stop)


def all_steps(options, report, folder, on_stop):
    report_host(report)
    if options.stand_in:
        report.write("no GPU: the stand-in driver and the PTX emulator; times mean nothing")
        if not importlib.util.find_spec("numpy"):
            raise Failed(f"{sys.executable} has no numpy, which the emulator needs; PYTHON may name another")
    if not options.built:
        build(options, report, folder, on_stop)
    if options.only == ["build"]:
        return 0
    more = stand_in_environment(options)
    found = builds(folder)
    driver = probe(found[0].environment(more))
    if driver.version:
        report.tell(f"driver: for CUDA {version_name(driver.version)}; first device: "
                    f"{driver.name or 'none'}, compute capability {driver.arch / 10}")
    require(driver)
    built = choose(folder, found, driver)
    report.tell(f"build: {built.path}, by nvcc {version_name(built.toolkit)} for compute capability {built.arch / 10}")
    runner = Runner(report, options.minutes)
    on_stop.append(runner.stop)
    return Steps(options, report, runner, variants(built), Clocks(report), more).all()


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
    # Each step has a limit of its own, but building has none.
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

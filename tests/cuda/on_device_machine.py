# SPDX-License-Identifier: Apache-2.0
"""The machine that tests/on-device runs on: its driver, its GPU and its toolkit."""
import collections
import glob
import os
import platform
import re
import shutil
import sys
import time

from bare_build import compiler
from on_device_report import Failed, first_line, output_of

OLDEST = 80  # compute capability of the kernels, times ten

# Runs in a process of its own, as a broken driver may crash or hang.
PROBE = r"""
import ctypes
def fail(text):
    print("error", text, flush=True)
    raise SystemExit
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    fail(f"no CUDA driver: {error}")
number, name = ctypes.c_int(), ctypes.create_string_buffer(256)
def call(function, *arguments):
    try:
        result = getattr(cuda, function)(*arguments)
    except AttributeError:
        fail(f"the CUDA driver has no {function}")
    if result:
        fail(f"{function} of the CUDA driver fails with status {result}")
    return number.value
print("version", call("cuDriverGetVersion", ctypes.byref(number)), flush=True)
call("cuInit", 0)
if not call("cuDeviceGetCount", ctypes.byref(number)):
    fail("the CUDA driver finds no device")
device = call("cuDeviceGet", ctypes.byref(number), 0)
call("cuDeviceGetName", name, len(name), device)
major = call("cuDeviceGetAttribute", ctypes.byref(number), 75, device)
minor = call("cuDeviceGetAttribute", ctypes.byref(number), 76, device)
print("arch", 10 * major + minor)
print("name", name.value.decode(errors="replace"))
"""

# version: CUDA's, times 1000. arch: compute capability of the first device, times ten. All 0 or "" if unknown.
Driver = collections.namedtuple("Driver", "version arch name error")


def probe(environment):
    """Asks the driver itself."""
    lines = output_of(sys.executable, "-c", PROBE, env=environment).split("\n")
    found = dict(line.split(" ", 1) for line in lines if " " in line)
    error = found.get("error", "" if "arch" in found else "the CUDA driver does not answer")
    return Driver(int(found.get("version", 0)), int(found.get("arch", 0)), found.get("name", ""), error)


def require(driver):
    """Fails unless there is a driver and a device that the kernels run on."""
    if driver.error:
        raise Failed(f"{driver.error}; install or update the NVIDIA driver (nvidia-smi lists its devices)")
    if driver.arch < OLDEST:
        raise Failed(f"the device has compute capability {driver.arch / 10}; the kernels need {OLDEST / 10} or newer")


def find(variable, name):
    """A program that the environment names, or of PATH, or of the toolkit's usual folder."""
    return shutil.which(os.environ.get(variable, name)) or shutil.which("/usr/local/cuda/bin/" + name)


def buildable(arch, nvcc):
    """The architecture to build for: `arch`, or an older one whose code it runs."""
    known = re.findall(r"sm_(\d+)\b", output_of(*compiler(nvcc), "--list-gpu-code"))
    if int(arch) < OLDEST:
        raise Failed(f"the device has compute capability {int(arch) / 10}; the kernels need {OLDEST / 10} or newer")
    fits = [int(code) for code in known if code[:-1] == arch[:-1] and int(code) <= int(arch)]
    if not fits:
        raise Failed(f"{nvcc} compiles for nothing that compute capability {int(arch) / 10} runs; use a newer one "
                     "(NVCC=...)")
    return str(max(fits))


def library_folders(nvcc):
    """The toolkit's libraries, cuBLAS among them, which the loader may not know."""
    if not nvcc:
        return []
    root = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return [folder for folder in [os.path.join(root, "lib64"), *sorted(glob.glob(os.path.join(root, "targets/*/lib")))]
            if os.path.isdir(folder)]


def report_host(report):
    report.write(time.strftime("date: %Y-%m-%d %H:%M:%S %Z"))
    report.write(f"machine: {platform.machine()}, {os.cpu_count()} processors, {platform.system()} "
                 f"{platform.release()}")


def report_tools(report, nvccs, cc):
    report.write(f"compiler: {first_line(output_of(*cc, '--version')) or ' '.join(cc) + ' is not found'}")
    for nvcc in nvccs:
        toolkit = output_of(*compiler(nvcc), "--version").split("\n")
        report.write(f"toolkit: {toolkit[-2] if len(toolkit) > 1 else nvcc + ' is not found'}")


def report_gpu(report):
    smi = output_of("nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total,clocks.max.sm,"
                    "clocks.max.memory,power.limit,ecc.mode.current", "--format=csv,noheader")
    report.write("nvidia-smi: " + (smi.replace("\n", "; ") or "not found"))

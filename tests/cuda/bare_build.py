# SPDX-License-Identifier: Apache-2.0
"""Build libxfp, libxfp-cuda and xfp-kernel-verify without make and configure: from the lists of sources in the local.mk
files, with one C compiler and nvcc, for one architecture. Requires Python only."""
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

LISTS = ["base", "schemas", "kernels", "runtime", "kernels/cuda", "runtime/cuda", "kernel-verify"]
# Host code is plain C: only the device code is verified.
CONDITIONS = {"CUDA": True, "VERSION_SCRIPT": True, "X86": False, "AARCH64": False, "CONVERTER": False}


GRACE = 2  # seconds from SIGTERM to SIGKILL


class BuildError(Exception):
    """A compiler failed; the text is its output."""


def start(words, **options):
    """A running program; end() ends it with all its children."""
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                            start_new_session=True, **options)


def signalled(process, how):
    """Send a signal to the group; returns whether any process was left. Signal 0 only asks."""
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        return False
    return True


def end(processes):
    """End them by a signal, so that they remove their files; but a signal may make nvcc's compiler wait forever for a
    lock of its own, holding the pipe that is read here."""
    left = [process for process in processes if signalled(process, signal.SIGTERM)]
    until = time.monotonic() + GRACE
    while left and time.monotonic() < until:
        time.sleep(0.02)
        # Children of an ended program may still run.
        left = [process for process in left if process.poll() is None or signalled(process, 0)]
    for process in left:
        signalled(process, signal.SIGKILL)


def is_nvrtc(path):
    return os.path.basename(path).startswith("libnvrtc")


def compiler(path):
    """The command that compiles device code: nvcc, or nvrtc.py with an NVRTC library."""
    if is_nvrtc(path):
        return [sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "nvrtc.py"), path]
    return [path]


def lists(source, files, conditions):
    """Parse fragments of Makefiles to {variable: words}: assignments, in the branches that the conditions select."""
    found, branches = {}, []
    for name in files:
        with open(os.path.join(source, name), encoding="utf-8") as file:
            text = file.read().replace("\\\n", " ")
        for line in text.split("\n"):
            words = line.split()
            if line.startswith("\t") or not words or words[0].startswith("#"):
                continue
            if words[0] == "if":
                branches.append(conditions[words[1]])
            elif words[0] == "else":
                branches[-1] = not branches[-1]
            elif words[0] == "endif":
                branches.pop()
            elif all(branches) and len(words) > 1 and words[1] in ("=", "+="):
                found[words[0]] = (found.get(words[0], []) if words[1] == "+=" else []) + words[2:]
    return found


def expanded(found, name):
    """The words of a variable, including those of variables that it refers to."""
    words = []
    for word in found[name]:
        other = re.fullmatch(r"\$\((\w+)\)", word)
        words += expanded(found, other[1]) if other else [word]
    return words


class Build:
    """`tell(text)` is called for each built file. `ptx`: compile kernels to PTX, for the stand-in driver. `flags`: more
    flags for nvcc; macro definitions also go to the C compiler."""

    def __init__(self, source, folder, arch, nvcc, tell, jobs, ptx=False, flags=()):
        self.flags, self.macros = list(flags), [flag for flag in flags if flag.startswith(("-D", "-U"))]
        self.source, self.folder, self.arch, self.tell, self.jobs, self.ptx = source, folder, arch, tell, jobs, ptx
        self.cc = os.environ.get("CC", "cc").split()
        self.nvcc = compiler(nvcc)
        # A signal handler may need the lock while this thread holds it.
        self.lock, self.running, self.stopped = threading.RLock(), set(), False
        found = lists(source, [f"{folder}/local.mk" for folder in LISTS], CONDITIONS)
        self.runtime = [path for library in found["runtime_libxfp_la_LIBADD"]
                        for path in self.sources(found, re.sub(r"[/.]", "_", library) + "_SOURCES")]
        self.device = self.sources(found, "runtime_cuda_libdevice_la_SOURCES")
        self.library = self.sources(found, "runtime_libxfp_cuda_la_SOURCES")
        self.verify = (self.sources(found, "xfp_kernel_verify_SOURCES") +
                       self.sources(found, "kernels_libkernels_a_SOURCES") +
                       self.sources(found, "base_libbase_a_SOURCES"))
        self.kernels = expanded(found, "cuda_sources") + expanded(found, "measure_source")
        self.driver = self.sources(lists(source, ["tests/local.mk"], dict(CONDITIONS, SANITIZERS=False, CHECK=False)),
                                   "stand_in_driver") if ptx else []

    @staticmethod
    def sources(found, name):
        return [word for word in expanded(found, name) if word.endswith(".c")]

    # ---- commands

    def run(self, words, cwd=None):
        """Run a command and return its output; a limited number run at a time."""
        with self.lock:
            if self.stopped:
                raise BuildError("stopped")
            process = start(words, cwd=cwd)
            self.running.add(process)
        out = process.communicate()[0]
        with self.lock:
            self.running.discard(process)
        if process.returncode:
            raise BuildError(f"{' '.join(words)}\n{out}")
        return out

    def stop(self):
        """End all running commands."""
        with self.lock:
            self.stopped = True
            running = list(self.running)
        end(running)

    def version(self):
        """Versions of the release, and of nvcc as the library reports it."""
        with open(os.path.join(self.source, "configure.ac"), encoding="utf-8") as file:
            release = re.search(r"AC_INIT\(\[xfp\], \[([^]]+)\]", file.read())[1]
        nvcc = re.search(r"release (\d+)\.(\d+)", self.run([*self.nvcc, "--version"]))
        return release, int(nvcc[1]) * 1000 + int(nvcc[2]) * 10

    def place(self, path):
        there = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        return there

    # ---- steps

    def device_code(self, path):
        out = self.place(path[:-3] + ".fatbin")
        words = [*self.nvcc, "-std=c++17", "-I" + self.source, *os.environ.get("NVCCFLAGS", "").split(), *self.flags]
        if self.ptx:
            self.run([*words, f"-arch=compute_{self.arch}", "-ptx", "-o", out, os.path.join(self.source, path)])
            with open(out, "ab") as file:
                file.write(b"\0")  # NUL-terminated, as the driver expects
        else:
            self.run([*words, "-gencode", f"arch=compute_{self.arch},code=sm_{self.arch}", "-fatbin", "-o", out,
                      os.path.join(self.source, path)])
        return path

    def object_of(self, path):
        return self.place(os.path.join("objects", path[:-2] + ".o"))

    def host_code(self, path):
        release, toolkit = self.versions
        flags = ["-O0" if self.ptx else "-O2", "-std=c11", "-ffp-contract=off", "-fPIC", "-pthread", "-D_GNU_SOURCE",
                 f'-DPACKAGE_VERSION="{release}"', f'-DXFP_PKGDATADIR="{self.folder}"', f"-DXFP_CUDA_TOOLKIT={toolkit}"]
        self.run([*self.cc, *flags, *os.environ.get("CFLAGS", "").split(), *self.macros, "-I" + self.source, "-I.",
                  "-c", "-o", self.object_of(path), os.path.join(self.source, path)], cwd=self.folder)
        return path

    def link(self, name, sources, *more):
        self.run([*self.cc, "-pthread", "-o", os.path.join(self.folder, name), *map(self.object_of, sources), *more,
                  "-ldl", "-lm"])

    def shared(self, name, sources, *more):
        """Link a library; `more` may begin with its list of exports."""
        script = [f"-Wl,--version-script={os.path.join(self.source, more[0])}"] if more else []
        self.link(name, sources, "-shared", f"-Wl,-soname,{name}", *script, *more[1:])

    def each(self, step, paths):
        """Compile all sources, with the allowed number of jobs."""
        with ThreadPoolExecutor(self.jobs) as pool:
            waiting = [pool.submit(step, path) for path in paths]
            try:
                for done in as_completed(waiting):
                    path = done.result()
                    if path.endswith(".cu"):
                        self.tell(f"compiled {path}")
            except BaseException:
                for other in waiting:
                    other.cancel()
                self.stop()
                raise

    def all(self):
        self.versions = self.version()
        # The objects that embed kernels come after them; the largest kernels come first.
        late = [path for path in self.library + self.verify if path.endswith(("/fatbins.c", "/code.c"))]
        hosts = [path for path in dict.fromkeys(self.runtime + self.device + self.library + self.verify + self.driver)
                 if path not in late]
        kernels = sorted(self.kernels, key=lambda path: -path.count("/v2"))
        self.each(lambda path: (self.device_code if path.endswith(".cu") else self.host_code)(path), kernels + hosts)
        self.each(self.host_code, late)
        self.shared("libxfp.so.0", self.runtime, "runtime/libxfp.map")
        self.shared("libxfp-cuda.so.0", list(dict.fromkeys(self.device + self.library)), "runtime/cuda/libxfp-cuda.map",
                    os.path.join(self.folder, "libxfp.so.0"))
        # Of the objects of libxfp-cuda, the tool uses only the calls of the driver.
        calls = [path for path in self.device if path.endswith("/driver.c")]
        self.link("xfp-kernel-verify", list(dict.fromkeys(self.verify + self.runtime + calls)))
        # A stand-in left by another build would be loaded as the driver.
        if os.path.exists(os.path.join(self.folder, "libcuda.so.1")):
            os.remove(os.path.join(self.folder, "libcuda.so.1"))
        if self.driver:
            self.shared("libcuda.so.1", self.driver)
        # The libraries contain the objects, and folders that are copied to a machine should be small.
        for name in ("objects", "kernels"):
            shutil.rmtree(os.path.join(self.folder, name))
        self.tell(f"built for sm_{self.arch} with nvcc {self.versions[1] // 1000}.{self.versions[1] % 1000 // 10}: "
                  f"{len(hosts) + len(late)} sources and {len(kernels)} of device code")

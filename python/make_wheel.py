#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Build a wheel of the package xfp with libxfp inside.

    make_wheel.py LIBXFP.so FOLDER

Needs setuptools 70.1, or an older one and wheel; $STRIP and $READELF of binutils. The wheel in FOLDER depends only on
the sources, the library and the version of setuptools: two builds have the same SHA-256. Times in it are
$SOURCE_DATE_EPOCH, by default the first that zip archives can express.

The platform is manylinux_X_Y_MACHINE, where X.Y is the newest version of glibc whose symbols the library uses. pip
refuses the wheel on other machines and with an older glibc.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST_TIME = "315532800"  # 1980-01-01
MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}
# --strip-unneeded keeps the build ID, a digest also of debugging information, which names the build folder.
STRIPPED = "--strip-unneeded", "--remove-section=.note.gnu.build-id", "--remove-section=.comment"


def readelf(option, library):
    command = [*shlex.split(os.environ.get("READELF") or "readelf"), "-W", option, library]
    environment = os.environ | {"LC_ALL": "C"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


def platform_of(library):
    """The platform tag of a library that uses no other library than glibc."""
    machine = re.search(r"Machine:\s+(.*\S)", readelf("-h", library))[1]
    if machine not in MACHINES:
        sys.exit(f"make_wheel.py: {library}: there is no platform tag for {machine}")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", library))
    other = [name for name in needed if not re.fullmatch(r"(libc|ld-linux.*)\.so\.\d", name)]
    if other:
        sys.exit(f"make_wheel.py: {library}: uses {' '.join(other)}; a wheel contains libxfp alone")
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", readelf("-V", library))
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"manylinux_{major}_{minor}_{MACHINES[machine]}"


def copy(source, folder):
    os.makedirs(folder, exist_ok=True)
    shutil.copyfile(source, os.path.join(folder, os.path.basename(source)))


def main(library, folder):
    environment = {"SOURCE_DATE_EPOCH": FIRST_TIME} | os.environ | {"XFP_PLATFORM": platform_of(library)}
    os.umask(0o022)  # wheels record the modes of files
    with tempfile.TemporaryDirectory() as build:
        for name in ("pyproject.toml", "setup.py"):
            copy(os.path.join(HERE, name), build)
        for name in ("LICENSE", "NOTICE"):
            copy(os.path.join(os.path.dirname(HERE), name), build)
        package = os.path.join(build, "xfp")
        for name in sorted(os.listdir(os.path.join(HERE, "xfp"))):
            if name.endswith(".py") or name == "py.typed":
                copy(os.path.join(HERE, "xfp", name), package)
        inside = os.path.join(package, "libxfp.so")
        strip = shlex.split(os.environ.get("STRIP") or "strip")
        subprocess.run([*strip, *STRIPPED, "-o", inside, library], check=True)
        os.chmod(inside, 0o644)
        output = os.path.join(build, "output")
        program = f"from setuptools import build_meta; build_meta.build_wheel({output!r})"
        done = subprocess.run([sys.executable, "-c", program],
                              cwd=build, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout}make_wheel.py: setuptools failed; it is python3-setuptools and python3-wheel on "
                     "Debian, or pip install setuptools")
        name, = os.listdir(output)
        os.makedirs(folder, exist_ok=True)
        print(shutil.copyfile(os.path.join(output, name), os.path.join(folder, name)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Builds of tests/on-device in a folder: one by each nvcc, and variants of the first. A build is a folder with the
verifier, its libraries and build.json:

  FOLDER                          the only build, or, by several nvccs,
  FOLDER/nvcc-13.0, -12.9, ...    a build each
  BUILD/variants/NAME             a variant of BUILD: other flags, all else the same
"""
import glob
import json
import os
import re
import shlex
import shutil

from bare_build import Build, is_nvrtc
from on_device_machine import buildable, find, library_folders
from on_device_report import Failed

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECORD = "build.json"
BASE = "base"  # the build without a variant's flags


class Built:
    """A finished build. `toolkit`: CUDA version of its nvcc, times 1000. `arch`: compute capability, times ten."""

    def __init__(self, path):
        with open(os.path.join(path, RECORD), encoding="utf-8") as file:
            record = json.load(file)
        self.path, self.toolkit, self.arch, self.flags = path, record["toolkit"], record["arch"], record["flags"]
        self.libraries = record["libraries"]

    def verifier(self, *words):
        return [os.path.join(self.path, "xfp-kernel-verify"), "--device", "cuda", *words]

    def environment(self, more):
        """The build's libraries come first, the user's next, the toolkit's last."""
        given = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
        toolkits = self.libraries + library_folders(find("NVCC", "nvcc"))
        folders = [self.path, *given, *dict.fromkeys(path for path in toolkits if os.path.isdir(path))]
        return dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(folders), **more)


def parse_variant(text):
    """(NAME, flags) of NAME=FLAGS."""
    name, equals, flags = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*", name) or name == BASE:
        raise ValueError(f"'{text}' is not NAME=FLAGS, with a NAME of letters, digits and _.+-, and not '{BASE}'")
    return name, shlex.split(flags)


def version_name(toolkit):
    return f"{toolkit // 1000}.{toolkit % 1000 // 10}"


def build_all(options, report, folder, nvccs, arch, on_stop):
    """Builds with each nvcc, and all variants with the first."""
    cc = os.environ.get("CC", "cc").split()[0]
    for name, variable in [*((nvcc, "NVCC") for nvcc in nvccs), (cc, "CC")]:
        if not shutil.which(name) and not (name in nvccs and is_nvrtc(name) and os.path.exists(name)):
            raise Failed(f"{name} is not found; {variable} may name another")
    for old in [os.path.join(folder, "variants"), *glob.glob(os.path.join(folder, "nvcc-*"))]:
        shutil.rmtree(old, ignore_errors=True)
    if os.path.exists(os.path.join(folder, RECORD)):
        os.remove(os.path.join(folder, RECORD))

    def build(path, nvcc, name, flags):
        os.makedirs(path, exist_ok=True)
        code = "90" if options.stand_in else buildable(arch, nvcc)
        it = Build(SOURCE, path, code, nvcc, report.tell, options.jobs, ptx=options.stand_in, flags=flags)
        on_stop.append(it.stop)
        report.tell(f"building {name} in {path}, {options.jobs} at a time" +
                    (f": {shlex.join(flags)}" if flags else ""))
        it.all()
        with open(os.path.join(path, RECORD), "w", encoding="utf-8") as file:
            json.dump({"toolkit": it.versions[1], "arch": int(code), "flags": shlex.join(flags),
                       "libraries": library_folders(nvcc)}, file)

    versions = [version_name(Build(SOURCE, folder, "90", nvcc, report.tell, 1).version()[1]) for nvcc in nvccs]
    for version in versions:
        if versions.count(version) > 1:
            raise Failed(f"--nvcc: two have the same version, {version}")
    for number, nvcc in enumerate(nvccs):
        path = os.path.join(folder, "nvcc-" + versions[number]) if len(nvccs) > 1 else folder
        build(path, nvcc, BASE, [])
        for name, flags in options.variant if not number else []:
            build(os.path.join(path, "variants", name), nvcc, name, flags)


def builds(folder):
    paths = [folder, *sorted(glob.glob(os.path.join(folder, "nvcc-*")))]
    found = [Built(path) for path in paths if os.path.exists(os.path.join(path, RECORD))]
    if not found:
        raise Failed(f"{folder} has no finished build; --only build --folder makes one")
    return found


def choose(folder, found, driver):
    """The newest build that the driver and the device run. A driver runs the code of every toolkit of its major
    version."""
    runs = [built for built in found if built.toolkit // 1000 <= driver.version // 1000]
    if not runs:
        oldest = min(built.toolkit for built in found)
        raise Failed(f"the driver is for CUDA {version_name(driver.version)}, and the builds in {folder} need one for "
                     f"CUDA {oldest // 1000}.0 or newer: update the NVIDIA driver, or build with an older nvcc, too "
                     "(--nvcc)")
    fits = [built for built in runs if built.arch // 10 == driver.arch // 10 and built.arch <= driver.arch]
    if not fits:
        raise Failed(f"{folder} was built for compute capability {runs[0].arch / 10}, and the device has "
                     f"{driver.arch / 10}: build with --arch {driver.arch}")
    return max(fits, key=lambda built: built.toolkit)


def variants(built):
    """{name: build}, the base first."""
    paths = sorted(glob.glob(os.path.join(built.path, "variants", "*", RECORD)))
    return {BASE: built, **{os.path.basename(os.path.dirname(path)): Built(os.path.dirname(path)) for path in paths}}

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""libxfp that is missing, or another one: an exception that says what to do, when the first bundle is opened."""
import os
import shlex
import shutil
import subprocess
import tempfile
import unittest

from common import Case, path_of, run

from xfp import abi
from xfp.library import INSIDE

COMPILER = shlex.split(os.environ.get("CC", "cc"))

OPEN = f"""
import xfp
print("imported", xfp.__version__)
try:
    xfp.Bundle({path_of("auto.xfp")!r})
except xfp.LibraryError as error:
    print("refused:", error)
"""


class Libraries(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "libxfp.so")

    def built(self, version, missing=None):
        """A library with the functions of libxfp, which do nothing."""
        text = "".join(f"void {name}(void) {{}}\n" for name in abi.FUNCTIONS if name not in ("xfp_version", missing))
        text += f'const char *xfp_version(void) {{ return "{version}"; }}\n'
        return self.compiled(text, self.path)

    def compiled(self, text, path, *options):
        if not shutil.which(COMPILER[0]):
            self.skipTest("no C compiler")
        source = os.path.join(self.folder.name, "source.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(text)
        subprocess.run([*COMPILER, "-shared", "-fPIC", source, *options, "-o", path], check=True)
        return path

    def check(self, pattern, library):
        status, output = run(OPEN, XFP_LIBRARY=library)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, rf"(?s)^imported {abi.VERSION}\nrefused: {pattern}")

    def test_the_one_of_the_tests(self):
        self.assertEqual(run(OPEN), (0, f"imported {abi.VERSION}\n"))

    def test_missing(self):
        if not os.path.exists(INSIDE):
            self.check("this copy of the package xfp contains no libxfp; install its wheel .*set XFP_LIBRARY", None)
            self.check("this copy of the package xfp contains no libxfp", "")
        self.check("cannot load libxfp: .*none.so.*; build it on this machine .*set XFP_LIBRARY to the libxfp.so of xfp",
                   "/none.so")
        with open(self.path, "w", encoding="ascii") as file:
            file.write("text")
        self.check("cannot load libxfp: .*set XFP_LIBRARY", self.path)

    def test_other_machines(self):
        """A libxfp for a newer libc, and one for another processor."""
        names, libc = os.path.join(self.folder.name, "names"), os.path.join(self.folder.name, "libc.so")
        with open(names, "w", encoding="ascii") as file:
            file.write("GLIBC_2.999 { global: xfp_newer; };")
        self.compiled("void xfp_newer(void) {}", libc, "-nostdlib", f"-Wl,--version-script={names},-soname,libc.so.6")
        self.compiled("void xfp_newer(void); void xfp_version(void) { xfp_newer(); }", self.path, "-nostdlib", libc)
        self.check("cannot load libxfp: .*GLIBC_2.999. not found .*; build it on this machine .*, or set XFP_LIBRARY",
                   self.path)
        with open(self.path, "r+b") as file:
            file.seek(18)  # e_machine; no processor has this one
            file.write(b"\xee\xee")
        self.check(f"cannot load libxfp: {self.path}: is not for this processor .*; build it on this machine", self.path)

    def test_different(self):
        for library in ("libc.so.6", self.compiled("int other;", self.path)):
            self.check(f"{library}: is not libxfp .*has no function xfp_.*; set XFP_LIBRARY", library)
        self.check(f"{self.path}: is libxfp 9.8.7, but this package needs {abi.VERSION}; set XFP_LIBRARY",
                   self.built("9.8.7"))
        self.check(f"{self.path}: is not libxfp .*has no function xfp_rows;", self.built(abi.VERSION, "xfp_rows"))

    def test_transformers(self):
        """xfp.load names the command that installs what is missing; nothing else needs it."""
        program = "import xfp\ntry:\n    xfp.load('a.xfp')\nexcept xfp.LibraryError as error:\n    print(error)"

        def check(pattern, torch, transformers, program=program):
            for name, text in (("torch", torch), ("transformers", transformers)):
                self.module(f"{name}/__init__.py", text)
            path = os.pathsep.join([self.folder.name, os.environ.get("PYTHONPATH", "")])
            status, output = run(program, PYTHONPATH=path)
            self.assertEqual(status, 0, output)
            self.assertRegex(output, f"{pattern}: pip install 'torch>=2.6' 'transformers>=5.20'\n")

        missing = "raise ImportError('none here')"
        torch, transformers = "__version__ = '2.15.0+cpu'", "__version__ = '5.24'"
        check(r"^xfp.load needs torch and transformers \(none here\)", missing, transformers)
        check(r"^xfp.load needs torch and transformers \(none here\)", torch, missing)
        for error in ("OSError", "ValueError"):  # of a torch without its CUDA libraries
            check("^xfp.load needs torch and transformers, but importing them failed .none here.",
                  missing.replace("ImportError", error), transformers)
        check("^xfp.load needs transformers 5.20 or newer, not 5.dev1", torch, "__version__ = '5.dev1'")
        check("^xfp.load needs transformers 5.20 or newer, not 5.19.3", torch, "__version__ = '5.19.3'")
        check("^xfp.load needs torch 2.6 or newer, not 2.5.1", "__version__ = '2.5.1'", transformers)
        for name in ("quantizers/__init__.py", "quantizers/auto.py"):
            self.module("transformers/" + name, "")
        check("UserWarning: xfp needs transformers 5.20 or newer, not 4.57.0", torch, "__version__ = '4.57.0'",
              "import xfp, transformers.quantizers.auto")

    def module(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)


if __name__ == "__main__":
    unittest.main()

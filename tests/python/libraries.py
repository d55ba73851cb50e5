#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""libxfp that is missing, or another one: an exception that says what to do, when the first bundle is opened."""
import os
import shlex
import subprocess
import tempfile
import unittest

from common import Case, path_of, run

from xfp import abi

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
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", "-x", "c", "-", "-o", self.path],
                       input=text, text=True, check=True)
        return self.path

    def check(self, pattern, library):
        status, output = run(OPEN, XFP_LIBRARY=library)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, rf"(?s)^imported {abi.VERSION}\nrefused: {pattern}")

    def test_the_one_of_the_tests(self):
        self.assertEqual(run(OPEN), (0, f"imported {abi.VERSION}\n"))

    def test_missing(self):
        self.check("this copy of the package xfp contains no libxfp; install its wheel .*set XFP_LIBRARY", None)
        self.check("this copy of the package xfp contains no libxfp", "")
        self.check("cannot load libxfp: .*none.so.*; set XFP_LIBRARY to the libxfp.so of xfp", "/none.so")
        with open(self.path, "w", encoding="ascii") as file:
            file.write("text")
        self.check("cannot load libxfp: .*; set XFP_LIBRARY", self.path)

    def test_different(self):
        self.check("libc.so.6: is not libxfp .*has no function xfp_version; set XFP_LIBRARY", "libc.so.6")
        self.check(f"{self.path}: is libxfp 9.8.7, but this package needs {abi.VERSION}; set XFP_LIBRARY",
                   self.built("9.8.7"))
        self.check(f"{self.path}: is not libxfp .*has no function xfp_rows;", self.built(abi.VERSION, "xfp_rows"))

    def test_transformers(self):
        """xfp.load names the command that installs what is missing; nothing else needs it."""
        program = "import xfp\ntry:\n    xfp.load('a.xfp')\nexcept xfp.LibraryError as error:\n    print(error)"
        command = r"pip install torch 'transformers>=5.20'"

        def check(pattern):
            path = os.pathsep.join([self.folder.name, os.environ["PYTHONPATH"]])
            status, output = run(program, PYTHONPATH=path)
            self.assertEqual(status, 0, output)
            self.assertRegex(output, f"^{pattern}: {command}\n$")

        for name, text in (("torch", ""), ("transformers", "raise ImportError('none here')")):
            with open(os.path.join(self.folder.name, name + ".py"), "w", encoding="ascii") as file:
                file.write(text)
        check(r"xfp.load needs torch and transformers \(none here\)")
        with open(os.path.join(self.folder.name, "transformers.py"), "w", encoding="ascii") as file:
            file.write("__version__ = '5.19.3'")
        check("xfp.load needs transformers 5.20 or newer, not 5.19.3")


if __name__ == "__main__":
    unittest.main()

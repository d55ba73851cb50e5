# SPDX-License-Identifier: Apache-2.0
"""The report of tests/on-device, and programs whose output is read at once."""
import subprocess
import time


class Stopped(Exception):
    """A signal arrived, or time is up."""


class Failed(Exception):
    """The run cannot continue; the text says what to do."""


class Report:
    """Writes lines to the terminal and to a file, each flushed, so that a killed run leaves what it measured."""

    def __init__(self, path):
        self.path, self.start = path, time.monotonic()
        self.file = open(path, "w", encoding="utf-8")

    def seconds(self):
        return time.monotonic() - self.start

    def write(self, text):
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def tell(self, text):
        """Writes a line with the time since the start."""
        self.write(f"[{self.seconds():6.1f} s] {text}")


def output_of(*words, env=None, timeout=30):
    """The standard output of a program; "" if it is missing, fails or takes too long."""
    try:
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=timeout,
                              env=env, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def first_line(text):
    return text.split("\n", 1)[0]

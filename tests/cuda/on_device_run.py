# SPDX-License-Identifier: Apache-2.0
"""Programs that tests/on-device runs, one at a time, each with a limit."""
import signal
import threading
import time

from bare_build import end, signalled, start


# Lines that processes of one build repeat: printed once. The total of a bench counts nothing.
REPEATED = ("xfp-kernel-verify: seed ", "device: ", "cuBLAS: ")
NOTHING = "total: 0 groups, 0 trials, all ok"


class Runner:
    """Copies what a program prints to the report, line by line."""

    def __init__(self, report, minutes):
        self.report, self.limit = report, minutes * 60
        self.child, self.lines, self.printed = None, [], set()

    def left(self):
        return self.limit - self.report.seconds()

    def stop(self):
        if self.child and self.child.poll() is None:
            end([self.child])

    def run(self, words, environment, until, quiet=None):
        """Returns the exit status; None if the program ran past `until` or printed nothing for `quiet` seconds. Its
        output is in self.lines."""
        limit = min(self.limit, until) - self.report.seconds()
        self.lines = []
        if limit <= 0:
            return None
        self.child = start(words, env=environment)
        late, heard = threading.Event(), threading.Event()
        watch = threading.Thread(target=self.watch, args=(self.child, limit, quiet or limit, late, heard), daemon=True)
        watch.start()
        try:
            for line in self.child.stdout:
                heard.set()
                self.lines.append(line.rstrip("\n"))
                if self.lines[-1] != NOTHING and self.lines[-1] not in self.printed:
                    self.report.tell(self.lines[-1])
                if line.startswith(REPEATED):
                    self.printed.add(self.lines[-1])
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

# SPDX-License-Identifier: Apache-2.0
"""The steps of tests/on-device, in the order in which they run: the quickest and the most important come first."""
import os
import re
import sys

from on_device_machine import find, report_gpu
from on_device_report import output_of
from on_device_table import Comparison, op_of

# Each step with its weight: it may take its share of the time that is left, among those that are still to come.
WEIGHTS = {"contact": 1, "check": 3, "first": 4, "python": 2, "compare": 6, "bench": 6, "verify": 6, "sanitize": 4}
TOOLS = ("memcheck", "racecheck", "initcheck")
CONTACT = "matvec v2c k=4"  # the kernel that is launched first
# Patterns of the bench, a process each, so that a kernel that hangs stops only the others of its pattern.
PATTERNS = ("matvec v2*k=4", "matvec v2*k=[!4]", "matvec [!v]*", "experts *")
ROUNDS = 2              # of a comparison
CHECKED = 4             # trials of each kernel in the step check
COMPARED = 2            # trials of each kernel of a variant
SANITIZED = 3           # trials of each kernel in the step sanitize
MAX_SILENCE = 60    # seconds without a line
LEAST_OF_CONTACT = 30   # seconds: a driver that was not in use starts slowly
VERIFIED = re.compile(r"(?P<op>\S.*?) cuda: \d+ (?:ok|of \d+ (?P<failed>FAILED))$")
SANITIZER_ERRORS = 86   # the status that compute-sanitizer ends with


def verified_op(line):
    found = VERIFIED.match(line)
    return found["op"] if found else None


def severity(status):
    """The status that a process contributes to its step's: 1 if it was stopped or ended by a signal."""
    return 1 if status is None or status < 0 else status


class Steps:
    """Each step returns a status: 0 all is right, 1 it could not be run or was cut off, 4 a kernel is wrong."""

    def __init__(self, options, report, runner, variants, clocks, more):
        self.options, self.report, self.runner, self.clocks, self.more = options, report, runner, clocks, more
        self.variants = variants
        self.built = next(iter(variants.values()))
        self.steps = [step for step in WEIGHTS
                      if step in options.only and (step != "compare" or len(variants) > 1)]

    # ---- running

    def until(self, step):
        """When the step has to end."""
        weights = [WEIGHTS[name] for name in self.steps[self.steps.index(step):]]
        return self.report.seconds() + self.runner.left() * weights[0] / sum(weights)

    def turn(self, end, number, count):
        """When run `number` of `count` has to end, so that the time until `end` is shared evenly."""
        now = self.report.seconds()
        return now + (end - now) / (count - number)

    def run(self, built, words, until, quiet=None, before=(), **environment):
        words = [*before, *built.verifier("--seed", str(self.options.seed), *words)]
        return self.runner.run(words, built.environment({**self.more, **environment}), until, quiet)

    def filtered(self, pattern):
        return ["--filter", pattern] if pattern else []

    def ops(self, built, pattern):
        listed = output_of(*built.verifier("--list", *self.filtered(pattern)), env=built.environment(self.more))
        return [line.split(":")[0] for line in listed.split("\n") if line]

    def groups(self, what, built, words, pattern, until, op, **environment):
        """Runs all ops of a pattern in one process. If that hangs or has the device fail, runs the ops that it printed
        nothing of one by one, each in a process of its own, the one that hung last. `op` finds the op of a line.
        Returns the status and all lines."""
        quiet = min((until - self.report.seconds()) / 4, MAX_SILENCE)
        status = self.run(built, [*words, *self.filtered(pattern)], until, quiet, **environment)
        lines = self.runner.lines
        seen = set(filter(None, map(op, lines)))
        broke = status is None or status < 0
        if not broke and status != 4 and not (status == 1 and seen):
            return status, lines
        missing = [name for name in self.ops(built, pattern) if name not in seen]
        if not missing:
            return (1 if broke else status), lines
        self.report.tell(f"{what}: " + ("stopped" if status is None else f"ended with status {status}") +
                         f"; {len(missing)} kernels without a result are run one by one")
        worst = 1 if broke else status  # even if all the others are right
        for name in missing[1:] + missing[:1] if broke else missing:
            left = until - self.report.seconds()
            status = self.run(built, [*words, *self.filtered(name)], until, quiet, **environment) if left > 1 else None
            lines = lines + self.runner.lines
            if status is None:
                self.report.tell(f"{name}: " + ("stopped: it takes too long" if left > 1 else "not run: no time left"))
            worst = max(worst, severity(status))
        return worst, lines

    def judge(self, what, status, late_is_fine=False):
        if status is None:
            self.report.tell(f"{what}: stopped: its time is up")
            return 0 if late_is_fine else 1
        if status < 0:
            self.report.tell(f"{what}: ended by signal {-status}")
            return 1
        self.report.tell(f"{what}: " + ("done" if not status else f"FAILED, status {status}"))
        return status

    def trials(self, most):
        return ["--trials", str(min(most, self.options.trials or most))]

    # ---- the bench

    def bench_words(self, built, unchecked=False):
        mib = self.options.mib or ("1" if self.options.stand_in else None)
        return ["--trials", "0", "--bench", *(["--mib", mib] if mib else []),
                *(["--unchecked"] if self.options.stand_in or unchecked else [])]

    def bench_patterns(self, what, patterns, more=()):
        """Runs a process for each pattern, and shares the step's time evenly among those that are left."""
        worst, end = 0, self.until(what)
        for number, pattern in enumerate(patterns):
            with self.clocks.around(f"{what}, {pattern or 'all'}"):
                status, _ = self.groups(what, self.built, [*self.bench_words(self.built), *more], pattern,
                                        self.turn(end, number, len(patterns)), op_of, STAND_IN_IDLE="1")
            worst = max(worst, status)
        return self.judge(what, worst)

    # ---- steps

    def contact(self):
        """Opens the library and launches one kernel; then the machine, and clocks."""
        until = max(self.until("contact"), self.report.seconds() + LEAST_OF_CONTACT)
        status = self.run(self.built, ["--trials", "1", "--filter", CONTACT], until)
        report_gpu(self.report)
        self.clocks.find()
        return self.judge("contact", status)

    def check(self):
        """A few trials of every kernel."""
        status, _ = self.groups("check", self.built, self.trials(CHECKED), self.options.filter, self.until("check"),
                                verified_op)
        return self.judge("check", status)

    def first(self):
        """One vector, which matters most."""
        return self.bench_patterns("first", [self.options.filter] if self.options.filter else PATTERNS,
                                   ["--vectors", "1"])

    def python(self):
        """Operators of python/xfp on tensors of torch, if torch with CUDA is there."""
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "on_device_torch.py")
        return self.judge("python", self.runner.run([sys.executable, "-B", script, self.built.path],
                                                    self.built.environment(self.more), self.until("python")))

    def compare(self):
        """Variants in turn, twice, each verified before it is measured."""
        table = Comparison(list(self.variants))
        runs, end, worst = ROUNDS * len(self.variants), self.until("compare"), 0
        for number in range(runs):
            name = table.names[number % len(table.names)]
            until = self.turn(end, number, runs)
            self.report.tell(f"compare: {name}, round {number // len(table.names) + 1}: "
                             f"{self.variants[name].flags or 'no flags'}")
            statuses = self.compare_one(table, name, until, verify=number < len(table.names))
            # A variant may be wrong or fail: the table says so. Only the base has to be right, and all have to end.
            if None in statuses or (name == table.names[0] and any(statuses)):
                worst = max(worst, *map(severity, statuses))
            if (number + 1) % len(table.names) == 0:
                for line in table.lines():
                    self.report.tell(line)
        return self.judge("compare", worst)

    def compare_one(self, table, name, until, verify):
        """Returns the statuses of the verification and of the bench."""
        built, pattern, verified = self.variants[name], self.options.compare, 0
        if verify:
            middle = (self.report.seconds() + until) / 2
            verified, lines = self.groups("compare", built, self.trials(COMPARED), pattern, middle, verified_op)
            for found in filter(None, map(VERIFIED.match, lines)):
                table.judge(name, found["op"], not found["failed"])
            if verified:
                self.report.tell(f"compare: {name} is {'WRONG' if verified == 4 else 'not verified'}")
        with self.clocks.around(f"compare, {name}"):
            words = [*self.bench_words(built, unchecked=table.wrong(name)), "--vectors", "1", *self.filtered(pattern)]
            status = self.run(built, words, until, quiet=MAX_SILENCE, STAND_IN_IDLE="1")
        table.add(name, self.runner.lines)
        if status:
            self.report.tell(f"compare: {name}: the bench ended with status {status}")
        return verified, status

    def bench(self):
        """All numbers of vectors, and the upload."""
        return self.bench_patterns("bench", [self.options.filter] if self.options.filter else [*PATTERNS, "upload"])

    def verify(self):
        """Every kernel, all trials."""
        words = ["--trials", str(self.options.trials)] if self.options.trials else []
        status, _ = self.groups("verify", self.built, words, self.options.filter, self.until("verify"), verified_op)
        return self.judge("verify", status)

    def sanitize(self):
        sanitizer = find("COMPUTE_SANITIZER", "compute-sanitizer")
        if not sanitizer:
            self.report.tell("sanitize: skipped: compute-sanitizer is not found")
            return 0
        worst, end = 0, self.until("sanitize")
        for number, tool in enumerate(TOOLS):
            self.report.tell(f"sanitize: {tool}")
            status = self.run(self.built, [*self.filtered(self.options.filter), *self.trials(SANITIZED)],
                              self.turn(end, number, len(TOOLS)),
                              before=[sanitizer, "--tool", tool, "--error-exitcode", str(SANITIZER_ERRORS)])
            if status == SANITIZER_ERRORS:
                self.report.tell(f"sanitize {tool}: it found errors")
                worst = 4
            else:
                worst = max(worst, self.judge(f"sanitize {tool}", status, late_is_fine=True))
        return worst

    def all(self):
        worst = 0
        for step in self.steps:
            self.report.tell(f"{step}:")
            worst = max(worst, getattr(self, step)())
        return worst

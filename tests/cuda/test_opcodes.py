# SPDX-License-Identifier: Apache-2.0
"""test_opcodes.py [--ptxas PTXAS] - compare every opcode of the PTX emulator with its definition (reference.py and
numpy), and raise every kind of fault, each by a snippet of its own. Prints TAP. With --ptxas, snippets of the first
kind are also assembled, to check that they are valid PTX."""
import argparse
import collections
import os
import subprocess
import sys
import tempfile
import traceback

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP there is no numpy")
    sys.exit(0)

import opcode_arithmetic
import opcode_common
import opcode_faults
import opcode_machine  # noqa: F401 (it registers tests, as the next two do)
import opcode_matrix   # noqa: F401
import opcode_warps    # noqa: F401
import snippets
from ptx.decode import KNOWN

CONTROL = {"bra", "brx", "ret", "exit", "trap", "barrier"}


class Tap:
    def __init__(self, ptxas):
        self.count = self.failed = 0
        self.ptxas = ptxas
        self.seen = collections.Counter()

    def result(self, name, problem=None):
        self.count += 1
        self.failed += problem is not None
        for text in str(problem or "").splitlines():
            print("#", text)
        print("ok" if problem is None else "not ok", self.count, "-", name, flush=True)

    def check(self, name, function, *arguments):
        try:
            problem = function(*arguments)
        except Exception:  # pylint: disable=broad-except
            problem = traceback.format_exc()
        self.result(name, problem)

    def note(self, text):
        """The opcodes of a snippet, which must be valid PTX."""
        for module in [snippets.ptx.load(text)]:
            for function in module.functions.values():
                self.seen.update(instruction.kind for instruction in function.code)
        if not self.ptxas:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.ptx")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            said = subprocess.run([self.ptxas, "-arch=sm_90", "-o", os.path.join(folder, "k"), path],
                                  capture_output=True, text=True, check=False)
            if said.returncode:
                raise AssertionError(said.stderr + said.stdout + text)


def values(array, kind):
    bits = snippets.BITS[kind]
    if kind[0] == "s":
        return array.view(f"i{bits // 8}").tolist()
    return array.tolist()


def is_nan(bits):
    return bits & ((1 << 63) - 1) > 0x7ff << 52


def arithmetic(tap, text, ins, outs, meaning):
    """None, or the error of one case of opcode_arithmetic.py."""
    rng = np.random.default_rng(len(text) * 1000 + sum(map(ord, text)))
    inputs = [snippets.operands(kind, rng, {0: 2, 1: 1}.get(n, 3) if len(ins) > 1 else 1) for n, kind in enumerate(ins)]
    kernel = snippets.kernel("\t" + text, ins, outs)
    tap.note(kernel)
    got, _ = snippets.run(kernel, inputs, outs)
    for n, operands in enumerate(zip(*[values(array, kind) for array, kind in zip(inputs, ins)])):
        wanted = meaning(*operands)
        for kind, have, want in zip(outs, got, wanted if isinstance(wanted, list) else [wanted]):
            have = int(have[n])
            if want == "nan":
                if not is_nan(have):
                    return f"{text}: of {operands} {have:#x}, not a NaN"
                continue
            want = int(want) & ((1 << max(8, snippets.BITS[kind])) - 1)
            if have != want:
                return f"{text}: of {', '.join(map(hex, operands))} {have:#x}, not {want:#x}"
    return None


def grouped(cases):
    """One result for each opcode."""
    groups = collections.defaultdict(list)
    for one in cases:
        last = [statement.strip() for statement in one[0].split(";") if statement.strip()][-1]
        groups[last.split(".")[0]].append(one)
    return groups


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ptxas")
    parser.add_argument("--only", default="", help="only tests whose name holds this")
    options = parser.parse_args()
    tap = Tap(options.ptxas)
    for kind, cases in grouped(opcode_arithmetic.CASES).items():
        if options.only not in kind:
            continue

        def all_of(cases=cases):
            problems = [problem for one in cases for problem in [arithmetic(tap, *one)] if problem]
            return "\n".join(problems) or None
        tap.check(f"{kind}: {len(cases)} forms", all_of)
    for name, function in opcode_common.TESTS:
        if options.only in name:
            tap.check(name, function, tap)
    for name, text, said, arguments in opcode_faults.CASES:
        if options.only in name:
            tap.check(f"fault: {name}", opcode_faults.check, text, said, arguments)
    if not options.only:
        left = (KNOWN | CONTROL) - set(tap.seen) - {"undefined"}
        tap.result("every opcode has a test", f"none has: {', '.join(sorted(left))}" if left else None)
    print(f"1..{tap.count}")
    return tap.failed > 0


if __name__ == "__main__":
    sys.exit(main())

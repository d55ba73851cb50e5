#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether kernels execute no more than they did: executed.py [--update] COUNTS TABLE NVCC, as TAP.

COUNTS is what kernels.py left of a run in the emulator, TABLE executed.txt: instructions of PTX by weight, a row for
each launch. It is of one nvcc, which its first line names; with another one there is nothing to compare. --update
writes the table again, from the same run."""
import json
import os
import re
import subprocess
import sys

# The columns, with the instructions in each; all others are in "other".
COLUMNS = {
    "prmt": ("prmt",),
    "logic": ("lop3", "and", "or", "xor", "not"),
    "shift": ("shf", "shl", "shr", "bfe", "bfi"),
    "add": ("add", "sub", "neg", "mul", "mad", "min", "max", "dp4a"),
    "fma": ("fma",),
    "cvt": ("cvt", "cvta"),
    "mma": ("mma",),
    "shfl": ("shfl",),
    "global": ("ld.global", "st.global", "atom.global", "red.global", "cp"),
    "shared": ("ld.shared", "st.shared", "atom.shared", "red.shared", "ldmatrix"),
    "branch": ("bra", "setp", "selp", "bar", "barrier"),
    "mov": ("mov",),
}
NAMES = (*COLUMNS, "other")
HEADER = """\
# {nvcc}
#
# What tests/cuda/kernels executes, as PTX for sm_80 by the nvcc above: instructions by weight of the matrix (and by
# number of what is prepared), with all that is done once for a row, a tile or a launch. The matrices are small, so
# that is much; what a main loop takes in machine code tests/cuda/sass tells. None may grow: tests/cuda/executed
# compares. `tests/cuda/executed --update [BUILD]` writes this file.
"""


def compiler(nvcc):
    said = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"Cuda compilation tools, release .*", said)[0]


def row(numbers, counts):
    """Instructions per weight, formatted for the table."""
    left = dict(counts)
    sums = [sum(left.pop(kind, 0) for kind in COLUMNS[name]) for name in COLUMNS]
    sums.append(sum(left.values()))
    return [f"{value / numbers:.3f}" for value in (sum(sums), *sums)]


def rows_of(executed):
    """Read {(kernel, launch): figures} from the output of kernels.py."""
    found, prepared = {}, set()
    for case, launches in executed.items():
        for kernel, size, numbers, counts in launches:
            if kernel.startswith("xfp_prepare_") and (kernel, size) in prepared:
                continue
            prepared.add((kernel, size))
            key, figures, again = (kernel, f"{case}: {size}"), row(numbers, counts), 2
            while found.get(key, figures) != figures:
                key, again = (kernel, f"{case}: {size} ({again})"), again + 1
            found[key] = figures
    return dict(sorted(found.items(), key=lambda one: one[0][0]))


def written(nvcc, rows):
    lines, kernel = [HEADER.format(nvcc=nvcc)], None
    for (name, launch), figures in rows.items():
        if name != kernel:
            lines.append("\n" + name + "\n" + "".join(f" {column:>8}" for column in ("total", *NAMES)) + "\n")
            kernel = name
        lines.append("".join(f" {figure:>8}" for figure in figures) + f"  {launch}\n")
    return "".join(lines)


def read(text):
    """(nvcc, {(kernel, launch): figures})"""
    rows, kernel = {}, None
    for line in text.splitlines():
        if re.match(r"\w", line):
            kernel = line
        elif re.match(r"\s+\d", line):
            words = line.split(None, len(NAMES) + 1)
            rows[kernel, words[-1]] = words[:-1]
    return text.split("\n", 1)[0][2:], rows


def compared(there, now):
    """Compare: (increases, whether anything decreased)."""
    pairs = list(zip(("total", *NAMES), there, now))
    return [f"{name} {then} -> {new}" for name, then, new in pairs if float(new) > float(then)], \
        any(float(new) < float(then) for _, then, new in pairs)


def judge(table, rows):
    """Print TAP for every kernel; returns the number of failures."""
    kernels = sorted({kernel for kernel, _ in {**table, **rows}})
    failed = 0
    print(f"1..{len(kernels)}")
    for at, kernel in enumerate(kernels, 1):
        wrong, lower = [], []
        for key in sorted(key for key in {**table, **rows} if key[0] == kernel):
            if key not in rows or key not in table:
                wrong.append(f"{key[1]}: not in the {'run' if key in table else 'table'}")
                continue
            grown, less = compared(table[key], rows[key])
            if grown:
                wrong.append(f"{key[1]}: {', '.join(grown)}")
            elif less:
                lower.append(key[1])
        print(f"{'not ok' if wrong else 'ok'} {at} - {kernel}")
        for line in wrong:
            print("# " + line)
        if wrong:
            print("# Where that is meant: tests/cuda/executed --update")
        elif lower:
            print(f"# the table can be lowered for {len(lower)} of its launches: tests/cuda/executed --update")
        failed += bool(wrong)
    return failed


def main():
    update = sys.argv[1] == "--update"
    counts, path, nvcc = sys.argv[-3:]
    if not os.path.exists(counts):
        print("1..1\nnot ok 1 - there are counts\n# tests/cuda/kernels leaves them once all its cases pass")
        return 1
    with open(counts, encoding="utf-8") as file:
        rows = rows_of(json.load(file))
    name = compiler(nvcc)
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(written(name, rows))
        return 0
    if not os.path.exists(path):
        print("1..1\nnot ok 1 - there is a table\n# tests/cuda/executed --update writes it")
        return 1
    with open(path, encoding="utf-8") as file:
        of, table = read(file.read())
    if of != name:
        print(f"1..0 # SKIP the table is of another nvcc: {of}; this is {name}")
        return 0
    return judge(table, rows)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of ptxas's report on every kernel for every architecture: resources.py LIBRARY REPORT.ptxas ..., prints TAP.

No kernel spills, and none uses local memory, where arrays with dynamic indices would go. Each report is beside the PTX
of the same file (.ptx80), which lists the expected kernels. The library is smaller than 8 MB."""
import os
import re
import sys

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
LIBRARY_BYTES = 8_000_000
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else None


def faults(report, kernels):
    """Errors, and the largest number of registers of a kernel."""
    said, most, met = [], 0, set()
    for name, architecture, text in ENTRY.findall(report):
        met.add((name, architecture))
        taken = [number(r"(\d+) bytes " + what, text) for what in ("stack frame", "spill stores", "spill loads")]
        registers = number(r"Used (\d+) registers", text)
        if None in taken or registers is None:
            said.append(f"{name} for {architecture}: ptxas tells no stack, spills or registers")
        elif any(taken):
            said.append("%s for %s, with %d registers: %d bytes of local memory, %d of spill stores, %d of loads" %
                        (name, architecture, registers, *taken))
        most = max(most, registers or 0)
    said += [f"nothing is said of {name} for {architecture}" for name in kernels for architecture in ARCHITECTURES
             if (name, architecture) not in met]
    return said, most


def main():
    library, reports = sys.argv[1], sys.argv[2:]
    failed = 0
    print(f"1..{len(reports) + 1}")
    for at, path in enumerate(reports, 1):
        kernels = re.findall(r"\.entry (\w+)\(", read(os.path.splitext(path)[0] + ".ptx80"))
        said, most = faults(read(path), kernels)
        if not kernels:
            said.append("there are no kernels")
        print(f"{'not ok' if said else 'ok'} {at} - {os.path.basename(path)[:-6]}: {len(kernels)} kernels, up to {most} "
              "registers")
        print("".join(f"# {line}\n" for line in said), end="", flush=True)
        failed += bool(said)
    size = os.path.getsize(library)
    good = size < LIBRARY_BYTES
    failed += not good
    print(f"{'ok' if good else 'not ok'} {len(reports) + 1} - the library has {size / 1e6:.2f} MB, and may have "
          f"{LIBRARY_BYTES / 1e6:.0f}")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)

# SPDX-License-Identifier: Apache-2.0
"""ptx_server.py DESCRIPTOR - runs kernels for the stand-in driver (driver.c), whose memory is the file that this
descriptor is of. Reads a line, writes lines that end with "ok" or "fault TEXT":

	load LIBRARY FILE[:FILE...]      "kernel NAME STATIC-SHARED LOCAL OFFSET:BYTES..." for each
	launch LIBRARY NAME GRID*3 BLOCK*3 SHARED PARAMETERS-IN-HEX
"""
import functools
import json
import mmap
import os
import sys

import numpy as np

import ptx
from ptx.memory import PADDING, Region

LEAST_HEAD = 32   # count, data, written, all of driver.h


class Device(ptx.Memory):
    """The allocations listed at the head of the file; variables of modules belong to this process."""

    def __init__(self, descriptor):
        super().__init__()
        self.next = 1 << 24
        self.map = np.frombuffer(mmap.mmap(descriptor, 0), np.uint8)

    def look(self):
        """Make regions of the current allocations."""
        count, data, written, _ = (int(n) for n in self.map[:LEAST_HEAD].view(np.uint64))
        entries = self.map[LEAST_HEAD:LEAST_HEAD + 32 * count].view(np.uint64).reshape(-1, 4)
        for number in [n for n in self.regions if n < 1 << 24]:
            del self.regions[number]
        for number, offset, size, _ in entries.tolist():
            padded = -(-size // PADDING) * PADDING
            parts = [self.map[start + offset:start + offset + padded] for start in (data, written)]
            self.regions[number] = Region(*parts, size, f"allocation {number} of {size} bytes")


def one_line(text):
    return " ".join(str(text).split())


@functools.lru_cache(None)
def module_of(file, stamp):
    """Parse a library once, however often it is loaded; unused entries are not parsed."""
    del stamp
    return ptx.load(file, whole=False)


def load(libraries, name, files):
    modules = [module_of(file, os.stat(file).st_mtime_ns) for file in files.split(":") if file]
    libraries[name] = modules
    for module in modules:
        for function in module.functions.values():
            _, shared, local = ptx.sizes(function)
            words = [f"{offset}:{size}" for offset, size in function.parameters.values()]
            print("kernel", function.name, shared, local, *words)


def run(device, modules, words, order, report):
    name, sizes, parameters = words[0], [int(word) for word in words[1:8]], words[8]
    module = next(module for module in modules if name in module.functions)
    device.look()
    counts = ptx.launch(module, name, sizes[:3], sizes[3:6], bytes.fromhex("" if parameters == "-" else parameters),
                        device, shared=sizes[6], order=order)
    if report:
        with open(report, "a", encoding="utf-8") as file:
            print(name, *sizes, json.dumps(counts, sort_keys=True), file=file)


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    device = Device(int(sys.argv[1]))
    order = os.environ.get("STAND_IN_ORDER") or "forward"
    order = int(order) if order.isdigit() else order
    libraries = {}
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "load":
                load(libraries, words[1], line.split(None, 2)[2].strip())
            else:
                run(device, libraries[words[1]], words[2:], order, os.environ.get("STAND_IN_COUNTS"))
            print("ok", flush=True)
        except ptx.Fault as fault:
            print("fault", one_line(fault), flush=True)
        except Exception as error:  # pylint: disable=broad-except
            print("fault in the emulator:", type(error).__name__, one_line(error), flush=True)


if __name__ == "__main__":
    main()

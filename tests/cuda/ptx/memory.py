# SPDX-License-Identifier: Apache-2.0
"""Memory as bytes, each with a flag whether it was ever written. Device memory consists of allocations at addresses far
from one another, so that an address outside of one is in none."""
import numpy as np

from .fault import Fault
from .types import UNSIGNED

SHIFT = 36
SHARED_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW = 1 << 62, 1 << 61, 1 << 60
PADDING = 32
WRITTEN = {1: np.uint8(1), 2: np.uint16(0x0101), 4: np.uint32(0x01010101), 8: np.uint64(0x0101010101010101)}


class Region:
    """`data` and `ready` have the same length, a multiple of 32; only `size` bytes exist."""

    def __init__(self, data, ready, size, name):
        self.size = size
        self.name = name
        self.data = {w: data.view(UNSIGNED[w]) for w in UNSIGNED}
        self.ready = {w: ready.view(UNSIGNED[w]) for w in UNSIGNED}
        self.complete = bool(ready[:size].all())
        self.tracker = None

    def take(self, offsets, width, count, who):
        """Load `count` elements of `width` bytes at offsets that are known to be in bounds and aligned."""
        first = offsets // width if width > 1 else offsets
        values = []
        for n in range(count):
            at = first + n if n else first
            if not self.complete:
                bad = self.ready[width][at] != WRITTEN[width]
                if bad.any():
                    raise Fault(f"read of bytes of {self.name} that were never written, at "
                                f"{int(offsets[bad][0]) + n * width}", int(who[bad][0]))
            values.append(self.data[width][at])
        return values

    def put(self, offsets, width, values):
        first = offsets // width if width > 1 else offsets
        for n, value in enumerate(values):
            at = first + n if n else first
            self.data[width][at] = value
            if not self.complete:
                self.ready[width][at] = WRITTEN[width]


def region(size, name):
    padded = -(-max(size, 1) // PADDING) * PADDING
    return Region(np.zeros(padded, np.uint8), np.zeros(padded, np.uint8), size, name)


class Memory:
    def __init__(self):
        self.regions = {}
        self.next = 1
        self.module_variables = {}
        self.order = None    # of the latest launch

    def alloc(self, size):
        """Allocate uninitialized bytes; returns the address."""
        return self.add(region(size, f"allocation {self.next} of {size} bytes"))

    def add(self, made):
        address = self.next << SHIFT
        self.regions[self.next] = made
        self.next += 1
        return address

    def free(self, address):
        del self.regions[address >> SHIFT]

    def upload(self, array):
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        address = self.alloc(data.size)
        self.write(address, data)
        return address

    def whole(self, address, size):
        found = self.regions.get(address >> SHIFT)
        offset = address - ((address >> SHIFT) << SHIFT)
        if found is None or offset + size > found.size:
            raise Fault(f"bytes {offset} to {offset + size} of what is at {address:#x} are not there")
        return found, offset

    def write(self, address, array):
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        found, offset = self.whole(address, data.size)
        found.data[1][offset:offset + data.size] = data
        found.ready[1][offset:offset + data.size] = 1
        if offset == 0 and data.size == found.size:
            found.complete = True

    def download(self, address, dtype, count):
        size = np.dtype(dtype).itemsize * count
        found, offset = self.whole(address, size)
        if not found.ready[1][offset:offset + size].all():
            at = int(np.flatnonzero(found.ready[1][offset:offset + size] == 0)[0])
            raise Fault(f"download of bytes of {found.name} that were never written, at {offset + at}")
        return found.data[1][offset:offset + size].copy().view(dtype)

    def locate(self, addresses, width, who):
        """Resolve addresses of that many bytes each to [(region, None or lanes, offsets)], all in bounds and
        aligned."""
        numbers = addresses >> np.uint64(SHIFT)
        number = numbers[0]
        if (numbers == number).all():
            return [(*self.inside(int(number), addresses, width, who),)]
        parts = []
        for number in np.unique(numbers):
            lanes = np.flatnonzero(numbers == number)
            found, _, offsets = self.inside(int(number), addresses[lanes], width, who[lanes])
            parts.append((found, lanes, offsets))
        return parts

    def inside(self, number, addresses, width, who):
        found = self.regions.get(number)
        if found is None:
            raise Fault(f"address {int(addresses[0]):#x} is in no allocation", int(who[0]))
        offsets = (addresses - np.uint64(number << SHIFT)).astype(np.int64)
        check(offsets, width, found.size, found.name, who)
        return found, None, offsets


def check(offsets, width, size, name, who):
    bad = (offsets < 0) | (offsets > size - width)
    if bad.any():
        raise Fault(f"out of bounds: bytes {int(offsets[bad][0])} to {int(offsets[bad][0]) + width} of {name}, "
                    f"which has {size}", int(who[bad][0]))
    if width > 1:
        bad = (offsets & (width - 1)) != 0
        if bad.any():
            raise Fault(f"misaligned: {width} bytes at offset {int(offsets[bad][0])} of {name}", int(who[bad][0]))

# SPDX-License-Identifier: Apache-2.0
"""Blocks that run together: every register is an array with one lane per thread. Threads at the lowest place in the
code run first, so that diverged threads reconverge. Blocks are padded to whole warps with lanes that never run."""
import numpy as np

from . import memory as spaces
from .fault import Fault
from .memory import check, region
from .tracker import Tracker
from .types import UNSIGNED


class Batch:
    def __init__(self, launch, first_block, blocks):
        self.launch = launch
        self.order = launch.order
        self.memory = launch.memory
        self.blocks = blocks
        self.per_block = launch.lanes_of_block
        self.n = blocks * self.per_block
        self.who = np.arange(self.n, dtype=np.int64) + first_block * self.per_block
        self.first_block = first_block
        thread = np.arange(self.n) % self.per_block
        self.thread = thread
        self.live = thread < launch.threads
        self.alive = int(self.live.sum())
        self.regs = list(launch.program.blank(self.n))
        none = np.zeros(self.n, bool)
        self.part = [none] * len(self.regs)   # None if every live lane has written the register
        self.stride = launch.shared_stride
        block = np.arange(self.n, dtype=np.int64) // self.per_block
        self.shared_base = block * self.stride
        self.shared = region(blocks * self.stride, "shared memory")
        self.shared.tracker = Tracker(blocks * self.stride // launch.granule, self.order, "shared memory")
        self.local_stride = launch.local_stride
        self.local_base = np.arange(self.n, dtype=np.int64) * self.local_stride
        self.local = region(self.n * self.local_stride, "local memory") if self.local_stride else None
        self.copies = []      # pending cp.async copies
        self.flying = None    # the list that `words` has of their destinations
        self.commits = np.zeros(self.n, np.int64)
        self.special = {}
        self.set_mask(self.live, self.alive)

    def set_mask(self, mask, count):
        self.mask = mask
        self.count = count
        self.whole = count == self.alive
        self._lanes = None if count == self.n else False

    def lanes(self):
        """The active lanes; None for all."""
        if self._lanes is False:
            self._lanes = np.flatnonzero(self.mask)
        return self._lanes

    def acting(self, array):
        """Select from an array with a value per lane those of the active lanes."""
        lanes = self.lanes()
        return array if lanes is None else array[lanes]

    def spread(self, values):
        """The inverse: values of the active lanes to an array of all lanes."""
        lanes = self.lanes()
        if lanes is None:
            return values
        full = np.zeros(self.n, values.dtype)
        full[lanes] = values
        return full

    def write(self, slot, value):
        if self.whole:
            self.regs[slot] = value if value.ndim else np.full(self.n, value)
            self.part[slot] = None
            return
        self.regs[slot] = np.where(self.mask, value, self.regs[slot])
        part = self.part[slot]
        if part is not None:
            self.part[slot] = part | self.mask

    def unwritten(self, slot, name):
        bad = self.mask > self.part[slot]
        if bad.any():
            raise Fault(f"register {name} is read before it is written", int(self.who[bad][0]))

    # ---- memory: `addresses` are those of the active lanes, as unsigned 64 bits

    def parts(self, space, addresses, width):
        """[(region, its active lanes or None, offsets, their threads)]"""
        who = self.acting(self.who)
        if space == "shared":
            offsets = addresses.astype(np.int64)
            check(offsets, width, self.launch.shared_bytes, "shared memory", who)
            return [(self.shared, None, offsets + self.acting(self.shared_base), who)]
        if space == "local":
            offsets = addresses.astype(np.int64)
            check(offsets, width, self.launch.local_bytes, "local memory", who)
            return [(self.local, None, offsets + self.acting(self.local_base), who)]
        if space == "generic":
            return self.generic(addresses, width, who)
        return [(found, lanes, offsets, who if lanes is None else who[lanes])
                for found, lanes, offsets in self.memory.locate(addresses, width, who)]

    def generic(self, addresses, width, who):
        result = []
        windows = addresses >> np.uint64(60)
        for window in np.unique(windows):
            inside = np.flatnonzero(windows == window)
            known = {4: ("shared", spaces.SHARED_WINDOW), 2: ("local", spaces.LOCAL_WINDOW)}.get(int(window))
            here = addresses[inside]
            if known is None:
                for found, lanes, offsets in self.memory.locate(here, width, who[inside]):
                    which = inside if lanes is None else inside[lanes]
                    result.append((found, which, offsets, who[which]))
                continue
            space, base = known
            offsets = (here - np.uint64(base)).astype(np.int64)
            shared = space == "shared"
            check(offsets, width, self.launch.shared_bytes if shared else self.launch.local_bytes,
                  f"{space} memory", who[inside])
            bases = self.acting(self.shared_base if shared else self.local_base)[inside]
            result.append((self.shared if shared else self.local, inside, offsets + bases, who[inside]))
        return result

    def granules(self, found, offsets, width):
        """The tracker of a region; trackers are made for each launch."""
        size = self.launch.granule
        if found.tracker is None or found.tracker.order is not self.order:
            found.tracker = Tracker(len(found.data[1]) // size, self.order, found.name, found.tracker)
        first = offsets // size
        return first if width <= size else first[:, None] + np.arange(width // size)

    def load(self, space, addresses, width, count, strong=False, constant=False):
        """Load `count` arrays of elements of `width` bytes, for the active lanes."""
        parts = self.parts(space, addresses, width * count)
        values = None
        for found, lanes, offsets, who in parts:
            if found is not self.local:
                at = self.granules(found, offsets, width * count)
                found.tracker.read(at, who if at.ndim == 1 else who[:, None], strong, constant)
                if found is self.shared and self.copies:
                    self.not_landed(offsets, width * count, who, "read")
            got = found.take(offsets, width, count, who)
            if lanes is None:
                return got
            if values is None:
                values = [np.zeros(len(addresses), UNSIGNED[width]) for _ in range(count)]
            for value, new in zip(values, got):
                value[lanes] = new
        return values

    def store(self, space, addresses, width, values, strong=False):
        for found, lanes, offsets, who in self.parts(space, addresses, width * len(values)):
            if found is not self.local:
                at = self.granules(found, offsets, width * len(values))
                found.tracker.write(at, who if at.ndim == 1 else who[:, None], strong)
                if found is self.shared and self.copies:
                    self.not_landed(offsets, width * len(values), who, "written")
            found.put(offsets, width, values if lanes is None else [value[lanes] for value in values])

    def not_landed(self, offsets, width, who, what):
        if self.flying is not self.copies:
            self.flying = self.copies
            self.words = np.zeros(len(self.shared.data[4]) + 4, bool)
            self.seen = 0
        for copy in self.copies[self.seen:]:
            self.words[(copy.offsets[:, None] + np.arange(0, copy.size, 4)) // 4] = True
        self.seen = len(self.copies)
        near = self.words[offsets // 4]
        for more in range(4, width, 4):
            near |= self.words[(offsets + more) // 4]
        if near.any():
            raise Fault(f"shared memory is {what} where a cp.async has not been waited for", int(who[near][0]))

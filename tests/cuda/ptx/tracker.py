# SPDX-License-Identifier: Apache-2.0
"""Records who wrote and who read each granule of a memory in this launch. Reads are only recorded, and checked when
something is written: most memory is read and never written, and records are dropped at barriers of all.

Bytes that are read as constant (ld.global.nc), through a cache that is not coherent, must not be written in the same
launch at all, whatever synchronization is in between. The thread whose atomic was the last at an address may continue
with plain accesses, as the last of all blocks does when it resets a counter: there, one changes what the other left.
Lanes of one warp have no order among them."""
import numpy as np

from .fault import Fault
from .order import BLOCK, THREAD, WARP, WHO

MAX_NOTES = 1 << 24


class Tracker:
    def __init__(self, granules, order, name, earlier=None):
        """`earlier`: the tracker of the previous launch that used the memory."""
        self.granules = granules
        self.earlier = earlier if earlier is not None and earlier.order is order.before else None
        if self.earlier is not None:
            self.earlier.earlier = None
        self.order = order
        self.name = name
        self.quiet = 0        # everything up to this time happened before everything from now on
        self.last_write = 0
        self.notes = []
        self.noted = 0
        # Keys; strong are atomics and ordered accesses, latest the last of these.
        self.written = self.strong = self.latest = self.readers = None
        self.constant = None  # whether it was read as constant

    def calm(self, time):
        """After a barrier of all blocks, for memory that no other block sees."""
        self.quiet = time
        self.notes.clear()
        self.noted = 0

    def read(self, at, who, strong=False, constant=False):
        if self.earlier is not None:
            self.refuse_early(at, who, "written", "read")
        if constant and self.last_write:
            self.refuse_any((self.written[at] | self.strong[at]) != 0, who, "read as a constant, and written")
        if self.last_write > self.quiet:
            self.refuse(self.written, at, who, "read", "written")
            if not strong:
                self.refuse(self.strong, at, who, "read", "changed by an atomic", self.latest)
        if not strong:
            self.notes.append((at, who, self.order.time, constant))
            self.noted += at.size
            if self.noted > MAX_NOTES:
                self.look_through()

    def write(self, at, who, strong=False):
        self.look_through()
        if self.earlier is not None:
            self.refuse_early(at, who, "used", "written")
        self.refuse_any(self.constant[at], who, "written, and read as a constant")
        self.refuse(self.written, at, who, "written", "written")
        self.refuse(self.readers, at, who, "written", "read")
        own = np.broadcast_to(self.order.keys(who), at.shape)
        if strong:
            self.merge(self.strong, at, own)
            self.latest[at] = own
        else:
            self.refuse(self.strong, at, who, "written", "changed by an atomic", self.latest)
            self.written[at] = own
            twice = self.written[at] != own
            if twice.any():
                self.fail("two threads write the same bytes at once", twice, who)
        self.last_write = self.order.time

    def fail(self, what, bad, who):
        raise Fault(f"race in {self.name}: {what}", int(np.broadcast_to(who, bad.shape)[bad][0]))

    def refuse_any(self, bad, who, what):
        if bad.any():
            self.fail(f"{what} in the same launch", bad, who)

    def refuse_early(self, at, who, before, now):
        """The memory that a launch uses without waiting for the previous one."""
        early = np.broadcast_to(~self.order.waited.reshape(-1)[who], at.shape)
        if not early.any():
            return
        last = self.earlier
        last.look_through()
        used = last.written | last.strong | (last.readers if now == "written" else 0)
        # The size of granules differs between launches.
        used = np.repeat(used != 0, max(1, self.granules // last.granules)).reshape(self.granules, -1).any(1)
        bad = early & used[at]
        if bad.any():
            self.fail(f"{before} by the launch before, and {now} before griddepcontrol.wait", bad, who)

    def refuse(self, keys, at, who, now, before, latest=None):
        """`latest`: keys of accesses that, if they are ordered, order the accesses of others, too."""
        known = keys[at]
        if (known >> 32).max(initial=0) <= self.quiet:
            return
        bad = self.order.conflicts(known, np.broadcast_to(who, known.shape))
        if latest is not None and bad.any():
            threads = np.broadcast_to(who, known.shape)
            own = self.order.lifted(known & WHO, WARP) == self.order.lifted(threads, WARP)
            bad &= own | self.order.conflicts(latest[at], threads)
        if bad.any():
            key = int(known[bad][0])
            number, lanes = key & ((1 << 30) - 1), self.order.lanes_of_block
            other = f"thread {number % lanes} of block {number // lanes}"
            if key >> 30 & 3 != THREAD:
                other = "several threads"
            self.fail(f"{now} here, {before} by {other}, with no barrier or fence between", bad, who)

    def look_through(self):
        if self.written is None:
            self.written, self.strong, self.latest, self.readers = (
                np.zeros(self.granules, np.int64) for _ in range(4))
            self.constant = np.zeros(self.granules, bool)
        for at, who, time, constant in self.notes:
            self.merge(self.readers, at, np.broadcast_to(who | (time << 32), at.shape))
            if constant:
                self.constant[at] = True
        self.notes.clear()
        self.noted = 0

    def merge(self, keys, at, own):
        """Replace keys that are empty or before a barrier, and join the rest."""
        at, own = at.reshape(-1), own.reshape(-1)
        order = self.order
        known = keys[at]
        if known.any():
            old = (known >> 32) <= self.quiet
            if not old.all():
                block = order.lifted(own & WHO, BLOCK)
                old |= (known >> 32) <= np.where(order.lifted(known & WHO, BLOCK) == block,
                                                 order.barriers[block & ((1 << 30) - 1)], 0)
            keys[at] = own if old.all() else np.where(old, own, order.merged(known, own))
        else:
            keys[at] = own
        while True:
            known = keys[at]
            if np.array_equal(known, own):
                return
            both = order.merged(known, own)
            more = both != known
            if not more.any():
                return
            # Several accesses may be to one granule; each round joins one more, until all are included.
            keys[at[more]] = both[more]

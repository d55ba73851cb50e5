# SPDX-License-Identifier: Apache-2.0
"""Execution of a batch of blocks: threads diverge at branches, reconverge, and wait for one another."""
import numpy as np

from .fault import Fault

PLAIN, BRANCH, END, MEET, BARRIER, TABLE, TRAP = range(7)


class Stepper:
    """Groups of threads at the same place in the code; the group at the lowest place runs next."""

    def __init__(self, launch, batch):
        self.launch, self.batch, self.program = launch, batch, launch.program
        self.groups = {0: batch.live}
        self.parked = {}      # place: threads that wait for others of their warp
        self.waiting = []     # (place after it, number of the barrier, number of threads that it needs, threads)

    def put(self, groups, at, mask):
        groups[at] = groups[at] | mask if at in groups else mask

    def run(self):
        at = 0
        try:
            while self.groups:
                at = min(self.groups)
                mask = self.groups.pop(at)
                if at in self.parked:
                    mask = mask | self.parked.pop(at)
                self.at = at
                self.go(at, mask)
                if not self.groups:
                    self.stuck()
        except Fault as fault:
            raise self.named(fault) from None

    def named(self, fault):
        launch = self.launch
        where = f"; at {self.program.texts[self.at]}" if self.at < len(self.program.texts) else ""
        if fault.thread is None:
            who = self.batch.who[self.batch.mask]
            fault.thread = int(who[0]) if len(who) else int(self.batch.who[0])
        block, thread = divmod(fault.thread, launch.lanes_of_block)
        x, y, z = launch.grid
        named = Fault(f"{fault.cause}{where}; in {launch.function.name}, thread {thread} of block "
                      f"({block % x}, {block // x % y}, {block // x // y})", fault.thread)
        named.cause = fault.cause
        return named

    def go(self, at, mask):
        batch, program, counts = self.batch, self.program, self.launch.counts
        count = int(np.count_nonzero(mask))
        if not count:
            return
        batch.set_mask(mask, count)
        lowest = min(self.groups, default=1 << 60)
        while True:
            functions, end, kinds = program.stretch(at)
            self.at = at
            for function in functions:
                function(batch)
                self.at += 1
            for kind, number in kinds:
                counts[kind] += number * count
            at = self.at = end
            what, payload, guard = program.steps[at]
            if what == BRANCH and guard is None:
                counts["bra"] += count
                at = payload
            elif what != PLAIN:
                at = self.turn(at, what, payload, guard, count)
                if at is None:
                    return
                count = batch.count   # waiting threads may have joined
            if at >= lowest:
                self.put(self.groups, at, batch.mask)
                return

    def turn(self, at, what, payload, guard, count):
        """Execute a step that makes threads diverge or wait. The place where all continue, or None after they were
        parked."""
        batch = self.batch
        mask = batch.mask
        parted = False
        if guard is not None:
            chosen = mask & guard(batch)
            some = int(np.count_nonzero(chosen))
            if not some:
                return at + 1
            if some < count:
                self.put(self.groups, at + 1, mask & ~chosen)
                mask = chosen
                batch.set_mask(mask, some)
                count = some
                parted = True
        if what != MEET and what != BARRIER:
            self.launch.counts["bra" if what == BRANCH else self.program.kinds[at] if at < len(self.program.kinds)
                               else "ret"] += count
        if what == BRANCH:
            return self.onward(payload, parted)
        if what == TRAP:
            raise Fault("trap")
        if what == END:
            batch.live = batch.live & ~mask
            batch.alive = int(np.count_nonzero(batch.live))
            self.release()
            self.unpark()
            return None
        if what == TABLE:
            read, targets = payload
            which = np.broadcast_to(read(batch), batch.n)
            for n in np.unique(which[mask]).tolist():
                if n >= len(targets):
                    raise Fault(f"branch {n} of {len(targets)}")
                self.put(self.groups, int(targets[n]), mask & (which == n))
            return None
        if what == BARRIER:
            return self.barrier(at, payload, mask, count)
        return self.meet(at, payload, mask, count, parted)

    def onward(self, at, parted):
        if parted:
            self.put(self.groups, at, self.batch.mask)
            return None
        return at

    def meet(self, at, payload, mask, count, parted):
        """Run it for the threads whose mask is complete; the others wait."""
        wanted, run = payload
        batch = self.batch
        if at in self.parked:
            mask = mask | self.parked.pop(at)
            count = int(np.count_nonzero(mask))
            batch.set_mask(mask, count)
        missing = wanted(batch)
        if missing is not None:
            late = mask & missing
            self.put(self.parked, at, late)
            mask = mask & ~missing
            count = int(np.count_nonzero(mask))
            if not count:
                return None
            batch.set_mask(mask, count)
            parted = True
        self.launch.counts[self.program.kinds[at]] += count
        run(batch)
        return self.onward(at + 1, parted)

    def unpark(self):
        """After threads have ended, retry those that waited for them."""
        for at in list(self.parked):
            if at not in self.groups:
                self.groups[at] = self.parked.pop(at)

    def barrier(self, at, payload, mask, count):
        batch = self.batch
        self.launch.counts["bar"] += count
        number, wants = payload(batch)
        if wants is None and not self.waiting and batch.whole:
            batch.order.barrier(self.blocks_of(mask))
            self.calm()
            self.put(self.groups, at + 1, mask)
            return None
        self.waiting.append((at + 1, number, wants, mask))
        self.release()
        return None

    def blocks_of(self, mask):
        batch = self.batch
        return np.flatnonzero(mask.reshape(batch.blocks, -1).any(1)) + batch.first_block

    def calm(self):
        """Order accesses to shared memory before a barrier of all threads."""
        self.batch.shared.tracker.calm(self.batch.order.time - 1)
        if self.launch.blocks == 1:
            for found in self.launch.memory.regions.values():
                if found.tracker is not None:
                    found.tracker.quiet = self.batch.order.time - 1

    def release(self):
        """Release blocks whose live threads all wait at a barrier of the same number, or as many as it needs."""
        if not self.waiting:
            return
        batch = self.batch
        living = batch.live.reshape(batch.blocks, -1)
        for number, wants in {(n, w) for _, n, w, _ in self.waiting}:
            there = np.zeros(batch.n, bool)
            for _, n, w, mask in self.waiting:
                if (n, w) == (number, wants):
                    there |= mask
            arrived = there.reshape(batch.blocks, -1) & living
            if wants is None:
                done = (arrived == living).all(1) & arrived.any(1)
            else:
                done = arrived.sum(1) >= wants
            if not done.any():
                continue
            lanes = np.repeat(done, batch.per_block)
            batch.order.barrier(np.flatnonzero(done) + batch.first_block)
            kept = []
            for at, n, w, mask in self.waiting:
                if (n, w) == (number, wants):
                    if (mask & lanes).any():
                        self.put(self.groups, at, mask & lanes)
                    mask = mask & ~lanes
                if mask.any():
                    kept.append((at, n, w, mask))
            self.waiting = kept
            if done.all() and wants is None:
                self.calm()

    def stuck(self):
        """Report a deadlock: no warp can continue."""
        for at, mask in self.parked.items():
            self.at = at
            self.batch.set_mask(mask, int(np.count_nonzero(mask)))
            raise Fault("a lane is missing: the threads that it names do not all come here")
        for at, number, _, mask in self.waiting:
            self.at = at - 1
            raise Fault(f"barrier {number} is never met by all threads of the block", int(self.batch.who[mask][0]))

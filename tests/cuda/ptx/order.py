# SPDX-License-Identifier: Apache-2.0
"""The happens-before relation. Time is counted in steps between barriers and fences. Threads are ordered by barriers of
their block, by bar.warp.sync within a warp, and from warp to warp by fence, atomic, atomic, fence as in PTX's memory
model: a release orders what its thread did, what its block did before its last barrier, and what its warp did before
its last bar.warp.sync.

An actor is a thread's number in the grid, counted in whole warps or, for several threads, the smallest of warp, block
and grid that contains them all: a level in two bits above thirty of a number. With the time in the bits above 32 it is
a key; zero means no actor."""
import numpy as np

THREAD, WARP, BLOCK, GRID = 0, 1, 2, 3
ID = (1 << 30) - 1
WHO = (1 << 32) - 1


class Order:
    def __init__(self, blocks, lanes_of_block, before=None):
        """`before`: the order of a launch that may still run until it is waited for."""
        self.before = before
        self.waited = None if before is None else np.zeros((blocks, lanes_of_block), bool)
        self.lanes_of_block = lanes_of_block
        self.time = 1
        self.barriers = np.zeros(blocks, np.int64)
        self.warps = np.zeros(blocks * lanes_of_block // 32, np.int64)
        self.fences = {}     # thread: its point at its last fence
        self.releases = {}   # address: {thread: point}
        self.pending = {}    # thread: releases that it observed by an atomic, not yet followed by a fence
        self.acquired = {}   # block: [(thread, time, {thread: point})]

    def tick(self):
        self.time += 1

    def barrier(self, blocks):
        self.barriers[blocks] = self.time
        if self.before is not None:
            self.waited[blocks] = self.waited[blocks].any(1, keepdims=True)
        self.tick()

    def warp_barrier(self, warps):
        self.warps[warps] = self.time
        self.tick()

    # ---- from warp to warp

    def point(self, thread):
        """The effects that a thread's release orders: up to the last barrier of its block, of its warp, and up to
        now."""
        return int(self.barriers[thread // self.lanes_of_block]), int(self.warps[thread // 32]), self.time

    def fence(self, threads):
        for thread in threads.tolist():
            block = thread // self.lanes_of_block
            self.fences[thread] = self.point(thread)
            seen = self.pending.pop(thread, None)
            if seen:
                self.acquired.setdefault(block, []).append((thread, self.time, seen))
        self.tick()

    def atomic(self, threads, addresses, reads=True, writes=True, alone=False, release=False, acquire=False):
        """Release at an address: by threads that passed a fence before, or by the instruction itself. `alone`: a store,
        whose readers do not observe earlier releases there."""
        if not (self.fences or self.releases or release):
            return
        for thread, address in zip(threads.tolist(), addresses.tolist()):
            block = thread // self.lanes_of_block
            seen = self.releases.get(address) if reads else None
            if seen and acquire:
                self.acquired.setdefault(block, []).append((thread, self.time, dict(seen)))
            elif seen:
                self.pending.setdefault(thread, {}).update(seen)
            if alone:
                self.releases.pop(address, None)
            point = self.point(thread) if release else self.fences.get(thread)
            if writes and point:
                self.releases.setdefault(address, {})[thread] = point
        if release or acquire:
            self.tick()

    def covered(self, key, thread):
        """Whether the key's actions happened before everything that this thread does now."""
        time, who = key >> 32, key & WHO
        level, number = who >> 30, who & ID
        if level == GRID:
            return False
        block = {THREAD: number // self.lanes_of_block, WARP: number * 32 // self.lanes_of_block}.get(level, number)
        warp = {THREAD: number >> 5, WARP: number}.get(level, -1)
        mine = thread // self.lanes_of_block
        for by, when, seen in self.acquired.get(mine, ()):
            same_warp = by >> 5 == thread >> 5
            if by != thread and when > self.barriers[mine] and not (same_warp and when <= self.warps[thread >> 5]):
                continue
            for released, (barrier, warp_barrier, fence) in seen.items():
                if released // self.lanes_of_block == block and \
                        (time <= barrier or (warp == released >> 5 and time <= warp_barrier) or
                         (level == THREAD and released == number and time <= fence)):
                    return True
        return False

    # ---- keys

    def keys(self, who):
        return who | (self.time << 32)

    def conflicts(self, keys, who):
        """Of the keys' actions, those of other threads that did not happen before what these threads do now."""
        times = keys >> 32
        level = (keys >> 30) & 3
        number = keys & ID
        warp = np.where(level == THREAD, number >> 5, np.where(level == WARP, number, -1))
        block = np.where(level == THREAD, number // self.lanes_of_block,
                         np.where(level == WARP, number * 32 // self.lanes_of_block,
                                  np.where(level == BLOCK, number, -1)))
        mine = who // self.lanes_of_block
        fine = (times == 0) | ((level == THREAD) & (number == who))
        fine |= (block == mine) & (times <= self.barriers[mine])
        fine |= (warp == who >> 5) & (times <= self.warps[who >> 5])
        bad = ~fine
        if bad.any() and self.acquired:
            known = {}
            for at in np.flatnonzero(bad.reshape(-1)).tolist():
                pair = int(keys.reshape(-1)[at]), int(who.reshape(-1)[at])
                if pair not in known:
                    known[pair] = self.covered(*pair)
                if known[pair]:
                    bad.reshape(-1)[at] = False
        return bad

    def merged(self, one, other):
        """The join of two keys: the later time, and the smallest level that contains both."""
        time = np.maximum(one >> 32, other >> 32)
        a, b = one & WHO, other & WHO
        done = a == b
        result = a.copy()
        for level in (WARP, BLOCK):
            for_a, for_b = self.lifted(a, level), self.lifted(b, level)
            now = ~done & (for_a == for_b) & (for_a >= 0)
            result[now] = for_a[now]
            done |= now
        result[~done] = GRID << 30
        return result | (time << 32)

    def lifted(self, who, level):
        """The warp or block that contains the actor, -1 if it is larger."""
        have, number = who >> 30, who & ID
        if level == WARP:
            return np.where(have == THREAD, (WARP << 30) | (number >> 5), np.where(have == WARP, who, -1))
        block = np.where(have == THREAD, number // self.lanes_of_block,
                         np.where(have == WARP, number * 32 // self.lanes_of_block, number))
        return np.where(have <= BLOCK, (BLOCK << 30) | block, -1)

# SPDX-License-Identifier: Apache-2.0
"""cp.async: bytes are read when the copy begins, and written to shared memory when it is waited for, no sooner."""
import numpy as np

from .decode import makes, unknown
from .fault import Fault


class Copy:
    """Copies of some lanes: destinations in shared memory, data, and the group of each, -1 before it is committed."""

    def __init__(self, lanes, offsets, size, words):
        self.lanes, self.offsets, self.size, self.words = lanes, offsets, size, words
        self.group = np.full(len(lanes), -1, np.int64)


@makes("cp")
def copy(decoder, instruction):
    words = instruction.opcode[1:]
    if words[:1] != ["async"]:
        raise unknown(instruction)
    if words[1:] == ["commit_group"]:
        return commit
    if words[1:] == ["wait_all"]:
        return lambda batch: (commit(batch), wait(batch, 0))
    if words[1:] == ["wait_group"]:
        count = int(instruction.operands[0], 0)
        return lambda batch: wait(batch, count)
    if words[1:2] not in (["ca"], ["cg"]) or words[2] not in ("shared", "shared::cta") or words[3] != "global" or \
            set(words[4:]) - {"L2::64B", "L2::128B", "L2::256B", "L2::cache_hint"}:
        raise unknown(instruction)
    operands = instruction.operands
    size = int(operands[2], 0)
    if size not in (4, 8, 16) or words[1] == "cg" and size != 16:
        raise unknown(instruction)
    to, source = decoder.address(operands[0]), decoder.address(operands[1])
    hinted = "L2::cache_hint" in words
    some = decoder.read(operands[3], "u32") if len(operands) > 3 + hinted else None
    decoder.accesses += [("shared", 4), ("global", 4)]

    def run(batch):
        at = source(batch)
        lanes = batch.lanes()
        lanes = np.arange(batch.n) if lanes is None else lanes
        (found, _, offsets, who), = batch.parts("shared", to(batch), size)
        granules = batch.granules(found, offsets, size)
        found.tracker.write(granules, who[:, None] if granules.ndim > 1 else who)
        if batch.copies:
            batch.not_landed(offsets, size, who, "written")
        values = np.zeros((len(at), size // 4), np.uint32)
        have = np.full(len(at), size) if some is None else batch.acting(np.broadcast_to(some(batch), batch.n)).astype(int)
        if (have % 4).any() or (have > size).any() or (have < 0).any():
            raise Fault(f"cp.async of {int(have[0])} of {size} bytes", int(who[0]))
        for part in range(4, size + 1, 4):
            fits = np.flatnonzero(have == part)
            if len(fits):
                mask = np.zeros(batch.n, bool)
                mask[lanes[fits]] = True
                saved = batch.mask, batch.count
                batch.set_mask(mask, len(fits))
                try:
                    check_aligned(at[fits], size, who[fits])
                    for n in range(part // 4):
                        values[fits, n] = batch.load("global", at[fits] + np.uint64(4 * n), 4, 1)[0]
                finally:
                    batch.set_mask(*saved)
        batch.copies.append(Copy(lanes, offsets, size, values))
    return run


def check_aligned(addresses, size, who):
    bad = addresses % np.uint64(size) != 0
    if bad.any():
        raise Fault(f"misaligned: cp.async of {size} bytes from {int(addresses[bad][0]):#x}", int(who[bad][0]))


def commit(batch):
    for one in batch.copies:
        mine = batch.mask[one.lanes] & (one.group < 0)
        one.group[mine] = batch.commits[one.lanes[mine]]
    batch.commits = batch.commits + batch.mask


def wait(batch, count):
    """Complete all but the latest `count` groups of each thread."""
    kept = []
    for one in batch.copies:
        done = batch.mask[one.lanes] & (one.group >= 0) & (one.group < batch.commits[one.lanes] - count)
        if done.any():
            offsets, who = one.offsets[done], batch.who[one.lanes[done]]
            granules = batch.granules(batch.shared, offsets, one.size)
            batch.shared.tracker.write(granules, who[:, None] if granules.ndim > 1 else who)
            batch.shared.put(offsets, 4, list(one.words[done].T))
        if not done.all():
            rest = ~done
            left = Copy(one.lanes[rest], one.offsets[rest], one.size, one.words[rest])
            left.group = one.group[rest]
            kept.append(left)
    batch.copies = kept

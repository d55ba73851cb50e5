# SPDX-License-Identifier: Apache-2.0
"""Cooperation of threads of a warp or block. A maker of these returns two functions: which of the active threads lack
another one in their mask, None if none does; and the operation once all are there."""
import numpy as np

from .decode import makes, meets, unknown
from .fault import Fault
from .types import NUMPY

BITS = np.uint32(1) << np.arange(32, dtype=np.uint32)


def acting_masks(batch):
    """For each warp the bits of its active lanes."""
    return (batch.mask.reshape(-1, 32) * BITS).sum(1).astype(np.uint32)


def whole_warps(batch):
    """Instructions that all 32 lanes must execute."""
    if batch.count == batch.n:
        return None
    there = batch.mask.reshape(-1, 32)
    lacking = there.any(1) & ~there.all(1)
    return np.repeat(lacking, 32) if lacking.any() else None


def members(read):
    """Instructions with a mask of participating lanes."""
    def wanted(batch):
        named = np.broadcast_to(read(batch), batch.n)
        if batch.count == batch.n and (named == np.uint32(0xffffffff)).all():
            return None
        own = BITS[np.arange(batch.n) % 32]
        outside = batch.mask & (named & own == 0)
        if outside.any():
            raise Fault("a lane is not in the mask that it names", int(batch.who[outside][0]))
        lacking = batch.mask & (named & ~np.repeat(acting_masks(batch), 32) != 0)
        return lacking if lacking.any() else None
    return wanted


def sync_only(instruction, count):
    if instruction.opcode[1:2] != ["sync"] or len(instruction.operands) != count:
        raise unknown(instruction)


@meets("shfl")
def shuffle(decoder, instruction):
    sync_only(instruction, 5)
    mode = instruction.opcode[2]
    if instruction.opcode[3:] != ["b32"] or mode not in ("up", "down", "bfly", "idx"):
        raise unknown(instruction)
    to = instruction.operands[0].split("|")
    write = decoder.write(to[0], "b32")
    said = decoder.write(to[1], "pred") if len(to) > 1 else None
    value, by, limits, named = (decoder.read(operand, "b32") for operand in instruction.operands[1:])

    def run(batch):
        lane = np.arange(batch.n) % 32
        b = np.broadcast_to(by(batch), batch.n).astype(np.int64) & 31
        c = np.broadcast_to(limits(batch), batch.n).astype(np.int64)
        clamp, segment = c & 31, c >> 8 & 31
        least, most = lane & segment, (lane & segment) | (clamp & ~segment)
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | (b & ~segment)}[mode]
        inside = source >= most if mode == "up" else source <= most
        source = np.where(inside, source, lane)
        takes_part = np.repeat(acting_masks(batch), 32) & named(batch)
        absent = batch.mask & (takes_part & BITS[source] == 0)
        if absent.any():
            at = int(np.flatnonzero(absent)[0])
            raise Fault(f"shfl reads lane {int(source[at])}, which does not take part", int(batch.who[at]))
        a = np.broadcast_to(value(batch), batch.n)
        write(batch, a[np.arange(batch.n) - lane + source])
        if said:
            said(batch, inside)
    return members(named), run


def by_group(batch, named, function):
    """Apply a function of (indices of lanes) to each warp's lanes of one mask, which must be the same for all."""
    named = np.broadcast_to(named, batch.n)
    for start in range(0, batch.n, 32):
        lanes = start + np.flatnonzero(batch.mask[start:start + 32])
        while len(lanes):
            mask = named[lanes[0]]
            taking = (mask & BITS[lanes - start]) != 0
            group = lanes[taking]
            if (named[group] != mask).any():
                raise Fault("lanes name different masks", int(batch.who[group[0]]))
            function(group, start)
            lanes = lanes[~taking]


@meets("vote")
def vote(decoder, instruction):
    sync_only(instruction, 3)
    mode, kind = instruction.opcode[2:]
    if (mode, kind) not in (("all", "pred"), ("any", "pred"), ("uni", "pred"), ("ballot", "b32")):
        raise unknown(instruction)
    write = decoder.write(instruction.operands[0], kind)
    say, named = decoder.read(instruction.operands[1], "pred"), decoder.read(instruction.operands[2], "b32")

    def run(batch):
        said = np.broadcast_to(say(batch), batch.n) & batch.mask
        ballots = np.repeat((said.reshape(-1, 32) * BITS).sum(1).astype(np.uint32), 32)
        mask = np.broadcast_to(named(batch), batch.n)
        ballots = ballots & mask
        result = {"ballot": ballots, "any": ballots != 0, "all": ballots == mask,
                  "uni": (ballots == 0) | (ballots == mask)}[mode]
        write(batch, result)
    return members(named), run


@meets("redux")
def reduce(decoder, instruction):
    sync_only(instruction, 3)
    name, kind = instruction.opcode[2:]
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
                 "xor": np.bitwise_xor}
    if name not in functions or (name in ("add", "min", "max")) != (kind in ("u32", "s32")) or \
            kind not in ("u32", "s32", "b32"):
        raise unknown(instruction)
    write = decoder.write(instruction.operands[0], kind)
    read, named = decoder.read(instruction.operands[1], kind), decoder.read(instruction.operands[2], "b32")

    def run(batch):
        values = np.broadcast_to(read(batch), batch.n)
        result = np.zeros(batch.n, NUMPY[kind])

        def one(group, _):
            result[group] = functions[name].reduce(values[group])
        by_group(batch, named(batch), one)
        write(batch, result)
    return members(named), run


@meets("match")
def match(decoder, instruction):
    if instruction.opcode[1] not in ("any", "all") or instruction.opcode[2] != "sync" or len(instruction.operands) != 3:
        raise unknown(instruction)
    kind = instruction.opcode[3]
    to = instruction.operands[0].split("|")
    write = decoder.write(to[0], "b32")
    said = decoder.write(to[1], "pred") if len(to) > 1 else None
    read, named = decoder.read(instruction.operands[1], kind), decoder.read(instruction.operands[2], "b32")
    every = instruction.opcode[1] == "all"

    def run(batch):
        values = np.broadcast_to(read(batch), batch.n)
        result, same = np.zeros(batch.n, np.uint32), np.zeros(batch.n, bool)

        def one(group, start):
            bits = BITS[group - start]
            equal = values[group][:, None] == values[group]
            masks = (equal * bits).sum(1).astype(np.uint32)
            if every:
                same[group] = equal.all()
                masks = np.where(equal.all(), masks, np.uint32(0))
            result[group] = masks
        by_group(batch, named(batch), one)
        write(batch, result)
        if said:
            said(batch, same)
    return members(named), run


@meets("elect")
def elect(decoder, instruction):
    sync_only(instruction, 2)
    to = instruction.operands[0].split("|")
    write, said = decoder.write(to[0], "b32"), decoder.write(to[1], "pred")
    named = decoder.read(instruction.operands[1], "b32")

    def run(batch):
        leader, elected = np.zeros(batch.n, np.uint32), np.zeros(batch.n, bool)

        def one(group, start):
            leader[group] = group[0] - start
            elected[group[0]] = True
        by_group(batch, named(batch), one)
        write(batch, leader)
        said(batch, elected)
    return members(named), run


@makes("activemask")
def active(decoder, instruction):
    decoder.only(instruction, (), 1)
    write = decoder.write(instruction.operands[0], "b32")
    return lambda batch: write(batch, np.repeat(acting_masks(batch), 32))


@meets("bar")
def warp_barrier(decoder, instruction):
    if instruction.opcode[1:] != ["warp", "sync"]:
        raise unknown(instruction)
    named = decoder.read(instruction.operands[0], "b32")

    def run(batch):
        there = batch.mask.reshape(-1, 32)
        living = batch.live.reshape(-1, 32)
        done = (there == living).all(1) & there.any(1)
        batch.order.warp_barrier(np.flatnonzero(done) + batch.first_block * batch.per_block // 32)
    return members(named), run


def barrier(decoder, instruction):
    """The operands of a barrier of the block: a function that returns its number, and the number of threads if not
    all."""
    words = [word for word in instruction.opcode[1:] if word not in ("cta", "aligned")]
    if words != ["sync"] or not 1 <= len(instruction.operands) <= 2:
        raise unknown(instruction)
    reads = [decoder.read(operand, "u32") for operand in instruction.operands]

    def ask(batch):
        values = []
        for read in reads:
            value = np.broadcast_to(read(batch), batch.n)[batch.mask]
            if (value != value[0]).any():
                raise Fault("threads name different barriers at once")
            values.append(int(value[0]))
        if values[0] > 15 or len(values) > 1 and (values[1] % 32 or not values[1]):
            raise Fault(f"barrier {values[0]} for {values[1:]} threads")
        return values[0], values[1] if len(values) > 1 else None
    return ask


@makes("membar", "fence")
def fence(decoder, instruction):
    words = set(instruction.opcode[1:])
    if words - {"sc", "acq_rel", "cta", "gl", "sys", "gpu", "cluster", "acquire", "release"}:
        raise unknown(instruction)
    if "cta" in words:
        return lambda batch: None
    return lambda batch: batch.order.fence(batch.acting(batch.who))


@makes("griddepcontrol")
def dependents(decoder, instruction):
    """A dependent launch waits for all effects of the previous one, whenever that allows others to begin."""
    if instruction.opcode[1:] not in (["wait"], ["launch_dependents"]):
        raise unknown(instruction)

    def run(batch):
        if batch.order.before is not None:
            batch.order.waited.reshape(-1)[batch.acting(batch.who)] = True
    return run if instruction.opcode[1] == "wait" else lambda batch: None


@makes("nanosleep")
def sleep(decoder, instruction):
    return lambda batch: None

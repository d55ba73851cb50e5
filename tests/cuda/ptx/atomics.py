# SPDX-License-Identifier: Apache-2.0
"""Atomics. Threads that change the same address do so one after another, in the launch's order of blocks, and by lane
within a block."""
import numpy as np

from .decode import makes, unknown
from .floats import canonical
from .types import BYTES, NUMPY, UNSIGNED

FUNCTIONS = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
             "xor": np.bitwise_xor}
ALLOWED = {"add": ("u32", "s32", "u64", "f32", "f64"), "min": ("u32", "s32", "u64", "s64"),
           "max": ("u32", "s32", "u64", "s64"), "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
           "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",), "dec": ("u32",)}


def changed(name, old, value, second):
    if name == "exch":
        return value
    if name == "cas":
        return np.where(old == value, second, old)
    if name == "inc":
        return np.where(old >= value, np.uint32(0), old + np.uint32(1))
    if name == "dec":
        return np.where((old == 0) | (old > value), value, old - np.uint32(1))
    result = FUNCTIONS[name](old, value)
    return canonical(result, "f32") if result.dtype == np.float32 else result


def ranks(keys):
    """The rank of each element among its equals."""
    by = np.argsort(keys, kind="stable")
    ordered = keys[by]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    start = np.repeat(first, np.diff(np.append(first, len(keys))))
    result = np.empty(len(keys), np.int64)
    result[by] = np.arange(len(keys)) - start
    return result


@makes("atom", "red")
def atomic(decoder, instruction):
    returns = instruction.kind == "atom"
    words = instruction.opcode[1:]
    kind = words[-1]
    name = words[-2] if len(words) > 1 else ""
    rest = words[:-2]
    space = next((word for word in rest if word in ("global", "shared", "shared::cta")), "generic").split(":")[0]
    if kind not in ALLOWED.get(name, ()) or set(rest) - {"global", "shared", "shared::cta", "relaxed", "acquire",
                                                       "release", "acq_rel", "gpu", "cta", "sys"}:
        raise unknown(instruction)
    if "cta" in rest and space in ("global", "generic"):
        raise unknown(instruction)   # scopes that only threads of the block agree on
    operands = list(instruction.operands)
    write = decoder.write(operands.pop(0), kind) if returns else None
    address = decoder.address(operands[0])
    reads = [decoder.read(operand, kind) for operand in operands[1:]]
    if len(reads) != (2 if name == "cas" else 1):
        raise unknown(instruction)
    width, dtype = BYTES[kind], NUMPY[kind]
    decoder.accesses.append((space, width))

    def run(batch):
        at = address(batch)
        values = [batch.acting(np.broadcast_to(read(batch), batch.n)) for read in reads]
        result = np.zeros(len(at), dtype)
        for found, lanes, offsets, who in batch.parts(space, at, width):
            lanes = np.arange(len(at)) if lanes is None else lanes
            block = who // batch.per_block
            thread = who % batch.per_block
            backward = batch.launch.sequence == "reverse"
            turn = np.lexsort((-thread if backward else thread, batch.launch.rank[block]))
            lanes, offsets, who = lanes[turn], offsets[turn], who[turn]
            granules = batch.granules(found, offsets, width)
            found.tracker.write(granules, who if granules.ndim == 1 else who[:, None], True)
            if found is not batch.shared:
                batch.order.atomic(who, at[lanes], reads=returns, release=not {"release", "acq_rel"}.isdisjoint(rest),
                                   acquire=not {"acquire", "acq_rel"}.isdisjoint(rest))
            found.take(offsets, width, 1, who)
            cells = found.data[width].view(dtype)
            index = offsets // width
            mine = [value[lanes] for value in values]
            if not returns and name == "add" and kind != "f32":
                np.add.at(cells, index, mine[0])
                continue
            rank = ranks(index)
            old = np.zeros(len(index), dtype)
            for n in range(int(rank.max()) + 1):
                now = np.flatnonzero(rank == n)
                old[now] = cells[index[now]]
                cells[index[now]] = changed(name, old[now], mine[0][now], mine[-1][now])
            result[lanes] = old
        if returns:
            write(batch, batch.spread(result))
    return run


__all__ = ["atomic", "UNSIGNED"]

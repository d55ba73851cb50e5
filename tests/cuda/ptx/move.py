# SPDX-License-Identifier: Apache-2.0
"""Moves between registers, and between registers and memory."""
import re

import numpy as np

from .decode import WINDOWS, makes, unknown
from .fault import Fault
from .types import BYTES, NUMPY, UNSIGNED, is_type, unsigned

# Cache hints, which change no value.
HINTS = re.compile(r"(L1::(evict_normal|evict_unchanged|evict_first|evict_last|no_allocate)|L2::(evict_\w+|(64|128|256)B)|"
                   r"ca|cg|cs|lu|cv|wb|wt|nc)$")
SCOPES = {"cta", "cluster", "gpu", "sys"}
SPACES = {"global": "global", "const": "global", "shared": "shared", "shared::cta": "shared", "local": "local",
          "param": "param"}


@makes("mov")
def move(decoder, instruction):
    kind, = decoder.only(instruction, (), 2)
    to, source = instruction.operands
    if source[0] == "{":
        parts = decoder.vector(source)
        bits = 8 * BYTES[kind] // len(parts)
        if bits < 8:
            raise unknown(instruction)
        reads = [decoder.read(part, f"b{bits}") for part in parts]
        write = decoder.write(to, f"b{8 * BYTES[kind]}")
        dtype = unsigned(kind)

        def pack(batch):
            value = np.zeros(batch.n, dtype)
            for n, read in enumerate(reads):
                value |= read(batch).astype(dtype) << dtype(n * bits)
            write(batch, value)
        return pack
    if to[0] == "{":
        parts = decoder.vector(to)
        bits = 8 * BYTES[kind] // len(parts)
        small = UNSIGNED[bits // 8]
        read = decoder.read(source, f"b{8 * BYTES[kind]}")
        writes = [decoder.write(part, f"b{bits}") for part in parts]
        dtype = unsigned(kind)

        def unpack(batch):
            value = read(batch)
            for n, write in enumerate(writes):
                write(batch, (value >> dtype(n * bits) if n else value).astype(small))
        return unpack
    read, write = decoder.read(source, kind), decoder.write(to, kind)
    return lambda batch: write(batch, read(batch))


@makes("undefined")
def undefined(decoder, instruction):
    """A register that the compiler leaves undefined: uninitialized, so that a use is detected."""
    name, = instruction.operands
    slot = decoder.slot(name)
    if slot is None:
        return lambda batch: None
    dtype = unsigned(decoder.types[slot])
    value = dtype(0xdeadbeefdeadbeef & ((1 << 8 * np.dtype(dtype).itemsize) - 1)) if dtype != np.bool_ else dtype(True)
    return lambda batch: batch.write(slot, value)


@makes("cvta")
def convert_address(decoder, instruction):
    words = decoder.only(instruction, {"to", *WINDOWS}, 2)
    to = words[0] == "to"
    space, kind = words[-2:]
    base = np.uint64(WINDOWS[space])
    if kind != "u64":
        raise unknown(instruction)
    read, write = decoder.read(instruction.operands[1], kind), decoder.write(instruction.operands[0], kind)
    return lambda batch: write(batch, read(batch) - base if to else read(batch) + base)


@makes("isspacep")
def is_space(decoder, instruction):
    space = instruction.opcode[1]
    if space not in ("global", "shared", "local"):
        raise unknown(instruction)
    read, write = decoder.read(instruction.operands[1], "u64"), decoder.write(instruction.operands[0], "pred")
    window = np.uint64(WINDOWS[space] >> 60)
    return lambda batch: write(batch, read(batch) >> np.uint64(60) == window)


def access(decoder, instruction, parts_allowed):
    """(space, element type, count, whether ordered, acquire or release) of a load or store."""
    space, count, ordered, order = "generic", 1, False, None
    kind = instruction.opcode[-1]
    if not is_type(kind) or kind in ("pred", "f16x2", "bf16x2"):
        raise unknown(instruction)
    for word in instruction.opcode[1:-1]:
        if word in SPACES:
            space = SPACES[word]
        elif word in ("v2", "v4", "v8"):
            count = int(word[1])
        elif word in ("volatile", "relaxed", "acquire", "release") and word in parts_allowed:
            ordered, order = True, word
        elif word == "weak" or word in SCOPES or HINTS.match(word):
            pass
        else:
            raise unknown(instruction)
    if ordered and space in ("global", "generic") and "cta" in instruction.opcode:
        raise unknown(instruction)   # scopes that only threads of the block agree on
    decoder.accesses.append((space, BYTES[kind]))
    return space, kind, count, ordered, order


@makes("ld", "ldu")
def load(decoder, instruction):
    space, kind, count, ordered, order = access(decoder, instruction, ("volatile", "relaxed", "acquire"))
    to = decoder.vector(instruction.operands[0])
    if len(to) != count or len(instruction.operands) not in (2, 3):
        raise unknown(instruction)
    width, dtype = BYTES[kind], NUMPY[kind]
    writes = [decoder.write(part, kind) for part in to]
    address = decoder.address(instruction.operands[1])
    constant = instruction.kind == "ldu" or "nc" in instruction.opcode
    if space == "param":
        return parameter(address, writes, width, dtype)

    def run(batch):
        at = address(batch)
        values = batch.load(space, at, width, count, ordered, constant)
        for write, value in zip(writes, values):
            write(batch, batch.spread(value).view(dtype))
        if ordered and space in ("global", "generic"):
            batch.order.atomic(batch.acting(batch.who), at, writes=False, acquire=order == "acquire")
    return run


def parameter(address, writes, width, dtype):
    def run(batch):
        block = batch.launch.parameters
        at = address(batch).astype(np.int64)
        if (at < 0).any() or (at + width * len(writes) > len(block)).any():
            raise Fault(f"a parameter is read beyond the {len(block)} bytes of parameters")
        if (at % (width * len(writes))).any():
            raise Fault("misaligned read of a parameter")
        for n, write in enumerate(writes):
            values = block[(at + n * width)[:, None] + np.arange(width)].view(UNSIGNED[width]).reshape(-1)
            write(batch, batch.spread(values).view(dtype))
    return run


@makes("st")
def store(decoder, instruction):
    space, kind, count, ordered, order = access(decoder, instruction, ("volatile", "relaxed", "release"))
    parts = decoder.vector(instruction.operands[1])
    if len(parts) != count or space == "param" or len(instruction.operands) not in (2, 3):
        raise unknown(instruction)
    width = BYTES[kind]
    reads = [decoder.read(part, f"b{8 * width}") for part in parts]
    address = decoder.address(instruction.operands[0])
    dtype = UNSIGNED[width]

    def run(batch):
        at = address(batch)
        values = []
        for read in reads:
            value = read(batch)
            values.append(batch.acting(value) if value.ndim else np.full(len(at), value, dtype))
        if ordered and space in ("global", "generic"):
            batch.order.atomic(batch.acting(batch.who), at, reads=False, alone=True, release=order == "release")
        batch.store(space, at, width, values, ordered)
    return run


@makes("prefetch", "prefetchu")
def prefetch(decoder, instruction):
    if set(instruction.opcode[1:]) - {"global", "L1", "L2", "L2::evict_last", "L2::evict_normal"}:
        raise unknown(instruction)
    decoder.address(instruction.operands[0])
    return lambda batch: None


@makes("createpolicy")
def policy(decoder, instruction):
    """Cache policies; the value is only passed to loads."""
    write = decoder.write(instruction.operands[0], "b64")
    return lambda batch: write(batch, np.uint64(0))

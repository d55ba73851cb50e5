# SPDX-License-Identifier: Apache-2.0
"""Bytes and bit fields, comparisons and selections."""
import numpy as np

from .decode import makes, unknown
from .integers import elementwise, floating
from .types import BYTES, NUMPY

PAIRS = {"f4e": [0x3210, 0x4321, 0x5432, 0x6543], "b4e": [0x5670, 0x6701, 0x7012, 0x0123],
         "rc8": [0x0000, 0x1111, 0x2222, 0x3333], "ecl": [0x3210, 0x3211, 0x3222, 0x3333],
         "ecr": [0x0000, 0x1110, 0x2210, 0x3210], "rc16": [0x1010, 0x3232, 0x1010, 0x3232]}
NIBBLES = np.array([0, 4, 8, 12], np.uint32)


def permute(a, b, selector):
    """Select four of eight bytes, each by a nibble of the selector, whose top bit replicates the byte's sign
    instead."""
    a, b, selector = np.broadcast_arrays(a, b, selector)
    both = np.empty((len(a), 2), np.uint32)
    both[:, 0] = a
    both[:, 1] = b
    fields = selector[:, None] >> NIBBLES
    at = (fields & np.uint32(7)).astype(np.int64) + 8 * np.arange(len(a))[:, None]
    chosen = both.view(np.uint8).reshape(-1)[at]
    signs = (fields & np.uint32(8)) != 0
    if signs.any():
        chosen = np.where(signs, np.uint8(0) - (chosen >> np.uint8(7)), chosen)
    return np.ascontiguousarray(chosen).view(np.uint32).reshape(-1)


@makes("prmt")
def prmt(decoder, instruction):
    words = [word for word in instruction.opcode[1:] if word != "b32"]
    if "b32" not in instruction.opcode or len(words) > 1 or len(instruction.operands) != 4 or set(words) - set(PAIRS):
        raise unknown(instruction)
    a, b, c = (decoder.read(operand, "b32") for operand in instruction.operands[1:])
    write = decoder.write(instruction.operands[0], "b32")
    table = np.array(PAIRS[words[0]], np.uint32) if words else None

    def run(batch):
        selector = c(batch)
        if table is not None:
            selector = table[selector & np.uint32(3)]
        write(batch, permute(np.broadcast_to(a(batch), batch.n), b(batch), selector))
    return run


@makes("bfe")
def extract(decoder, instruction):
    kind, = decoder.only(instruction, (), 4)
    if kind not in ("u32", "s32", "u64", "s64"):
        raise unknown(instruction)
    width = 8 * BYTES[kind]
    one = decoder.read(instruction.operands[1], kind)
    two, three = (decoder.read(operand, "u32") for operand in instruction.operands[2:])
    write = decoder.write(instruction.operands[0], kind)
    unsigned = NUMPY["u" + kind[1:]]

    def run(batch):
        a, at, many = np.broadcast_arrays(one(batch), two(batch), three(batch))
        at = (at & np.uint32(255)).astype(np.int64)
        many = np.minimum((many & np.uint32(255)).astype(np.int64), width)
        top = np.minimum(at + many - 1, width - 1)
        value = np.where(at < width, a.view(unsigned) >> np.minimum(at, width - 1).astype(unsigned), unsigned(0))
        mask = np.where(many >= width, ~unsigned(0), (unsigned(1) << np.minimum(many, width - 1).astype(unsigned))
                        - unsigned(1))
        value = value & mask
        if kind[0] == "s":
            sign = (a.view(unsigned) >> np.maximum(top, 0).astype(unsigned)) & unsigned(1)
            left = np.clip(width - at, 0, width)
            filled = np.minimum(many, left)
            ones = np.where(filled >= width, unsigned(0), ~unsigned(0) << np.minimum(filled, width - 1).astype(unsigned))
            value = np.where((sign != 0) & (many > 0), value | ones, value)
        write(batch, value.view(NUMPY[kind]))
    return run


@makes("bfi")
def insert(decoder, instruction):
    kind, = decoder.only(instruction, (), 5)
    if kind not in ("b32", "b64"):
        raise unknown(instruction)
    width = 8 * BYTES[kind]
    dtype = NUMPY[kind]
    reads = [decoder.read(operand, kind) for operand in instruction.operands[1:3]] + \
            [decoder.read(operand, "u32") for operand in instruction.operands[3:]]
    write = decoder.write(instruction.operands[0], kind)

    def run(batch):
        a, b, at, many = np.broadcast_arrays(*[read(batch) for read in reads])
        at = (at & np.uint32(255)).astype(np.int64)
        many = np.minimum((many & np.uint32(255)).astype(np.int64), width)
        ones = np.where(many >= width, ~dtype(0), (dtype(1) << np.minimum(many, width - 1).astype(dtype)) - dtype(1))
        by = np.minimum(at, width - 1).astype(dtype)
        mask = np.where(at < width, ones << by, dtype(0))
        write(batch, (b & ~mask) | (np.where(at < width, a << by, dtype(0)) & mask))
    return run


@makes("bmsk")
def bit_mask(decoder, instruction):
    words = decoder.only(instruction, {"clamp", "wrap"}, 3)
    if len(words) != 2 or words[1] != "b32":
        raise unknown(instruction)
    limit = 31 if words[0] == "wrap" else None

    def mask(at, many):
        at, many = at.astype(np.uint64), many.astype(np.uint64)
        if limit is not None:
            at, many = at & np.uint64(31), many & np.uint64(31)
        at, many = np.minimum(at, np.uint64(32)), np.minimum(many, np.uint64(32))
        return ((((np.uint64(1) << many) - np.uint64(1)) << at) & np.uint64(0xffffffff)).astype(np.uint32)
    return elementwise(decoder, instruction, "u32", mask)


def population(a):
    return np.unpackbits(np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1), axis=1).sum(1).astype(np.uint32)


def leading_zeros(a):
    """The number of leading zero bits of unsigned numbers."""
    return np.uint32(8 * a.dtype.itemsize) - length(a)


def length(a):
    """The number of bits up to the highest set bit."""
    result = np.zeros(a.shape, np.uint32)
    step = 4 * a.dtype.itemsize
    a = a.copy()
    while step:
        large = a >> a.dtype.type(step) != 0
        result += np.where(large, np.uint32(step), np.uint32(0))
        a = np.where(large, a >> a.dtype.type(step), a)
        step //= 2
    return result + (a != 0)


@makes("popc", "clz", "brev")
def counts(decoder, instruction):
    kind, = decoder.only(instruction, (), 2)
    if kind not in ("b32", "b64"):
        raise unknown(instruction)

    def reversed_bits(a):
        bits = np.unpackbits(np.ascontiguousarray(a[:, None]).view(np.uint8), axis=1, bitorder="little")
        return np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(a.dtype).reshape(-1)
    function = {"popc": population, "clz": leading_zeros, "brev": reversed_bits}[instruction.kind]
    read = decoder.read(instruction.operands[1], kind)
    write = decoder.write(instruction.operands[0], kind if instruction.kind == "brev" else "u32")
    return lambda batch: write(batch, function(np.broadcast_to(read(batch), batch.n)).astype(
        NUMPY[kind] if instruction.kind == "brev" else np.uint32))


@makes("bfind")
def find(decoder, instruction):
    words = decoder.only(instruction, {"shiftamt"}, 2)
    kind = words[-1]
    if kind not in ("u32", "s32", "u64", "s64"):
        raise unknown(instruction)
    unsigned = NUMPY["u" + kind[1:]]
    read = decoder.read(instruction.operands[1], kind)
    write = decoder.write(instruction.operands[0], "u32")

    def run(batch):
        a = np.broadcast_to(read(batch), batch.n)
        if kind[0] == "s":
            a = np.where(a < 0, ~a, a)
        many = length(a.view(unsigned))
        at = many - np.uint32(1)
        if words[0] == "shiftamt":
            at = np.where(many == 0, at, np.uint32(8 * BYTES[kind] - 1) - at)
        write(batch, at)
    return run


@makes("dp4a", "dp2a")
def dot(decoder, instruction):
    words = [word for word in instruction.opcode[1:] if word not in ("lo", "hi")]
    two = instruction.kind == "dp2a"
    if len(words) != 2 or set(words) - {"u32", "s32"} or two != (len(instruction.opcode) == 4):
        raise unknown(instruction)
    result = "s32" if "s32" in words else "u32"
    a, b = (decoder.read(operand, "u32") for operand in instruction.operands[1:3])
    c = decoder.read(instruction.operands[3], "u32")
    write = decoder.write(instruction.operands[0], result)
    second = 2 if "hi" in instruction.opcode else 0

    def parts(value, kind, size):
        value = np.ascontiguousarray(value).view({"u32": "u", "s32": "i"}[kind] + str(size))
        return value.reshape(-1, 4 // size).astype(np.int64)

    def run(batch):
        one = parts(np.broadcast_to(a(batch), batch.n), words[0], 2 if two else 1)
        other = parts(np.broadcast_to(b(batch), batch.n), words[1], 1)
        if two:
            other = other[:, second:second + 2]
        total = (one * other).sum(1) + c(batch).astype(np.int64)
        write(batch, (total & 0xffffffff).astype(np.uint32).view(NUMPY[result]))
    return run


COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
           "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}


def comparison(decoder, instruction, name, kind):
    """The comparison `name` as a function of two values."""
    if kind in ("bf16", "f16x2", "bf16x2"):
        from .floats import bf16_to_f32
        if kind != "bf16":
            raise unknown(instruction)
        inner = comparison(decoder, instruction, name, "f32")
        return lambda a, b: inner(bf16_to_f32(a), bf16_to_f32(b))
    if name in COMPARE and not (name in ("lo", "ls", "hi", "hs") and kind[0] != "u"):
        plain = COMPARE[name]
        if kind[0] == "f" and name == "ne":
            return lambda a, b: (a < b) | (a > b)
        return plain
    if kind[0] != "f":
        raise unknown(instruction)
    if name in ("num", "nan"):
        return lambda a, b: ((a != a) | (b != b)) == (name == "nan")
    if name[-1] == "u" and name[:-1] in COMPARE:
        plain = COMPARE[name[:-1]]
        return lambda a, b: plain(a, b) | (a != a) | (b != b)
    raise unknown(instruction)


JOIN = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@makes("setp")
def set_predicate(decoder, instruction):
    words = instruction.opcode[1:]
    kind = words[-1]
    join = JOIN.get(words[1]) if len(words) == 3 else None
    if len(words) != (3 if join else 2):
        raise unknown(instruction)
    compare = comparison(decoder, instruction, words[0], kind)
    one, two = (decoder.read(operand, kind) for operand in instruction.operands[1:3])
    three = decoder.read(instruction.operands[3], "pred") if join else None
    writes = [decoder.write(part, "pred") for part in instruction.operands[0].split("|")]

    def run(batch):
        value = compare(one(batch), two(batch))
        for write, said in zip(writes, (value, ~value)):
            write(batch, join(said, three(batch)) if join else said)
    return run


@makes("set")
def set_register(decoder, instruction):
    words = instruction.opcode[1:]
    if len(words) != 3 or words[1] not in ("u32", "s32", "f32") or floating(words[2]) and words[2] not in ("f32", "f64"):
        raise unknown(instruction)
    compare = comparison(decoder, instruction, words[0], words[2])
    one, two = (decoder.read(operand, words[2]) for operand in instruction.operands[1:])
    write = decoder.write(instruction.operands[0], words[1])
    true = np.float32(1) if words[1] == "f32" else NUMPY[words[1]](-1 if words[1] == "s32" else 0xffffffff)
    return lambda batch: write(batch, np.where(compare(one(batch), two(batch)), true, NUMPY[words[1]](0)))


@makes("selp")
def select(decoder, instruction):
    kind, = decoder.only(instruction, (), 4)
    one, two = (decoder.read(operand, kind) for operand in instruction.operands[1:3])
    which = decoder.read(instruction.operands[3], "pred")
    write = decoder.write(instruction.operands[0], kind)
    return lambda batch: write(batch, np.where(which(batch), one(batch), two(batch)))


@makes("slct")
def select_by_sign(decoder, instruction):
    kind, by = decoder.only(instruction, (), 4)
    if by not in ("s32", "f32"):
        raise unknown(instruction)
    one, two = (decoder.read(operand, kind) for operand in instruction.operands[1:3])
    sign = decoder.read(instruction.operands[3], by)
    write = decoder.write(instruction.operands[0], kind)
    return lambda batch: write(batch, np.where(sign(batch) >= 0, one(batch), two(batch)))

# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic and bits."""
import functools

import numpy as np

from .decode import makes, unknown
from .fault import Fault
from .types import BYTES, NUMPY, UNSIGNED, unsigned

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def floating(kind):
    return kind in ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2")


def elementwise(decoder, instruction, kind, function, result=None):
    """d = function(a, b, ...) on values of one type."""
    reads = [decoder.read(operand, kind) for operand in instruction.operands[1:]]
    write = decoder.write(instruction.operands[0], result or kind)
    if len(reads) == 1:
        one, = reads
        return lambda batch: write(batch, function(one(batch)))
    if len(reads) == 2:
        one, two = reads
        return lambda batch: write(batch, function(one(batch), two(batch)))
    return lambda batch: write(batch, function(*[read(batch) for read in reads]))


def bits_of(kind):
    """The unsigned type of the same width: sums and low products are the same."""
    return "u" + str(8 * BYTES[kind])


@makes("add", "sub")
def add_sub(decoder, instruction):
    words = decoder.only(instruction, {"sat", "cc", "rn", "rz", "rm", "rp"}, 3)
    kind = words[-1]
    if floating(kind):
        from .floats import arithmetic
        return arithmetic(decoder, instruction)
    plus = instruction.kind == "add"
    if words == ["sat", "s32"]:
        return elementwise(decoder, instruction, "s32", lambda a, b: np.clip(
            np.add(a, b, dtype=np.int64) if plus else np.subtract(a, b, dtype=np.int64), -1 << 31, (1 << 31) - 1)
            .astype(np.int32))
    if words == ["cc", kind]:
        return carried(decoder, instruction, kind, False)
    if words == ["u16x2"] or words == ["s16x2"]:
        raise unknown(instruction)
    if words != [kind] or kind not in INTEGERS:
        raise unknown(instruction)
    return elementwise(decoder, instruction, bits_of(kind), np.add if plus else np.subtract)


@makes("addc", "subc")
def add_carry(decoder, instruction):
    words = decoder.only(instruction, {"cc"}, 3)
    return carried(decoder, instruction, words[-1], True)


def carried(decoder, instruction, kind, takes):
    """Sums with the carry bit of each thread, which a difference sets on borrow."""
    if kind not in ("u32", "s32", "u64", "s64"):
        raise unknown(instruction)
    kind = bits_of(kind)
    decoder.function.registers.setdefault("%carry", "pred")
    plus = instruction.kind.startswith("add")
    sets = "cc" in instruction.opcode
    one, two = (decoder.read(operand, kind) for operand in instruction.operands[1:])
    write = decoder.write(instruction.operands[0], kind)
    get = decoder.read("%carry", "pred") if takes else lambda batch: np.bool_(False)
    put = decoder.write("%carry", "pred")

    def run(batch):
        a, b, carry = np.broadcast_arrays(one(batch), two(batch), get(batch))
        inward = carry.astype(a.dtype)
        if plus:
            half = a + b
            total = half + inward
            out = (half < a) | (total < half)
        else:
            half = a - b
            total = half - inward
            out = (a < b) | (half < inward)
        write(batch, total)
        if sets:
            put(batch, out)
    return run


def high(a, b):
    """The upper half of a product."""
    if a.dtype.itemsize < 8:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return (np.multiply(a, b, dtype=wide) >> wide(8 * a.dtype.itemsize)).astype(a.dtype)
    signed = a.dtype.kind == "i"
    a, b = a.view(np.uint64), b.view(np.uint64)
    low, up = np.uint64(0xffffffff), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> up, b & low, b >> up
    middle = a1 * b0 + (a0 * b0 >> up)
    result = a1 * b1 + (middle >> up) + ((middle & low) + a0 * b1 >> up)
    if not signed:
        return result
    top = np.uint64(63)
    return (result - (a >> top) * b - (b >> top) * a).view(np.int64)


@makes("mul", "mad")
def multiply(decoder, instruction):
    words = decoder.only(instruction, {"lo", "hi", "wide", "rn", "rz", "rm", "rp", "sat"},
                         3 if instruction.kind == "mul" else 4)
    kind = words[-1]
    if floating(kind):
        from .floats import arithmetic
        return arithmetic(decoder, instruction)
    if len(words) != 2 or kind not in INTEGERS:
        raise unknown(instruction)
    adds = instruction.kind == "mad"
    part = words[0]
    result = {"wide": WIDER.get(kind), "lo": bits_of(kind), "hi": kind}.get(part)
    if result is None:
        raise unknown(instruction)
    inputs = bits_of(kind) if part == "lo" else kind
    one, two = (decoder.read(operand, inputs) for operand in instruction.operands[1:3])
    three = decoder.read(instruction.operands[3], result) if adds else None
    write = decoder.write(instruction.operands[0], result)
    wide = NUMPY[result]
    if part == "wide":
        product = functools.partial(np.multiply, dtype=wide)
    else:
        product = np.multiply if part == "lo" else high
    if adds:
        return lambda batch: write(batch, product(one(batch), two(batch)) + three(batch))
    return lambda batch: write(batch, product(one(batch), two(batch)))


@makes("mul24", "mad24")
def multiply24(decoder, instruction):
    words = decoder.only(instruction, {"lo"}, 3 if instruction.kind == "mul24" else 4)
    if words not in (["lo", "u32"], ["lo", "s32"]):
        raise unknown(instruction)
    shift = NUMPY[words[1]](8)

    def product(a, b, c=None):
        value = ((a << shift) >> shift) * ((b << shift) >> shift)
        return value if c is None else value + c
    return elementwise(decoder, instruction, words[1], product)


@makes("div", "rem")
def divide(decoder, instruction):
    words = decoder.only(instruction, {"rn", "full", "approx"}, 3)
    kind = words[-1]
    if floating(kind):
        from .floats import arithmetic
        return arithmetic(decoder, instruction)
    if words != [kind] or kind not in INTEGERS:
        raise unknown(instruction)
    quotient = instruction.kind == "div"
    one, two = (decoder.read(operand, kind) for operand in instruction.operands[1:])
    write = decoder.write(instruction.operands[0], kind)

    def run(batch):
        a, b = np.broadcast_arrays(one(batch), two(batch))
        bad = (b == 0) & batch.mask
        if bad.any():
            raise Fault("division by zero", int(batch.who[bad][0]))
        b = np.where(b == 0, b.dtype.type(1), b)
        if a.dtype.kind == "i":
            rest = np.fmod(a, b)
            write(batch, (a - rest) // b if quotient else rest)
        else:
            write(batch, a // b if quotient else a % b)
    return run


@makes("min", "max")
def least_most(decoder, instruction):
    words = decoder.only(instruction, {"NaN", "relu"}, 3)
    kind = words[-1]
    if floating(kind):
        from .floats import extremes
        return extremes(decoder, instruction)
    if words != [kind] or kind not in INTEGERS:
        raise unknown(instruction)
    return elementwise(decoder, instruction, kind, np.minimum if instruction.kind == "min" else np.maximum)


@makes("abs", "neg")
def signs(decoder, instruction):
    words = decoder.only(instruction, {"ftz"}, 2)
    kind = words[-1]
    if floating(kind):
        from .floats import signs_of_floats
        return signs_of_floats(decoder, instruction)
    if words != [kind] or kind not in ("s16", "s32", "s64"):
        raise unknown(instruction)
    return elementwise(decoder, instruction, kind, np.abs if instruction.kind == "abs" else np.negative)


@makes("sad")
def differences(decoder, instruction):
    kind, = decoder.only(instruction, (), 4)
    if kind not in INTEGERS:
        raise unknown(instruction)
    same = unsigned(kind)

    def total(a, b, c):
        return c + np.where(a < b, b.view(same) - a.view(same), a.view(same) - b.view(same)).view(c.dtype)
    return elementwise(decoder, instruction, kind, total)


@makes("and", "or", "xor", "not")
def logic(decoder, instruction):
    kind, = decoder.only(instruction, (), 2 if instruction.kind == "not" else 3)
    if kind not in ("pred", "b16", "b32", "b64"):
        raise unknown(instruction)
    return elementwise(decoder, instruction, kind, {"and": np.bitwise_and, "or": np.bitwise_or,
                                                    "xor": np.bitwise_xor, "not": np.invert}[instruction.kind])


@makes("cnot")
def logical_not(decoder, instruction):
    kind, = decoder.only(instruction, (), 2)
    return elementwise(decoder, instruction, kind, lambda a: (a == 0).astype(a.dtype))


@makes("shl", "shr")
def shifts(decoder, instruction):
    kind, = decoder.only(instruction, (), 3)
    if kind[0] == "f" or BYTES[kind] < 2:
        raise unknown(instruction)
    one, two = decoder.read(instruction.operands[1], kind), decoder.read(instruction.operands[2], "u32")
    write = decoder.write(instruction.operands[0], kind)
    width = 8 * BYTES[kind]
    dtype = NUMPY[kind]
    left, signed = instruction.kind == "shl", kind[0] == "s"
    shift = np.left_shift if left else np.right_shift

    def run(batch):
        a, by = one(batch), two(batch)
        value = shift(a, np.minimum(by, np.uint32(width - 1)).astype(dtype))
        if (left or not signed) and (by >= width).any():
            value = np.where(by >= width, dtype(0), value)
        write(batch, value)
    return run


@makes("shf")
def funnel(decoder, instruction):
    words = decoder.only(instruction, {"l", "r", "wrap", "clamp"}, 4)
    if len(words) != 3 or words[2] != "b32" or words[0] not in "lr":
        raise unknown(instruction)
    left, wrap = words[0] == "l", words[1] == "wrap"
    up = np.uint64(32)

    def value(a, b, c):
        by = (c & np.uint32(31) if wrap else np.minimum(c, np.uint32(32))).astype(np.uint64)
        both = b.astype(np.uint64) << up | a
        return ((both >> (up - by)) if left else both >> by).astype(np.uint32)
    return elementwise(decoder, instruction, "u32", value)


@functools.lru_cache(None)
def lop3_function(table):
    """lop3: the shortest expression of a, b and c for a truth table, found by search."""
    found = {0xf0: lambda a, b, c: a, 0xcc: lambda a, b, c: b, 0xaa: lambda a, b, c: c,
             0x0f: lambda a, b, c: ~a, 0x33: lambda a, b, c: ~b, 0x55: lambda a, b, c: ~c,
             0x00: lambda a, b, c: a ^ a, 0xff: lambda a, b, c: ~(a ^ a)}
    while table not in found:
        for x, f in list(found.items()):
            for y, g in list(found.items()):
                found.setdefault(x & y, lambda a, b, c, f=f, g=g: f(a, b, c) & g(a, b, c))
                found.setdefault(x | y, lambda a, b, c, f=f, g=g: f(a, b, c) | g(a, b, c))
                found.setdefault(x ^ y, lambda a, b, c, f=f, g=g: f(a, b, c) ^ g(a, b, c))
    return found[table]


@makes("lop3")
def lop3(decoder, instruction):
    if decoder.only(instruction, ()) != ["b32"] or len(instruction.operands) != 5:
        raise unknown(instruction)
    reads = [decoder.read(operand, "b32") for operand in instruction.operands[1:4]]
    write = decoder.write(instruction.operands[0], "b32")
    function = lop3_function(int(instruction.operands[4], 0) & 0xff)
    a, b, c = reads
    return lambda batch: write(batch, function(a(batch), b(batch), c(batch)))

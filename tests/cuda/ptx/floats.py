# SPDX-License-Identifier: Apache-2.0
"""Floating point with one rounding. Types that numpy lacks, and operations with three operands, are computed in double
precision rounded to odd: the lowest bit records that the result is inexact, so that a second rounding to at most 51
bits gives the correctly rounded result."""
import numpy as np

from .decode import makes, unknown
from .types import BYTES

CANONICAL = {"f32": np.uint32(0x7fffffff).view(np.float32), "f16": np.uint16(0x7fff).view(np.float16)}


def bf16_to_f32(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_odd(sum_, error):
    """Round doubles to odd, given their errors: to the neighbour whose lowest bit is set, if the error is not zero."""
    bits = sum_.view(np.int64)
    off = (error != 0) & np.isfinite(error) & np.isfinite(sum_) & ((bits & 1) == 0)
    if not off.any():
        return sum_
    # A sum of zero with an error cannot occur: an inexact sum is larger than its error.
    outward = (error > 0) == (sum_ > 0)
    return np.where(off, np.where(outward, bits + 1, bits - 1), bits).view(np.float64)


def two_sum(a, b):
    """a + b, and the error of that sum (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def add_odd(a, b):
    """a + b in double precision, rounded to odd."""
    return to_odd(*two_sum(a, b))


def product_and_error(a, b):
    """a b as two doubles, if no part under- or overflows (Dekker)."""
    def halved(value):
        large = value * 134217729.0   # 2^27 + 1
        high = large - (large - value)
        return high, value - high
    (a1, a0), (b1, b0) = halved(a), halved(b)
    product = a * b
    return product, ((a1 * b1 - product) + a1 * b0 + a0 * b1) + a0 * b0


def within(value, power):
    """Whether values are zero, or far from underflow and overflow."""
    size = np.abs(value)
    return (size == 0) | ((size > 2.0 ** -power) & (size < 2.0 ** power))


def add_rounded_f64_fma(a, b, c):
    """a b + c of doubles with one rounding: the exact product and c, all but the largest part added, rounded to odd
    (Boldo and Melquiond). Where something may under- or overflow, with Python's integers, one by one."""
    from fractions import Fraction
    a, b, c = np.broadcast_arrays(a, b, c)
    result = a * b + c
    usual = within(a, 300) & within(b, 300) & within(c, 600)
    high, low = product_and_error(a, b)
    rest, lost = two_sum(c, low)
    total, more = two_sum(high, rest)
    rounded = total + add_odd(lost, more)
    usual &= rounded != 0
    result[usual] = rounded[usual]
    # Zeros keep the sign that this machine's hardware gives them.
    rare = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & ~usual & ((a != 0) & (b != 0) | (c != 0))
    for at in np.flatnonzero(rare):
        exact = Fraction(float(a[at])) * Fraction(float(b[at])) + Fraction(float(c[at]))
        if exact:
            try:
                result[at] = exact.numerator / exact.denominator
            except OverflowError:
                result[at] = np.inf if exact > 0 else -np.inf
        elif a[at] * b[at] or c[at]:
            result[at] = 0.0
    return result


def narrow(value, kind, mode="rn"):
    """Round doubles once to the bits or floats of a type: rn to even, rz to zero, rm down, rp up."""
    if kind == "f64":
        return value
    if kind == "bf16":
        return narrow_bf16(value, mode)
    dtype = {"f32": np.float32, "f16": np.float16}[kind]
    result = value.astype(dtype)
    if mode != "rn":
        wide = result.astype(np.float64)
        if mode == "rz":
            over, toward = np.abs(wide) > np.abs(value), dtype(0)
        elif mode == "rm":
            over, toward = wide > value, dtype(-np.inf)
        else:
            over, toward = wide < value, dtype(np.inf)
        result = np.where(over, np.nextafter(result, toward), result)
        lost = (result == 0) & (value != 0)
        if lost.any():   # nextafter from zero is right, but an exact zero has the sign of the value
            result = np.where(lost, np.copysign(result, value.astype(np.float32)).astype(dtype), result)
    return canonical(result, kind)


def narrow_bf16(value, mode):
    single = value.astype(np.float32)
    error = value - single.astype(np.float64)
    bits = single.view(np.uint32)
    # First to odd in single precision, as bf16 is its upper half.
    off = (error != 0) & np.isfinite(error) & ((bits & np.uint32(1)) == 0)
    outward = (error > 0) == (value > 0)
    bits = np.where(off, np.where(outward, bits + np.uint32(1), bits - np.uint32(1)), bits)
    over = np.isinf(single) & np.isfinite(value)
    bits = np.where(over, (bits & np.uint32(0x80000000)) | np.uint32(0x7f7fffff), bits)
    low, up = bits & np.uint32(0xffff), bits >> np.uint32(16)
    negative = bits >> np.uint32(31) != 0
    more = {"rn": (low > 0x8000) | ((low == 0x8000) & (up & np.uint32(1) != 0)), "rz": low > 0xffff,
            "rm": negative & (low != 0), "rp": ~negative & (low != 0)}[mode]
    result = (up + more).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(0x7fff), result)


def canonical(value, kind):
    """Arithmetic always produces the same NaN."""
    if kind in CANONICAL:
        nan = value != value
        if nan.any():
            return np.where(nan, CANONICAL[kind], value)
    return value


def operations(kind, mode):
    """{name: function} for scalar types, applied to the values of `take`, with results for `write`."""
    if kind == "f32" and mode == "rn":
        return {"add": lambda a, b: canonical(a + b, kind), "sub": lambda a, b: canonical(a - b, kind),
                "mul": lambda a, b: canonical(a * b, kind), "div": lambda a, b: canonical(a / b, kind),
                "fma": fma_f32}
    if kind == "f64" and mode == "rn":
        return {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "fma": add_rounded_f64_fma}
    if kind == "f64":
        return {}

    def wide(value):
        return (bf16_to_f32(value) if kind == "bf16" else value).astype(np.float64)

    def odd(function):
        return lambda *values: narrow(np.asarray(function(*[wide(value) for value in values])), kind, mode)

    def plus(a, b):
        total = add_odd(a, b)
        if mode != "rm":
            return total
        # When rounding down, an exact zero is -0, unless both are +0.
        return np.where((total == 0) & ((a != 0) | (b != 0) | np.signbit(a) | np.signbit(b)), -0.0, total)
    # A product of two floats of at most 24 bits is exact in double precision.
    return {"add": odd(plus), "sub": odd(lambda a, b: plus(a, -b)), "mul": odd(np.multiply),
            "fma": odd(lambda a, b, c: plus(a * b, c))}


def fma_f32(a, b, c):
    product = a.astype(np.float64) * b
    total = product + c
    result = total.astype(np.float32)
    # Double rounding is wrong only if the first rounding produces a tie for the second, or the result has fewer bits.
    near = (total.view(np.uint64) & np.uint64(0x1fffffff)) == np.uint64(0x10000000)
    near |= np.abs(result) < np.float32(2.0 ** -126)
    if near.any():
        result = add_odd(product, c.astype(np.float64)).astype(np.float32)
    return canonical(result, "f32")


def halves(bits, kind):
    """Both of a pair, the lower first."""
    low, up = (bits & np.uint32(0xffff)).astype(np.uint16), (bits >> np.uint32(16)).astype(np.uint16)
    return (low, up) if kind == "bf16" else (low.view(np.float16), up.view(np.float16))


def pair(low, up):
    return low.view(np.uint16).astype(np.uint32) | (up.view(np.uint16).astype(np.uint32) << np.uint32(16))


def lifted(function, kind):
    """A function of a type, or of the halves of its pairs."""
    if kind[-2:] != "x2":
        return function

    def both(*values):
        parts = [halves(value, kind[:-2]) for value in values]
        return pair(*[function(*[part[n] for part in parts]) for n in range(2)])
    return both


def reading(decoder, kind, operands):
    return [decoder.read(operand, kind) for operand in operands]


def applied(decoder, instruction, kind, function):
    function = lifted(function, kind)
    reads = reading(decoder, kind, instruction.operands[1:])
    write = decoder.write(instruction.operands[0], kind)

    def run(batch):
        values = [read(batch) for read in reads]
        if not values[0].ndim:
            values[0] = np.broadcast_to(values[0], batch.n)
        write(batch, function(*values))
    return run


def saturated(function, kind):
    """Clamp to 0 ... 1; NaN becomes 0."""
    def clamp(*values):
        value = function(*values)
        single = bf16_to_f32(value) if kind == "bf16" else value
        one = value.dtype.type(0x3f80 if kind == "bf16" else 1)
        zero = value.dtype.type(0)
        return np.where(single >= 1, one, np.where(single > 0, value, zero))
    return clamp


@makes("fma")
def arithmetic(decoder, instruction):
    words = decoder.only(instruction, {"rn", "rz", "rm", "rp", "sat", "relu"}, 4 if instruction.kind in ("fma", "mad")
                         else 3)
    kind = words[-1]
    scalar = kind.replace("x2", "")
    modes = [word for word in words if word in ("rn", "rz", "rm", "rp")]
    rest = set(words[:-1]) - set(modes)
    kinds = {"mad": "fma"}
    function = operations(scalar, (modes or ["rn"])[0]).get(kinds.get(instruction.kind, instruction.kind)) \
        if scalar in ("f16", "bf16", "f32", "f64") and kind != "f32x2" else None
    if function is None or len(modes) > 1 or rest - {"sat", "relu"} or (not modes and instruction.kind in ("fma", "div")):
        raise unknown(instruction)
    if "sat" in rest:
        function = saturated(function, scalar)
    if "relu" in rest:
        raise unknown(instruction)
    return applied(decoder, instruction, kind, function)


def extreme(kind, largest, nan):
    """min or max: -0 is less than 0; a number wins over NaN unless .NaN is given."""
    def function(a, b):
        x, y = (bf16_to_f32(a), bf16_to_f32(b)) if kind == "bf16" else (a, b)
        bits = np.uint16 if BYTES[kind] == 2 else np.uint32 if kind == "f32" else np.uint64
        a, b = np.broadcast_arrays(a, b)
        u, v = a.view(bits), b.view(bits)
        first = (x > y if largest else x < y) | (y != y)
        result = np.where(first, u, v)
        result = np.where(x == y, u & v if largest else u | v, result)
        empty = (x != x) | (y != y) if nan else (x != x) & (y != y)
        none = bits({2: 0x7fff, 4: 0x7fffffff, 8: 0x7ff8000000000000}[bits().itemsize])
        return np.where(empty, none, result).view(a.dtype)
    return function


def extremes(decoder, instruction):
    words = instruction.opcode[1:]
    kind = words[-1]
    if set(words[:-1]) - {"NaN"} or kind == "f32x2" or kind == "f64" and len(words) > 1:
        raise unknown(instruction)
    return applied(decoder, instruction, kind,
                   extreme(kind.replace("x2", ""), instruction.kind == "max", "NaN" in words))


def signs_of_floats(decoder, instruction):
    """Operates on bits only, also of NaN."""
    words = instruction.opcode[1:]
    kind = words[-1]
    if words != [kind]:
        raise unknown(instruction)
    bits = "b" + str(8 * BYTES[kind])
    sign = {"b16": 0x8000, "b32": 0x80008000 if kind[-2:] == "x2" else 0x80000000, "b64": 1 << 63}[bits]
    one = decoder.read(instruction.operands[1], bits)
    write = decoder.write(instruction.operands[0], bits)
    sign = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64}[bits](sign)
    if instruction.kind == "neg":
        return lambda batch: write(batch, one(batch) ^ sign)
    return lambda batch: write(batch, one(batch) & ~sign)


@makes("rcp", "sqrt")
def roots(decoder, instruction):
    words = decoder.only(instruction, {"rn"}, 2)
    kind = words[-1]
    if words != ["rn", kind] or kind not in ("f32", "f64"):
        raise unknown(instruction)
    if instruction.kind == "sqrt":
        return applied(decoder, instruction, kind, lambda a: canonical(np.sqrt(a), kind))
    return applied(decoder, instruction, kind, lambda a: canonical(a.dtype.type(1) / a, kind))


@makes("copysign")
def copysign(decoder, instruction):
    kind, = decoder.only(instruction, (), 3)
    if kind not in ("f32", "f64"):
        raise unknown(instruction)
    # The sign is the first operand's.
    return applied(decoder, instruction, kind, lambda a, b: np.copysign(b, a))


@makes("testp")
def test_property(decoder, instruction):
    tests = {"finite": np.isfinite, "infinite": np.isinf, "number": lambda a: a == a, "notanumber": np.isnan,
             "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny),
             "normal": lambda a: np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny)}
    test, kind = instruction.opcode[1:]
    if test not in tests or kind not in ("f32", "f64"):
        raise unknown(instruction)
    read = decoder.read(instruction.operands[1], kind)
    write = decoder.write(instruction.operands[0], "pred")
    return lambda batch: write(batch, tests[test](read(batch)))

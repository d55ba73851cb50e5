# SPDX-License-Identifier: Apache-2.0
"""Definitions of instructions with Python's integers and fractions, one operand at a time, independent of the emulator.
Values are bits; floats become fractions, or one of the words below."""
from fractions import Fraction
from math import isqrt

NAN, PLUS, MINUS = "nan", "+inf", "-inf"
# (bits of the fraction, bits of the exponent)
FORMATS = {"f16": (10, 5), "bf16": (7, 8), "f32": (23, 8), "f64": (52, 11), "e4m3": (3, 4), "e5m2": (2, 5)}


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def decoded(bits, kind):
    """(the sign bit, a fraction or one of the words)"""
    fraction_bits, exponent_bits = FORMATS[kind]
    sign = bits >> (fraction_bits + exponent_bits) & 1
    exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    top = (1 << exponent_bits) - 1
    if kind == "e4m3" and bits & 0x7f == 0x7f or kind != "e4m3" and exponent == top and fraction:
        return sign, NAN
    if exponent == top and kind != "e4m3":
        return sign, MINUS if sign else PLUS
    if exponent == 0:
        value = Fraction(fraction, 1 << fraction_bits) * Fraction(2) ** (1 - bias)
    else:
        value = (1 + Fraction(fraction, 1 << fraction_bits)) * Fraction(2) ** (exponent - bias)
    return sign, -value if sign else value


def quotient(value, mode, sign):
    """A nonnegative fraction rounded to an integer."""
    low = value.numerator // value.denominator
    rest = value - low
    up = {"rn": rest > Fraction(1, 2) or rest == Fraction(1, 2) and low & 1, "rz": False,
          "rm": bool(rest) and sign, "rp": bool(rest) and not sign}[mode]
    return low + bool(up)


def encoded(sign, value, kind, mode="rn", saturate=False):
    """The bits of a value of this sign, rounded."""
    fraction_bits, exponent_bits = FORMATS[kind]
    bias = (1 << (exponent_bits - 1)) - 1
    top = (1 << exponent_bits) - 1
    canonical = {"f16": 0x7fff, "bf16": 0x7fff, "f32": 0x7fffffff, "f64": NAN, "e4m3": 0x7f, "e5m2": 0x7f}[kind]
    if value == NAN:
        return canonical
    place = sign << (fraction_bits + exponent_bits)
    infinite = place | top << fraction_bits
    largest = {"e4m3": 0x7e, "e5m2": 0x7b}.get(kind, (top << fraction_bits) - 1)
    if value in (PLUS, MINUS):
        return place | largest if saturate else infinite
    size = abs(value)
    exponent = 1 - bias
    if size:
        # The largest power of two not above it.
        exponent = max(exponent, size.numerator.bit_length() - size.denominator.bit_length() - 1)
        while size >= Fraction(2) ** (exponent + 1):
            exponent += 1
    scaled = quotient(size / Fraction(2) ** (exponent - fraction_bits), mode, sign)
    code = scaled if exponent == 1 - bias else scaled + ((exponent + bias - 1) << fraction_bits)
    if code > largest:
        away = mode == "rn" or mode == "rp" and not sign or mode == "rm" and sign
        return infinite if away and not saturate else place | largest
    return place | code


def add(a, b, kind, mode="rn"):
    (s, x), (t, y) = a, b
    words = (NAN, PLUS, MINUS)
    if NAN in (x, y) or {x, y} == {PLUS, MINUS}:
        return encoded(0, NAN, kind)
    for sign, value in (a, b):
        if value in words:
            return encoded(sign, value, kind)
    total = x + y
    sign = int(total < 0) if total else (s if s == t else int(mode == "rm"))
    return encoded(sign, total, kind, mode)


def product(a, b):
    (s, x), (t, y) = a, b
    sign = s ^ t
    if NAN in (x, y):
        return sign, NAN
    if x in (PLUS, MINUS) or y in (PLUS, MINUS):
        return sign, NAN if 0 in (x, y) else (MINUS if sign else PLUS)
    return sign, x * y


def fma(a, b, c, kind, mode="rn"):
    return add(product(a, b), c, kind, mode)


def multiply(a, b, kind, mode="rn"):
    return encoded(*product(a, b), kind, mode)


def divide(a, b, kind):
    (s, x), (t, y) = a, b
    sign = s ^ t
    infinite = (PLUS, MINUS)
    if NAN in (x, y) or x in infinite and y in infinite or x == 0 and y == 0:
        return encoded(0, NAN, kind)
    if x in infinite or y == 0:
        return encoded(sign, MINUS if sign else PLUS, kind)
    return encoded(sign, Fraction(0) if y in infinite else x / y, kind)


def root(a, kind):
    sign, x = a
    if x == NAN or x == MINUS or x != PLUS and x < 0:
        return encoded(0, NAN, kind)
    if x == PLUS or x == 0:
        return encoded(sign, x, kind)
    # An integer root with enough bits that only the remainder matters for rounding, recorded in one more bit.
    shift = 1200
    scaled = x * (1 << 2 * shift)
    whole = isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(whole * whole) == scaled
    return encoded(0, Fraction(2 * whole + (not exact), 2 << shift), kind)


def least(a, b, largest, nan, kind, bits):
    """min or max of two floats given as bits and decoded."""
    (s, x), (t, y) = a, b
    if nan and NAN in (x, y) or x == y == NAN:
        return encoded(0, NAN, kind)
    if NAN in (x, y):
        return bits[1] if x == NAN else bits[0]

    def place(sign, value):
        infinity = Fraction(1 << 1100)
        return (infinity if value == PLUS else -infinity if value == MINUS else value, not sign)
    first = place(s, x) > place(t, y)
    return bits[0] if first == largest else bits[1]


def to_integer(a, bits, is_signed, rounding):
    sign, x = a
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    if x == NAN:
        return 0
    if x in (PLUS, MINUS):
        return high if x == PLUS else low
    size = quotient(abs(x), {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}[rounding], sign)
    return max(low, min(high, -size if sign else size))

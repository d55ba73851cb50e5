# SPDX-License-Identifier: Apache-2.0
"""Conversions between types."""
import numpy as np

from .decode import makes, unknown
from .floats import bf16_to_f32, canonical, halves, narrow, pair, to_odd
from .types import BYTES, NUMPY

ROUNDINGS = ("rn", "rz", "rm", "rp")
TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
FLOATS = ("f16", "bf16", "f32", "f64")


def small_floats(exponent_bits, mantissa_bits):
    """All values of an 8-bit type as f16; all ones without the sign is NaN, as is everything above infinity in e5m2."""
    bits = np.arange(256)
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1)
    fraction = (bits & ((1 << mantissa_bits) - 1)) / float(1 << mantissa_bits)
    value = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    top = (1 << exponent_bits) - 1
    if exponent_bits == 5:
        value = np.where(exponent == top, np.where(fraction == 0, np.inf, np.nan), value)
    else:
        value = np.where((bits & 0x7f) == 0x7f, np.nan, value)
    value = np.where(bits & 0x80, -value, value)
    return canonical(value.astype(np.float16), "f16")


TABLES = {"e4m3": small_floats(4, 3), "e5m2": small_floats(5, 2)}
LARGEST = {"e4m3": 0x7e, "e5m2": 0x7b}


def to_small(value, kind):
    """Round to nearest, ties to the even code; values beyond the largest become the largest, and NaN stays NaN."""
    table = TABLES[kind][:LARGEST[kind] + 1].astype(np.float64)
    size = np.abs(value)
    size = np.where(np.isnan(size), 0.0, size)
    above = np.clip(np.searchsorted(table, size), 1, len(table) - 1)
    below = above - 1
    up = table[above] - size
    down = size - table[below]
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    code = np.where(size > table[-1], LARGEST[kind], code)
    code = np.where(np.isnan(value), 0x7f, code | np.where(np.signbit(value), 0x80, 0))
    return code.astype(np.uint16)


def nearest_double(value):
    """64-bit integers as doubles, and whether each is larger (1) or smaller (-1) than its double."""
    rounded = value.astype(np.float64)
    over = rounded >= (2.0 ** 64 if value.dtype.kind == "u" else 2.0 ** 63)
    back = np.where(over, 0.0, rounded).astype(value.dtype)
    return rounded, np.where(over | (value < back), -1, np.where(value > back, 1, 0))


def integer_to_double(value, mode):
    rounded, more = nearest_double(value)
    toward = {"rn": more == 2, "rz": np.where(rounded < 0, more > 0, more < 0), "rm": more < 0, "rp": more > 0}[mode]
    return np.where(toward, np.nextafter(rounded, {"rz": 0.0, "rm": -np.inf, "rp": np.inf}.get(mode, 0.0)), rounded)


def wide(value, kind):
    """A value as a double, rounded to odd if it does not fit."""
    if kind == "bf16":
        return bf16_to_f32(value).astype(np.float64)
    if value.dtype.kind in "iu" and value.dtype.itemsize == 8:
        rounded, more = nearest_double(value)
        return to_odd(rounded, more.astype(np.float64))
    return value.astype(np.float64)


def float_to_integer(value, kind, rounding):
    """Clamp to the range of the type; NaN becomes 0."""
    whole = TO_INTEGER[rounding](value)
    info = np.iinfo(NUMPY[kind])
    whole = np.where(np.isnan(whole), 0.0, whole)
    low, high = whole < float(info.min), whole >= float(info.max) + (1.0 if info.bits < 64 else 0.0)
    result = np.where(low | high, 0.0, whole).astype(NUMPY[kind])
    return np.where(high, NUMPY[kind](info.max), np.where(low, NUMPY[kind](info.min), result))


def integer_to_integer(value, kind, saturate):
    """Extend, truncate or clamp."""
    if not saturate:
        return value.astype(NUMPY[kind])
    info = np.iinfo(NUMPY[kind])
    have = np.iinfo(value.dtype)
    low = value < max(info.min, have.min) if value.dtype.kind == "i" else np.zeros(value.shape, bool)
    high = value > value.dtype.type(min(info.max, have.max))
    return np.where(high, NUMPY[kind](info.max), np.where(low, NUMPY[kind](info.min), value.astype(NUMPY[kind])))


def scalar(instruction, to, source, words):
    """The conversion function from one type to another."""
    saturate = "sat" in words
    modes = [word for word in words if word not in ("sat",)]
    if len(modes) > 1 or words.count("sat") > 1:
        raise unknown(instruction)
    mode = modes[0] if modes else None
    if to in FLOATS:
        def clamp(value):
            if not saturate:
                return value
            return np.where(value > 0, np.minimum(value, 1.0), 0.0)
        if source in FLOATS and mode in TO_INTEGER:
            if to != source:
                raise unknown(instruction)
            return lambda value: narrow(clamp(TO_INTEGER[mode](wide(value, source))), to)
        widens = source in FLOATS and (BYTES[to] > BYTES[source] or to == source)
        if (mode is None) != widens or mode not in (None, *ROUNDINGS):
            raise unknown(instruction)
        if to == "f64" and source in ("u64", "s64"):
            return lambda value: integer_to_double(value, mode)
        return lambda value: narrow(clamp(wide(value, source)), to, mode or "rn")
    if source in FLOATS:
        if mode not in TO_INTEGER:
            raise unknown(instruction)
        return lambda value: float_to_integer(wide(value, source), to, mode)
    if mode is not None:
        raise unknown(instruction)
    return lambda value: integer_to_integer(value, to, saturate)


@makes("cvt")
def convert(decoder, instruction):
    words = instruction.opcode[1:]
    to, source = words[-2:]
    rest = words[:-2]
    operands = instruction.operands
    if source[:4] in TABLES and source[4:] == "x2" and to == "f16x2":
        if rest != ["rn"]:
            raise unknown(instruction)
        read, write = decoder.read(operands[1], "b16"), decoder.write(operands[0], "b32")
        table = TABLES[source[:4]]
        return lambda batch: write(batch, pair(table[read(batch) & np.uint16(255)], table[read(batch) >> np.uint16(8)]))
    if to[:4] in TABLES and to[4:] == "x2":
        if rest != ["rn", "satfinite"]:
            raise unknown(instruction)
        kind = to[:4]
        write = decoder.write(operands[0], "b16")
        if source == "f16x2" and len(operands) == 2:
            both = decoder.read(operands[1], "b32")
            return lambda batch: write(batch, joined([to_small(half.astype(np.float64), kind)
                                                      for half in halves(np.broadcast_to(both(batch), batch.n), "f16")]))
        if source != "f32" or len(operands) != 3:
            raise unknown(instruction)
        up, low = (decoder.read(operand, "f32") for operand in operands[1:])
        return lambda batch: write(batch, joined([
            to_small(np.broadcast_to(read(batch), batch.n).astype(np.float64), kind) for read in (low, up)]))
    if to in ("f16x2", "bf16x2") and source == "f32" and len(operands) == 3:
        kind = to[:-2]
        if rest not in (["rn"], ["rz"]):
            raise unknown(instruction)
        up, low = (decoder.read(operand, "f32") for operand in operands[1:])
        write = decoder.write(operands[0], "b32")
        return lambda batch: write(batch, pair(*[
            narrow(np.broadcast_to(read(batch), batch.n).astype(np.float64), kind, rest[0]) for read in (low, up)]))
    if len(operands) != 2 or to not in NUMPY or source not in NUMPY or "x2" in to + source:
        raise unknown(instruction)
    function = scalar(instruction, to, source, rest)
    read, write = decoder.read(operands[1], source), decoder.write(operands[0], to)
    return lambda batch: write(batch, function(np.broadcast_to(read(batch), batch.n)))


def joined(codes):
    return codes[0] | (codes[1] << np.uint16(8))

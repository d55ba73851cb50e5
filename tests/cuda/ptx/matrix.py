# SPDX-License-Identifier: Apache-2.0
"""Tensor cores: mma.sync and ldmatrix. Products of floats are exact. Hardware truncates addends when it aligns them: by
published measurements, the oldest supported tensor cores one bit below the 24 of a float, eight products at a time,
later ones two bits below and all sixteen. The emulator is as inexact as any device: all sixteen products and the addend
are aligned to the largest of them and truncated toward zero one bit below; their exact sum is truncated to a float.
With `exact_mma` the exact sum is rounded to nearest instead."""
import numpy as np

from .decode import meets, unknown
from .fault import Fault
from .floats import bf16_to_f32, canonical
from .warp import whole_warps

KEPT_BITS = 25
LANE = np.arange(32)
ROW, COLUMN = LANE // 4, LANE % 4


def places(parts, per, width):
    """For each register and element of a fragment of A its place: (rows, columns), arrays (32, parts, per)."""
    rows = np.zeros((32, parts, per), int)
    columns = np.zeros((32, parts, per), int)
    for part in range(parts):
        for element in range(per):
            rows[:, part, element] = ROW + 8 * (part & 1)
            columns[:, part, element] = (width // 2) * (part >> 1) + per * COLUMN + element
    return rows, columns


def places_b(parts, per, width):
    rows = np.zeros((32, parts, per), int)
    columns = np.zeros((32, parts, per), int)
    for part in range(parts):
        for element in range(per):
            rows[:, part, element] = (width // parts) * part + per * COLUMN + element
            columns[:, part, element] = ROW
    return rows, columns


C_ROWS = np.stack([ROW, ROW, ROW + 8, ROW + 8], 1)
C_COLUMNS = np.stack([2 * COLUMN, 2 * COLUMN + 1, 2 * COLUMN, 2 * COLUMN + 1], 1)


def toward_zero(value):
    """Doubles truncated to floats."""
    result = value.astype(np.float32)
    over = np.abs(result.astype(np.float64)) > np.abs(value)
    result = np.where(over, np.nextafter(result, np.float32(0)), result)
    return np.where(np.abs(value) >= 2.0 ** 128, np.copysign(np.inf, value).astype(np.float32), result)


def cut_sum(a, b, c):
    """a (w, 16, k) times b (w, k, 8) plus c (w, 16, 8), as described at the top of this file."""
    addends = np.empty((len(a), 16, 8, a.shape[2] + 1))
    np.multiply(a[:, :, None, :], b.transpose(0, 2, 1)[:, None, :, :], out=addends[..., :-1])
    addends[..., -1] = c
    largest = np.frexp(np.abs(addends).max(-1))[1]
    scale = np.ldexp(1.0, np.clip(KEPT_BITS - largest, -1000, 1000))
    total = np.trunc(addends * scale[..., None]).sum(-1) / scale
    return toward_zero(total)


def exact_sum(a, b, c):
    """With a single rounding to nearest: products of halves and their sums have at most 80 bits, so use integers."""
    from fractions import Fraction
    result = np.zeros(c.shape, np.float32)
    for w, row, column in np.ndindex(c.shape):
        total = Fraction(float(c[w, row, column]))
        for n in range(a.shape[2]):
            total += Fraction(float(a[w, row, n])) * Fraction(float(b[w, n, column]))
        high = float(total)
        lost = total - Fraction(high)
        bits = np.array(high).view(np.int64)
        if lost and not bits & 1:
            bits = bits + 1 if (lost > 0) == (high > 0) else bits - 1
        result[w, row, column] = np.asarray(bits).view(np.float64)
    return result


def float_product(batch, a, b, c):
    finite = np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(c).all()
    if not finite:
        # Infinities and NaN are summed as usual; elsewhere the other result holds.
        plain = ((a[:, :, None, :] * b.transpose(0, 2, 1)[:, None, :, :]).sum(-1) + c).astype(np.float32)
        clean = [np.where(np.isfinite(part), part, 0.0) for part in (a, b, c)]
        bad = (~np.isfinite(a)).any(2)[:, :, None] | (~np.isfinite(b)).any(1)[:, None, :] | ~np.isfinite(c)
        return np.where(bad, canonical(plain, "f32"), float_product(batch, *clean))
    return exact_sum(a, b, c) if batch.launch.exact_mma else cut_sum(a, b, c)


@meets("mma")
def mma(decoder, instruction):
    words = instruction.opcode[1:]
    if words[:2] != ["sync", "aligned"] or words[3:5] != ["row", "col"] or len(instruction.operands) != 4:
        raise unknown(instruction)
    shape, rest = words[2], words[5:]
    saturate = rest[:1] == ["satfinite"]
    rest = rest[saturate:]
    kinds = tuple(rest)
    if shape in ("m16n8k16", "m16n8k8") and kinds in (("f32", "f16", "f16", "f32"), ("f32", "bf16", "bf16", "f32")) and \
            not saturate:
        per, result = 2, "f32"
    elif shape in ("m16n8k32", "m16n8k16") and kinds[0] == kinds[3] == "s32" and {kinds[1], kinds[2]} <= {"u8", "s8"}:
        per, result = 4, "s32"
    else:
        raise unknown(instruction)
    width = int(shape.split("k")[1])
    parts_a, parts_b = width * 16 // 32 // per, width * 8 // 32 // per
    at_a, at_b = places(parts_a, per, width), places_b(parts_b, per, width)
    if parts_a == 2:   # half the depth: only the second rows are a second register
        at_a = places(2, per, 2 * width)
    to, a, b, c = (decoder.vector(operand) for operand in instruction.operands)
    if [len(to), len(a), len(b), len(c)] != [4, parts_a, parts_b, 4]:
        raise unknown(instruction)
    writes = [decoder.write(part, result) for part in to]
    reads = [[decoder.read(part, "b32") for part in parts] for parts in (a, b)]
    reads_c = [decoder.read(part, result) for part in c]

    def elements(batch, which, kind, warps):
        value = np.stack([np.broadcast_to(read(batch), batch.n) for read in reads[which]], 1)
        value = np.ascontiguousarray(value.reshape(-1, 32, len(reads[which]))[warps])
        if kind == "bf16":
            return bf16_to_f32(value.view(np.uint16)).astype(np.float64)
        return value.view({"f16": np.float16, "u8": np.uint8, "s8": np.int8}[kind]).astype(
            np.float64 if kind == "f16" else np.float32)

    def run(batch):
        warps = np.flatnonzero(batch.mask.reshape(-1, 32)[:, 0])
        parts = []
        for which, kind, at, shape_of in ((0, kinds[1], at_a, (16, width)), (1, kinds[2], at_b, (width, 8))):
            value = elements(batch, which, kind, warps)
            full = np.zeros((len(warps), *shape_of), value.dtype)
            full[:, at[0].reshape(-1), at[1].reshape(-1)] = value.reshape(len(warps), -1)
            parts.append(full)
        third = np.stack([np.broadcast_to(read(batch), batch.n) for read in reads_c], 1).reshape(-1, 32, 4)[warps]
        if result == "s32":
            # Sums of 32 products of bytes are below 2^24, so floats hold them.
            total = (parts[0] @ parts[1]).astype(np.int64)[:, C_ROWS, C_COLUMNS] + third
            if saturate:
                total = np.clip(total, -1 << 31, (1 << 31) - 1)
            total = total.astype(np.int32)
        else:
            addend = np.zeros((len(warps), 16, 8))
            addend[:, C_ROWS, C_COLUMNS] = third
            total = float_product(batch, *parts, addend)[:, C_ROWS, C_COLUMNS]
        for n, write in enumerate(writes):
            full = np.zeros((batch.n // 32, 32), total.dtype)
            full[warps] = total[:, :, n]
            write(batch, full.reshape(-1))
    return whole_warps, run


@meets("ldmatrix")
def load_matrix(decoder, instruction):
    words = instruction.opcode[1:]
    transposed = "trans" in words
    plain = [word for word in words if word != "trans"]
    if plain[:3] != ["sync", "aligned", "m8n8"] or plain[3:] not in (
            ["x1", "shared", "b16"], ["x2", "shared", "b16"], ["x4", "shared", "b16"],
            ["x1", "shared::cta", "b16"], ["x2", "shared::cta", "b16"], ["x4", "shared::cta", "b16"]):
        raise unknown(instruction)
    count = int(plain[3][1])
    writes = [decoder.write(part, "b32") for part in decoder.vector(instruction.operands[0])]
    if len(writes) != count:
        raise unknown(instruction)
    address = decoder.address(instruction.operands[1])
    decoder.accesses.append(("shared", 4))

    def run(batch):
        at = address(batch)
        saved = batch.mask, batch.count
        asked = batch.mask & (np.arange(batch.n) % 32 < 8 * count)
        # Addresses of rows come from the lanes that name them, whichever lanes receive the content.
        at = at if saved[1] == batch.n else batch.spread(at)
        batch.set_mask(asked, int(np.count_nonzero(asked)))
        try:
            rows = [batch.spread(value) for value in batch.load("shared", batch.acting(at), 4, 4)]
        finally:
            batch.set_mask(*saved)
        halves = np.ascontiguousarray(np.stack(rows, 1)).view(np.uint16).reshape(-1, 4, 8, 8)  # warp, matrix, row, column
        for n, write in enumerate(writes):
            one = halves[:, n].transpose(0, 2, 1) if transposed else halves[:, n]
            write(batch, np.ascontiguousarray(one).view(np.uint32).reshape(-1))
    return whole_warps, run


__all__ = ["mma", "load_matrix", "Fault"]

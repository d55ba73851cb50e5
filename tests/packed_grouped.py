# SPDX-License-Identifier: Apache-2.0
"""AWQ's and GPTQ's packing of matrices, for make-packed-checkpoint.py: each function returns a matrix's tensors by
suffix, as (dtype, array), and the unpacked matrix, in f32 before rounding."""
import numpy as np


def quantize(w, bits, of):
    """Codes [out, in], zeros and scales [groups, out] of the groups `of` [in]; every group has a scale and a zero."""
    most, groups = 2**bits - 1, int(of.max()) + 1
    zeros, scales = np.empty((groups, len(w)), np.uint32), np.empty((groups, len(w)), np.float16)
    for g in range(groups):
        part = w[:, of == g]
        low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
        scales[g] = np.maximum((high - low) / most, 1e-5)
        zeros[g] = np.clip(np.round(-low / scales[g].astype(np.float32)), 0, most)
    scale, zero = scales.astype(np.float32)[of].T, zeros[of].T
    return np.clip(np.round(w / scale) + zero, 0, most).astype(np.uint32), zeros, scales


def unpacked(codes, zeros, scales, of):
    return (codes.astype(np.float32) - zeros[of].T.astype(np.float32)) * scales.astype(np.float32)[of].T


def stream(codes, bits):
    """Pack along the last axis: the bits of all codes in sequence, from the lowest, as 32-bit words."""
    lines = codes.astype(np.uint32).reshape(-1, codes.shape[-1])
    every = (lines[..., None] >> np.arange(bits, dtype=np.uint32) & 1).astype(np.uint8)
    packed = np.packbits(every.reshape(len(lines), -1), axis=-1, bitorder="little")
    return packed.view("<i4").reshape(*codes.shape[:-1], -1)


def gptq(w, bits, group, less_one=True, order=None, index=True):
    """`order`: the order in which inputs were quantized, which is that of the groups."""
    of = np.empty(w.shape[1], np.int32)
    of[np.arange(w.shape[1]) if order is None else order] = np.arange(w.shape[1]) // group
    codes, zeros, scales = quantize(w, bits, of)
    stored = zeros - 1 & 2**bits - 1 if less_one else zeros
    tensors = {"qweight": ("I32", stream(codes, bits).T), "qzeros": ("I32", stream(stored, bits)),
               "scales": ("F16", scales)}
    if index:
        tensors["g_idx"] = ("I32", of)
    return tensors, unpacked(codes, zeros, scales, of)


def awq_gemm(w, group):
    of = np.arange(w.shape[1]) // group
    codes, zeros, scales = quantize(w, 4, of)

    def words(lines):
        return stream(lines.reshape(len(lines), -1, 8)[..., [0, 2, 4, 6, 1, 3, 5, 7]].reshape(len(lines), -1), 4)

    return {"qweight": ("I32", words(codes.T)), "qzeros": ("I32", words(zeros)),
            "scales": ("F16", scales)}, unpacked(codes, zeros, scales, of)


def padded(lines, group):
    """[groups, out], padded with zero rows to the number of groups that kernels require."""
    words, multiple = -(-len(lines) // 8), {32: 4, 64: 2}.get(group, 1)
    more = -(-words // multiple) * multiple * 8 - len(lines)
    return np.concatenate([lines, np.zeros((more, lines.shape[1]), lines.dtype)])


def awq_gemv(w, group):
    of = np.arange(w.shape[1]) // group
    codes, zeros, scales = quantize(w, 4, of)
    return {"qweight": ("I32", stream(codes, 4)), "qzeros": ("I32", stream(padded(zeros, group).T, 4)),
            "scales": ("F16", padded(scales, group).T)}, unpacked(codes, zeros, scales, of)


def awq_gemv_fast(w, group):
    of = np.arange(w.shape[1]) // group
    codes, zeros, scales = quantize(w, 4, of)
    n, k = w.shape
    scaled = -(scales.astype(np.float32) * zeros.astype(np.float32)).astype(np.float16)
    mixed = codes.reshape(n, k // 32, 4, 4, 2).transpose(0, 1, 3, 2, 4).reshape(n, k // 32, 4, 4, 2)
    mixed = mixed.transpose(0, 1, 2, 4, 3).reshape(n // 4, 4, k // 64, 64).transpose(0, 2, 1, 3)
    return {"qweight": ("I16", stream(mixed, 4).view("<i2").reshape(n // 4, k)),
            "qzeros": ("F16", padded(scaled, group)), "scales": ("F16", padded(scales, group))}, (
                codes.astype(np.float32) * scales.astype(np.float32)[of].T + scaled.astype(np.float32)[of].T)

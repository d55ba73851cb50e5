# SPDX-License-Identifier: Apache-2.0
"""Low-precision numbers, and weights packed in them, by the formulas of their formats, in numpy."""
import numpy as np


def bf16(w):
    """Rounded to nearest, ties to even; as uint16."""
    bits = np.ascontiguousarray(w, "<f4").view("<u4").astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(w), 0x7FC0, rounded).astype("<u2")


def e4m3_table():
    table = np.empty(256, np.float32)
    for code in range(256):
        e, m = code >> 3 & 15, code & 7
        value = m * 2.0**-9 if e == 0 else (8 + m) * 2.0 ** (e - 10)
        table[code] = np.nan if code & 127 == 127 else -value if code & 128 else value
    return table


E4M3 = e4m3_table()
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def nearest(w, table, count):
    """Index of the nearest of the first `count` entries, which ascend; signs separate."""
    edges = (table[1:count] + table[:count - 1]) / 2
    return np.searchsorted(edges, np.abs(w)).astype(np.uint8)


def in_blocks(scale, shape, rows, cols):
    """Expand scales to all elements."""
    return np.repeat(np.repeat(scale, rows, -2), cols, -1)[..., :shape[-2], :shape[-1]]


def fp8(w, rows, cols, scale_dtype="F32"):
    """Codes, scales [.., ceil(rows), ceil(cols)] and the unpacked weights."""
    *stack, n, k = w.shape
    up, across = -(-n // rows), -(-k // cols)
    padded = np.zeros((*stack, up * rows, across * cols), np.float32)
    padded[..., :n, :k] = np.abs(w)
    scale = padded.reshape(*stack, up, rows, across, cols).max((-3, -1)) / np.float32(448)
    scale = np.maximum(scale, np.float32(1e-12))
    if scale_dtype == "BF16":
        stored = bf16(scale)
        scale = (stored.astype("<u4") << 16).view("<f4")
    elif scale_dtype == "F8_E8M0":
        stored = np.ceil(np.log2(scale)).astype(np.int32) + 127
        scale = np.exp2(stored - 127.0).astype(np.float32)
        stored = stored.astype(np.uint8)
    else:
        stored = scale.astype("<f4")
    every = in_blocks(scale, w.shape, rows, cols)
    codes = nearest(w / every, E4M3, 127) | np.where(np.signbit(w), 128, 0).astype(np.uint8)
    return codes, stored, E4M3[codes] * every


def mxfp4(w):
    """For [.., rows, cols]: blocks, scales and the unpacked weights."""
    groups = w.reshape(*w.shape[:-1], -1, 32)
    exponent = np.floor(np.log2(np.maximum(np.abs(groups).max(-1), 1e-30))).astype(np.int32) - 2
    scale = np.exp2(exponent.astype(np.float32))[..., None]
    codes = nearest(groups / scale, E2M1, 8) | np.where(np.signbit(groups), 8, 0).astype(np.uint8)
    blocks = codes[..., 0::2] | codes[..., 1::2] << 4
    return blocks, (exponent + 127).astype(np.uint8), (E2M1[codes] * scale).reshape(w.shape)

# SPDX-License-Identifier: Apache-2.0
"""Mode v2 from its definitions, in numpy: balance, scale, outliers, Lloyd, assignment, cosine.

Written from the definitions in the headers of kernels/ and in design.md, not from the C code, so that both can
disagree. Operations are exact or rounded as defined; a unit is [matrices, rows, cols].
"""
import numpy as np
from math import erfc, sqrt

SIGMA = 4.0
CAP = 0.02
ROUNDS = 20


def balance_bytes(w, exponent=0.5):
    """d[c] = min(255, E - e[c]), e[c] = floor(2 A log2(mean square of column c) + 1/2)."""
    if exponent == 0:
        return np.zeros(w.shape[-1], np.int64)
    mean_square = (w.astype(np.float64) ** 2).mean((0, 1))
    if not mean_square.any():
        return np.zeros(w.shape[-1], np.int64)
    with np.errstate(divide="ignore"):
        e = np.floor(2 * exponent * np.log2(mean_square) + 0.5)
    return np.minimum(255, e.max() - e).astype(np.int64)


def quarter_octaves(d):
    """2^(d/4) as f32: a rounded quarter power times an exact octave."""
    return np.ldexp(np.exp2((d % 4) / 4).astype(np.float32), d // 4)


def scale_exponents(w, up):
    """s of every matrix: the largest |w 2^(d/4)| times 2^s lies in [2^13, 2^14)."""
    largest = np.abs(w.astype(np.float64) * up).max((1, 2))
    return np.where(largest > 0, 14 - np.frexp(largest)[1], 0)


def outliers(x, sigma=SIGMA, cap=CAP):
    """Boolean mask of one matrix's outliers, at most floor(cap n) of them."""
    q = np.rint(x * np.float32(1024)).astype(np.int64)
    n, total = q.size, int(q.sum())
    square = int((q * q).sum())
    mean = total / n
    spread = sqrt((n * square - total * total) / (n * (n - 1))) if n > 1 else 0
    if sigma == 0 or spread == 0:
        return np.zeros(x.shape, bool)
    distance = np.abs(q - mean).ravel()
    marked = np.flatnonzero(distance > sigma * spread)
    most = int(cap * n + 1e-6)
    if len(marked) > most:
        marked = marked[np.argsort(-distance[marked], kind="stable")][:most]
    mask = np.zeros(x.size, bool)
    mask[marked] = True
    return mask.reshape(x.shape)


def normal_quantile(p):
    low, high = -9.0, 9.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if erfc(-middle / sqrt(2)) / 2 < p else (low, middle)
    return low


def start_fractions(k, start):
    """p_j in units of 2^-32."""
    p = [(j + 0.5) / 2 ** k for j in range(2 ** k)]
    if start == "companded":
        p = [erfc(-sqrt(3) * normal_quantile(x) / sqrt(2)) / 2 for x in p]
    return np.array([round(x * 2 ** 32) for x in p])


def counted(x, largest):
    """Weights in the precision of the fit: eight significant bits, ties away from zero; 15 octaves, below them zero."""
    bits = x.view(np.uint32)
    rounded = (((bits & 0x7fffffff) + 0x8000) & 0xffff0000) | (bits & 0x80000000)
    rounded = rounded.astype(np.uint32).view(np.float32).astype(np.float64)
    lowest = np.ldexp(1.0, np.frexp(largest)[1] - 1 - 14)
    return np.where(np.abs(rounded) < lowest, 0, rounded)


def lloyd(x, marked, k, start="companded", rounds=ROUNDS):
    """fp16 codebooks [rows, 2^k] of the unmarked weights of every row of one matrix."""
    codebooks = np.zeros((len(x), 2 ** k), np.float16)
    for row, (all_, skip) in enumerate(zip(x, marked)):
        q = all_[~skip].astype(np.float32)
        if not q.size or np.abs(q).max() <= 2.0 ** -25:
            continue
        q = np.sort(counted(q, np.abs(q).max()))
        # Sums of at most 2^22 numbers of 23 bits in steps of the smallest: exact in doubles.
        prefix = np.concatenate(([0.0], np.cumsum(q)))
        if start == "minmax":
            c = q[0] + (q[-1] - q[0]) * (np.arange(2 ** k) / (2 ** k - 1))
        else:
            c = q[start_fractions(k, start) * q.size >> 32]
        edges = None
        for _ in range(rounds):
            middle = np.searchsorted(q, (c[:-1] + c[1:]) * 0.5, side="right")
            before, edges = edges, np.concatenate(([0], middle, [q.size]))
            if before is not None and (before == edges).all():
                break
            n = np.diff(edges)
            c = np.where(n > 0, np.diff(prefix[edges]) / np.maximum(n, 1), c)
        codebooks[row] = c.astype(np.float16) + np.float16(0)
    return codebooks


def nearest(x, codebook):
    """Index of the nearest entry; an exact midpoint goes to the lower one."""
    entry = codebook.astype(np.float64)
    index = np.zeros(x.shape, np.uint8)
    for j in range(entry.shape[1] - 1):
        index += x > ((entry[:, j] + entry[:, j + 1]) / 2)[:, None]
    return index


def row_cosines(w, r):
    w, r = w.astype(np.float64), r.astype(np.float64)
    size = np.sqrt((w * w).sum(-1)) * np.sqrt((r * r).sum(-1))
    same = ((w * w).sum(-1) == 0) & ((r * r).sum(-1) == 0)
    return np.where(size > 0, (w * r).sum(-1) / np.where(size > 0, size, 1), same)


def summary(cosines):
    """Lower median and nearest-rank 5th percentile."""
    cosines = np.sort(cosines, None)
    return cosines[(cosines.size - 1) // 2], cosines[-(-cosines.size * 5 // 100) - 1]


def outlier_bytes(rows, cols, count):
    columns = count * (4 if cols > 65536 else 2)
    of_rows = (count if count <= rows else rows + 1) * 4
    return -(-(of_rows + -(-columns // 4) * 4 + count * 2) // 16) * 16 if count else 0


class Unit:
    """One unit scaled and marked; `fit(k)` stores it with k bits."""

    def __init__(self, w, balance=0.5, sigma=SIGMA, cap=CAP, start="companded", rounds=ROUNDS):
        self.w, self.start, self.rounds = w, start, rounds
        self.d = balance_bytes(w, balance)
        up = quarter_octaves(self.d)
        self.s = scale_exponents(w, up)
        self.x = np.ldexp(w.astype(np.float64) * up, self.s[:, None, None]).astype(np.float32)
        self.marked = np.array([outliers(x, sigma, cap) for x in self.x])

    def fit(self, k):
        """(codebooks, reconstruction, bytes)."""
        rows, cols = self.w.shape[1:]
        size = self.w.shape[0] * rows * (-(-(-(-cols // 32) * 4 * k) // 16) * 16 + 2 * 2 ** k)
        size += cols if self.d.any() else 0
        codebooks, restored = [], []
        for x, marked, s in zip(self.x, self.marked, self.s):
            codebook = lloyd(x, marked, k, self.start, self.rounds)
            value = np.take_along_axis(codebook.astype(np.float32), nearest(x, codebook).astype(np.int64), 1)
            residual = (x.astype(np.float64) - value).astype(np.float16).astype(np.float32)
            value = np.where(marked, value + residual, value)
            restored.append(np.ldexp(value * quarter_octaves_down(self.d), -s))
            codebooks.append(codebook)
            size += outlier_bytes(rows, cols, int(marked.sum()))
        return np.array(codebooks), np.array(restored), size


def quarter_octaves_down(d):
    return np.ldexp(np.exp2(-(d % 4) / 4).astype(np.float32), -(d // 4))

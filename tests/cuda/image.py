# SPDX-License-Identifier: Apache-2.0
"""Random matrices in the layout of kernels/cuda/abi.h, and the same in numpy, for kernels that the emulator runs.

They are made from the description of the format only, and share no code with the host.
"""
import struct

import numpy as np

# (word, shift, bits) of a slot, by k: kernels/common/lane_index.h
PIECES = {
    2: [[(0, 0, 2)], [(0, 2, 2)], [(0, 4, 2)], [(0, 6, 2)]],
    3: [[(0, 0, 3)], [(0, 3, 3)], [(1, 0, 3)], [(1, 3, 3)], [(2, 0, 3)], [(2, 3, 3)],
        [(0, 6, 2), (2, 6, 1)], [(1, 6, 2), (2, 7, 1)]],
    4: [[(0, 0, 4)], [(0, 4, 4)]],
    5: [[(0, 0, 5)], [(1, 0, 5)], [(2, 0, 5)], [(3, 0, 5)], [(4, 0, 5)],
        [(0, 5, 3), (3, 5, 2)], [(1, 5, 3), (4, 5, 2)], [(2, 5, 3), (3, 7, 1), (4, 7, 1)]],
    6: [[(0, 0, 6)], [(1, 0, 6)], [(2, 0, 6)], [(0, 6, 2), (1, 6, 2), (2, 6, 2)]],
}
TILE_ROWS, COLUMNS, FP8_COLUMNS, KEPT_COLUMNS = 16, 512, 64, 256
EACH_VECTORS, M1_PLANES, M4_PLANES, WIDE_PLANES, WIDE_ROWS = 16, 8, 32, 128, 128
PARTS_OFFSET, PART_BYTES = 256 * 4 + 6144 * 512, 2048
TYPES = {"f32": 1, "f16": 2, "bf16": 3}


def lane_words(k):
    return 5 if k == 5 else 1 if k % 3 else 3


def chunk_columns(k):
    return 16 * lane_words(k) * 32 // k


def padded(count, multiple):
    return -(-count // multiple) * multiple


def pack(k, index):
    """Pack [rows, columns] of whole chunks to bytes."""
    rows, columns = index.shape
    slots = index.astype(np.uint8).reshape(rows, columns // chunk_columns(k), len(PIECES[k]), 4, 16)
    words = np.zeros((rows, slots.shape[1], lane_words(k), 16, 4), np.uint8)
    for i, pieces in enumerate(PIECES[k]):
        done = 0
        for word, shift, bits in pieces:
            part = slots[:, :, i] >> done & (1 << bits) - 1
            words[:, :, word] |= (part << shift).swapaxes(2, 3)
            done += bits
    return words.reshape(rows, -1)


def device_order(k, index):
    """Index planes in the order of kernels/cuda/abi.h."""
    if k > 4:
        return pack(k, index)
    rows, columns = index.shape
    share = chunk_columns(k) // 128  # groups of 32 columns for which every line has 16 bytes
    index = index.astype(np.uint8).reshape(rows, -1, 4, share, 2, 4, 4)  # chunk, bytes, group, half, word, column
    groups = index.transpose(3, 0, 1, 2, 5, 4, 6).reshape(share, rows, -1, 4, 4, 8)  # group, row, chunk, bytes, word, nibble
    if k == 4:
        lines = [groups[0]]
    elif k == 2:
        lines = [groups[0] | groups[1] << 2]
    else:
        lines = [groups[line] | (groups[3] >> line & 1) << 3 for line in range(3)]
    nibbles = np.stack(lines, axis=2)  # row, chunk, line, bytes, word, nibble
    return (nibbles[..., 0::2] | nibbles[..., 1::2] << 4).reshape(rows, -1)


def tiled(rows, chunk):
    """Rearrange rows of bytes to tiles of sixteen rows, chunk by chunk."""
    rows = np.pad(rows, ((0, -len(rows) % TILE_ROWS), (0, 0)))
    return rows.reshape(-1, TILE_ROWS, rows.shape[1] // chunk, chunk).transpose(0, 2, 1, 3)


def codebook_bytes(k, entries):
    """Codebooks, fp16 [codebooks, 2^k], in the layout of the image."""
    plain = np.ascontiguousarray(entries.astype(np.float16)).view(np.uint8)
    if k > 4:
        return plain
    split = plain.reshape(len(entries), -1, 2)
    return np.concatenate([split[:, :, 1], split[:, :, 0]], axis=1)


def pairs(k, entries):
    """(least, step) of rows of numbers, f32."""
    least, most = entries.min(axis=-1), entries.max(axis=-1)
    return least.astype(np.float32), ((most - least) / (16383 if k == 4 else 65535)).astype(np.float32)


def planes(k, entries, least, step):
    """Split into high and low bytes."""
    above = entries.astype(np.float64) - least[..., None]
    value = np.floor(above / np.where(step == 0, 1, step).astype(np.float64)[..., None] + 0.5).astype(int)
    bits = 7 if k == 4 else 8
    return (value >> bits).astype(np.uint8), (value & (1 << bits) - 1).astype(np.uint8)


def bfloat(values):
    """f32 rounded to bf16, as bits."""
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


E4M3 = np.array([(-1) ** (c >> 7) * ((c & 7) * 2.0 ** -9 if not c >> 3 & 15 else
                                     (8 + (c & 7)) * 2.0 ** ((c >> 3 & 15) - 10))
                 if c & 127 != 127 else np.nan for c in range(256)])


class Matrix:
    """One expert: its bytes, and for the reference the base [rows, cols], |base| as in the bound, outliers, unit."""

    def __init__(self):
        self.parts, self.unit, self.residuals = {}, 1.0, None


class Weights:
    """All experts of a unit. `kind` is v2, v2a, v2c, fp8, f32, f16 or bf16."""

    def __init__(self, rng, kind, rows, cols, k=0, group=0, codebooks=0, experts=1, outliers=0):
        self.kind, self.rows, self.cols, self.k, self.group, self.codebooks = kind, rows, cols, k, group, codebooks
        columns = chunk_columns(k) if k else FP8_COLUMNS if kind == "fp8" else KEPT_COLUMNS
        self.chunks = padded(cols, columns) // columns
        self.columns = self.chunks * columns  # with the padding
        self.row_bytes = self.row_groups = 0
        self.library = self.ratio = self.pair = self.tables = None
        if kind in ("v2a", "v2c"):
            self.row_groups = -(-self.columns // group)
            self.entries = rng.normal(size=(codebooks, 1 << k)).astype(np.float16)
            self.library = codebook_bytes(k, self.entries)
        if kind == "v2c":
            self.ratio = np.abs(rng.normal(size=256 // codebooks)).astype(np.float16).astype(np.float32)
            self.ratio[0] = 0
            if k <= 4 and group >= 32:
                self.make_tables()
        # Whether products of up to four vectors use integers.
        self.integers = 0 < k <= 4 and (kind == "v2" or kind == "v2c" and group >= 32)
        self.matrices = [self.make(rng, outliers) for _ in range(experts)]

    def make_tables(self):
        """The planes of all products, for the integer path."""
        products = self.entries.astype(np.float64)[:, None, :] * self.ratio[None, :, None].astype(np.float64)
        products = products.reshape(256, 1 << self.k)
        least, step = pairs(self.k, products.reshape(-1))
        high, low = planes(self.k, products, np.full(256, least), np.full(256, step))
        self.tables = np.concatenate([high.reshape(-1), low.reshape(-1)]) if self.k == 4 else np.concatenate([high, low], 1)
        self.pair = np.array([step, least], np.float32)

    def make(self, rng, outliers):
        m = Matrix()
        getattr(self, "make_" + (self.kind if self.k or self.kind == "fp8" else "kept"))(rng, m)
        if self.k:
            m.unit = float(2.0 ** rng.integers(-20, 5))
            if outliers:
                self.add_outliers(rng, m, outliers)
        return m

    def indices(self, rng, m):
        index = rng.integers(0, 1 << self.k, (self.rows, self.columns))
        index[:, self.cols:] = 0
        m.parts["index"] = device_order(self.k, index)
        self.row_bytes = m.parts["index"].shape[1]
        return index

    def make_v2(self, rng, m):
        book = np.sort(rng.normal(size=(self.rows, 1 << self.k)), axis=1).astype(np.float16)
        m.parts["code"] = codebook_bytes(self.k, book)
        if self.k <= 4:
            least, step = pairs(self.k, book.astype(np.float64))
            high, low = planes(self.k, book, least, step)
            m.parts["integer"] = np.concatenate([high, low], axis=1)
            m.parts["pair"] = np.stack([step, least], axis=1)
        m.largest = np.abs(book.astype(np.float64)).max(axis=1)
        m.base = np.take_along_axis(book, self.indices(rng, m), 1)[:, :self.cols].astype(np.float64)
        m.size = np.abs(m.base)

    def spread(self, values):
        """Expand values of groups to columns."""
        return np.repeat(values.astype(np.float64), self.group, axis=1)[:, :self.cols]

    def make_v2a(self, rng, m):
        index, shape = self.indices(rng, m), (self.rows, self.row_groups)
        number = rng.integers(0, self.codebooks, shape).astype(np.uint8)
        scale = rng.normal(size=shape).astype(np.float16)
        midpoint = rng.normal(size=shape).astype(np.float16)
        m.parts["group"] = np.ascontiguousarray(np.stack([scale, midpoint], axis=2)).view(np.uint8)
        m.parts["number"] = number
        entry = self.entries[np.repeat(number, self.group, 1)[:, :self.cols], index[:, :self.cols]]
        scaled = entry.astype(np.float64) * self.spread(scale)
        m.base = scaled + self.spread(midpoint)
        m.size = np.abs(scaled) + np.abs(self.spread(midpoint))

    def make_v2c(self, rng, m):
        index = self.indices(rng, m)
        byte = rng.integers(0, 256, (self.rows, self.row_groups)).astype(np.uint8)
        row = (2.0 ** (14 - rng.integers(0, 60, self.rows) / 4)).astype(np.float32)
        m.parts["group"], m.parts["row"] = byte, row
        m.largest = np.abs(self.entries.astype(np.float64)).max() * self.ratio.max() * row.astype(np.float64)
        ratios = len(self.ratio)
        each = np.repeat(byte, self.group, 1)[:, :self.cols].astype(int)
        entry = self.entries[each // ratios, index[:, :self.cols]].astype(np.float64)
        m.base = entry * self.ratio[each % ratios] * row[:, None].astype(np.float64)
        m.size = np.abs(m.base)

    def make_fp8(self, rng, m):
        code = rng.integers(0, 256, (self.rows, self.columns)).astype(np.uint8)
        code[(code & 127) == 127] = 0
        code[:, self.cols:] = 0
        scale = np.abs(rng.normal(size=self.rows)).astype(np.float32)
        m.parts["index"], m.parts["code"] = code, scale
        self.row_bytes = self.columns
        m.base = E4M3[code[:, :self.cols]] * scale[:, None].astype(np.float64)
        m.size = np.abs(m.base)

    def make_kept(self, rng, m):
        values = rng.normal(size=(self.rows, self.cols)).astype(np.float32)
        stored = {"f32": values, "f16": values.astype(np.float16), "bf16": bfloat(values)}[self.kind]
        self.row_bytes = padded(self.cols * stored.itemsize, 16)
        raw = np.zeros((self.rows, self.row_bytes), np.uint8)
        raw[:, :self.cols * stored.itemsize] = np.ascontiguousarray(stored).view(np.uint8).reshape(self.rows, -1)
        m.parts["index"] = raw
        m.base = (from_bfloat(stored) if self.kind == "bf16" else stored).astype(np.float64)
        m.size = np.abs(m.base)

    def add_outliers(self, rng, m, count):
        place = np.sort(rng.choice(self.rows * self.cols, count, replace=False))
        residual = (8 * rng.normal(size=count)).astype(np.float16)
        pointer = np.searchsorted(place // self.cols, np.arange(self.rows + 1)).astype(np.uint32)
        m.parts.update(pointer=pointer, column=(place % self.cols).astype(np.uint32), residual=residual)
        m.residuals = np.zeros((self.rows, self.cols))
        m.residuals.reshape(-1)[place] = residual

    def weights_bytes(self, memory):
        """Upload everything; returns struct xfp_cuda_weights."""
        place = lambda array: memory.upload(np.ascontiguousarray(array)) if array is not None else 0
        unit_pair = place(self.pair)
        table = b""
        for m in self.matrices:
            index = m.parts["index"]
            parts = [place(tiled(index, 64 * lane_words(self.k)) if self.k else index)]
            parts += [place(self.names(m) if part == "group" else m.parts.get(part))
                      for part in ("pair", "integer", "code", "group", "number", "row",
                                                           "pointer", "column", "residual")]
            parts[1] = parts[1] or unit_pair
            table += struct.pack("<10Qd", *parts, m.unit)
        self.first_matrix = table[:88]  # struct xfp_cuda_matrix of expert 0
        matrix = memory.upload(np.frombuffer(table, np.uint8))
        return struct.pack("<4Q8I", matrix, place(self.library), place(self.ratio), place(self.tables), self.rows,
                           self.cols, self.chunks,
                           self.row_bytes,
                           self.columns // 32 if self.kind == "v2c" and self.group >= 32 else self.row_groups, max(self.group.bit_length() - 1, 0), self.codebooks,
                           len(self.matrices))

    def names(self, m):
        """Groups of 32 columns or more have one byte per 32 columns, in tiles."""
        if self.kind != "v2c" or self.group < 32:
            return m.parts.get("group")
        spread = np.repeat(m.parts["group"], self.group // 32, axis=1)[:, :self.columns // 32]
        return tiled(spread, chunk_columns(self.k) // 32)

    def shared_bytes(self, form):
        own = 0
        if self.k:
            rows = WIDE_ROWS if form == "wide" else TILE_ROWS
            own = padded((rows if self.kind == "v2" else self.codebooks) * (2 << self.k), 16)
        if self.kind == "v2c":
            own += padded(4 * (256 // self.codebooks), 16)
            own += 256 * (2 << self.k) if self.integers and form == "list" else 0
        if self.integers and form in ("i1", "i2", "i4", "list"):
            vectors, columns = {"i4": 4, "i2": 2}.get(form, 1), chunk_columns(self.k)
            ring = (2 if self.k == 3 else 3) * 8 * (
                columns * (2 * self.k + 3 * vectors) + (columns // 2 if self.kind == "v2c" else 0))
            if form != "list":
                return (256 * (2 << self.k) if self.kind == "v2c" else 0) + ring + 8 * 512
            own += ring
        if form == "wide":
            return own + 3 * 160 * WIDE_PLANES
        return own + 4608 * (4 if form == "m4" else 1) if self.k or self.kind == "fp8" else 0

    def integer_bound(self, expert, x):
        """The increase of the bound where x [vectors, cols] is multiplied as integers."""
        m, x = self.matrices[expert], np.abs(x.astype(np.float64))
        if "pair" not in m.parts and self.pair is None:
            return 0
        entry = m.largest[:, None] * m.unit
        return entry * (x.sum(1) * 2.0 ** (-14 if self.k == 4 else -16) + self.cols * x.max(1) * 2.0 ** -21)

    def product(self, expert, x):
        """W x in double, and the scale of the bound, [rows, vectors]; x [vectors, cols] as it is multiplied."""
        m, x = self.matrices[expert], x.astype(np.float64)
        value, size = m.base @ x.T, m.size @ np.abs(x).T
        if m.residuals is not None:
            value, size = value + m.residuals @ x.T, size + np.abs(m.residuals) @ np.abs(x).T
        largest = m.size.max(axis=1, keepdims=True) * np.abs(x).max(axis=1)
        return value * m.unit, (size * (self.cols / 4 + 64) * 2.0 ** -24 + largest * self.cols * 2.0 ** -40) * m.unit

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A reader of .xfp bundles written from xfp(5) alone, as an oracle for tests.

    read_bundle.py BUNDLE                      check it; a line of JSON per unit and tensor
    read_bundle.py BUNDLE NAME ROLE OUT.npy    decode a unit to f32 [experts, rows, columns]

Or import it: Bundle(path).unit("name", "role"), .tensor("name").
"""
import hashlib
import json
import struct
import sys
import tarfile

import numpy as np

NONE = 0xFFFFFFFF
CLASSES = ("attention linear_attention dense_mlp shared_expert routed_expert lm_head embedding router norm vision "
           "mtp other").split()
MODES = "keep fp8 v2 v2a v2c".split()
FATES = "quantized kept tied dropped".split()
DTYPES = ("F64 F32 F16 BF16 BOOL U8 I8 U16 I16 U32 I32 U64 I64 C64 F8_E4M3 F8_E5M2 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ "
          "F6_E2M3 F6_E3M2 F4").split()
INDEX, CODE, GROUP, BALANCE, OUTLIER, RAW = range(6)
EXTENSIONS = ["idx", "cb", "grp", "bal", "out"]
TABLES = [
    ("units", "<IIIIBBBBBBBBIIQQ6IQQdddd",
     "name_at name_size role_at role_size class mode k met dtype group library zero experts first_matrix rows cols part0 "
     "part1 part2 part3 part4 also_zero bytes outliers cos_median cos_p5 error floor"),
    ("matrices", "<IIBBhIQQQQ5Q16s",
     "unit expert mode k exponent tensor base row_stride col_stride outliers offset0 offset1 offset2 offset3 offset4 "
     "source"),
    ("parts", "<IBBHQQ32s", "number kind reserved volume offset size sha256"),
    ("tensors", "<IIIIBBBBIII8Q16s",
     "name_at name_size reason_at reason_size class dtype fate rank part tied reserved " +
     " ".join(f"shape{i}" for i in range(8)) + " source"),
    ("files", "<IIQQ32s", "name_at name_size offset size sha256"),
]


def need(condition, what):
    if not condition:
        raise ValueError(what)


def to_f32(dtype, raw):
    """Elements of a source dtype as f32."""
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(raw, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype]).astype("<f4")


# The layout of a lane's words, by k: (word, lowest bit, bits) of each piece of an index, lowest piece first.
SLOTS = {
    2: [[("A", 0, 2)], [("A", 2, 2)], [("A", 4, 2)], [("A", 6, 2)]],
    3: [[("A", 0, 3)], [("A", 3, 3)], [("B", 0, 3)], [("B", 3, 3)], [("C", 0, 3)], [("C", 3, 3)],
        [("A", 6, 2), ("C", 6, 1)], [("B", 6, 2), ("C", 7, 1)]],
    4: [[("A", 0, 4)], [("A", 4, 4)]],
    5: [[(word, 0, 5)] for word in "ABCDE"] +
       [[("A", 5, 3), ("D", 5, 2)], [("B", 5, 3), ("E", 5, 2)], [("C", 5, 3), ("D", 7, 1), ("E", 7, 1)]],
    6: [[("A", 0, 6)], [("B", 0, 6)], [("C", 0, 6)], [("A", 6, 2), ("B", 6, 2), ("C", 6, 2)]],
}


def row_bytes(cols, k):
    return -(-(-(-cols // 32) * 4 * k) // 16) * 16


def unpack_indices(raw, rows, cols, k):
    """All rows of k-bit indices: [rows, cols]."""
    raw = np.frombuffer(raw, "u1").reshape(rows, row_bytes(cols, k))
    slots, result, at = SLOTS[k], [], 0
    columns = 4 * len(slots)  # of a lane
    words = columns * k // 32
    for first in range(0, cols, 16 * columns):
        lanes = min(16, -(-(cols - first) // 32) * 32 // columns)
        chunk = raw[:, at: at + 4 * lanes * words].reshape(rows, words, lanes, 4)
        at += 4 * lanes * words
        for pieces in slots:
            value, done = np.zeros((rows, lanes, 4), np.intp), 0
            for word, low, bits in pieces:
                value |= (chunk[:, ord(word) - ord("A")].astype(np.intp) >> low & (1 << bits) - 1) << done
                done += bits
            result.append(value.transpose(0, 2, 1).reshape(rows, 4 * lanes))  # byte by byte, lanes side by side
    index = np.concatenate(result, 1)
    need(not index[:, cols:].any() and not raw[:, at:].any(), "columns past the end of a row")
    return index[:, :cols]


def quarter_octaves(d):
    """2^(-d/4), as f32."""
    quarters = np.array([1, 2**-0.25, 2**-0.5, 2**-0.75]).astype("<f4")
    return quarters[d % 4] * np.exp2(-(d // 4).astype("<f4"))


def e4m3(codes):
    exponent, mantissa = (codes >> 3) & 15, (codes & 7).astype(np.float64)
    value = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent.astype(np.float64) - 10))
    value = np.where((codes & 0x7F) == 0x7F, np.nan, value)
    return np.where(codes & 0x80, -value, value)


class Bundle:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        with tarfile.open(path, "r:") as tar:
            members = tar.getmembers()
        self.members = {m.name: m for m in members}
        need(len(members) == len(self.members), "a member occurs twice")
        need([m.name for m in members[:2]] == ["xfp.json", "xfp.idx"] and members[-1].name == "xfp.sum", "order of members")
        self.json = json.loads(self.content("xfp.json"))
        sums = "".join(f"{hashlib.sha256(self.content(name)).hexdigest()}  {name}\n" for name in ("xfp.json", "xfp.idx"))
        need(self.content("xfp.sum") == sums.encode(), "xfp.sum")
        need(self.data[members[-1].offset_data + 512:] == bytes(1024), "end of the archive")
        self.read_index(self.content("xfp.idx"))
        expected = ["xfp.json", "xfp.idx"] + [self.file_member(i) for i in range(len(self.files))]
        expected += [self.part_member(p) for p in self.parts] + ["xfp.sum"]
        need([m.name for m in members] == expected, "names of members")
        for i, record in enumerate(self.files):
            self.check(self.file_member(i), record)
            need(self.members[self.file_member(i)].size == record["size"], "size of a file")
        for record in self.parts:
            self.check(self.part_member(record), record)
            need(record["offset"] % 4096 == 0, "alignment")

    def content(self, member):
        m = self.members[member]
        return self.data[m.offset_data: m.offset_data + m.size]

    def file_member(self, number):
        name = self.files[number]["name"]
        plain = len(name.encode()) <= 80 and all(c.isascii() and (c.isalnum() or c in "._-/") for c in name)
        return "files/" + (name if plain else f"+{number:06}")

    @staticmethod
    def part_member(part):
        return f"t/{part['number']:06}.raw" if part["kind"] == RAW else f"u/{part['number']:06}.{EXTENSIONS[part['kind']]}"

    def check(self, member, record):
        """Check that the member is at the index's offset, with its digest, followed by zeros."""
        m = self.members[member]
        need(m.offset_data == record["offset"] and m.size >= record["size"], f"place of {member}")
        need(hashlib.sha256(self.part_bytes(record)).digest() == record["sha256"], f"digest of {member}")
        need(not any(self.data[record["offset"] + record["size"]: m.offset_data + m.size]), f"padding of {member}")

    def part_bytes(self, record):
        return self.data[record["offset"]: record["offset"] + record["size"]]

    def read_index(self, idx):
        magic, version, header_bytes, index_bytes, self.weights = struct.unpack_from("<8sIIQQ", idx)
        need(magic == b"xfp-idx\0" and version == 1 and header_bytes == 136, "header of the index")
        tables = [struct.unpack_from("<QII", idx, 32 + 16 * t) for t in range(6)]
        end = header_bytes
        for offset, count, record in tables:
            need(offset == -(-end // 8) * 8 and not any(idx[end:offset]), "place of a table")
            end = offset + count * record
        need(end == index_bytes and not any(idx[end:]), "size of the index")
        self.strings, self.string_end = idx[tables[5][0]: end], 0
        self.family = self.string(*struct.unpack_from("<II", idx, 128))
        for (name, form, fields), (offset, count, record) in zip(TABLES, tables):
            need(struct.calcsize(form) == record, f"records of {name}")
            rows = [dict(zip(fields.split(), struct.unpack_from(form, idx, offset + i * record))) for i in range(count)]
            for row in rows:
                for key in ("name", "role", "reason"):
                    if f"{key}_at" in row:
                        row[key] = self.string(row.pop(f"{key}_at"), row.pop(f"{key}_size"))
            setattr(self, name, rows)
        need(self.string_end == len(self.strings), "strings")

    def string(self, at, size):
        need(at == self.string_end and self.strings[at + size] == 0, "place of a string")
        self.string_end += size + 1
        return self.strings[at: at + size].decode()

    # ---- weights

    def matrix(self, number):
        """A matrix decoded to f32 [rows, columns]."""
        matrix = self.matrices[number]
        unit = self.units[matrix["unit"]]
        rows, cols, mode = unit["rows"], unit["cols"], MODES[matrix["mode"]]

        def part(kind, size):
            raw = self.part_bytes(self.parts[unit[f"part{kind}"]])[matrix[f"offset{kind}"]:][:size]
            need(len(raw) == size, "size of a part")
            return raw

        if mode == "keep":
            dtype = DTYPES[unit["dtype"]]
            return to_f32(dtype, part(INDEX, rows * cols * {"F64": 8, "F32": 4}.get(dtype, 2))).reshape(rows, cols)
        if mode == "fp8":
            codes = np.frombuffer(part(INDEX, rows * cols), "u1").reshape(rows, cols)
            scale = np.frombuffer(part(CODE, rows * 4), "<f4").astype(np.float64)
            return (e4m3(codes) * scale[:, None]).astype("<f4")
        k = matrix["k"]
        if mode == "v2":
            index = unpack_indices(part(INDEX, rows * row_bytes(cols, k)), rows, cols, k)
            entries = np.frombuffer(part(CODE, rows * 2 << k), "<f2").astype("<f4").reshape(rows, 1 << k)
            x = np.take_along_axis(entries, index, 1)
        else:
            x = self.library_rows(unit, mode, part)
        n = matrix["outliers"]
        if n:
            of_row, columns, residuals = self.outliers(rows, cols, n, part)
            x[of_row, columns] += residuals
        if unit[f"part{BALANCE}"] != NONE:
            d = np.frombuffer(self.part_bytes(self.parts[unit[f"part{BALANCE}"]]), "u1")
            x *= quarter_octaves(d)
        return (x.astype(np.float64) * 2.0 ** -matrix["exponent"]).astype("<f4")

    def largest(self, number):
        """[rows]: the largest magnitude in the codebooks of a matrix's row, balanced and without outliers."""
        matrix = self.matrices[number]
        unit = self.units[matrix["unit"]]
        rows, k, mode = unit["rows"], matrix["k"], MODES[matrix["mode"]]
        code = self.part_bytes(self.parts[unit[f"part{CODE}"]])[matrix[f"offset{CODE}"]:]
        code = np.abs(np.frombuffer(code[:len(code) // 2 * 2], "<f2").astype(np.float64))
        unscaled = 2.0 ** -matrix["exponent"]
        if mode == "v2":
            return code[: rows << k].reshape(rows, 1 << k).max(1) * unscaled
        codebooks, groups = 1 << unit["library"], -(-unit["cols"] // (1 << unit["group"]))
        entry = code[: codebooks << k].max()
        raw = self.part_bytes(self.parts[unit[f"part{GROUP}"]])[matrix[f"offset{GROUP}"]:]
        if mode == "v2a":
            pairs = np.frombuffer(raw[: 4 * rows * groups], "<f2").astype(np.float64).reshape(rows, groups, 2)
            return np.abs(pairs[:, :, 0]).max(1) * entry * unscaled
        of_row = quarter_octaves(np.frombuffer(raw[rows * groups: rows * groups + rows], "u1")).astype(np.float64)
        return entry * code[codebooks << k: (codebooks << k) + 256 // codebooks].max() * 2**14 * of_row * unscaled

    @staticmethod
    def outliers(rows, cols, n, part):
        """Row, column and residual of each of a matrix's outliers."""
        width = 4 if cols > 65536 else 2
        columns_at = 4 * (n if n <= rows else rows + 1)
        residuals_at = columns_at + -(-n * width // 4) * 4
        raw = part(OUTLIER, -(-(residuals_at + 2 * n) // 16) * 16)
        of_row = np.frombuffer(raw[:columns_at], "<u4").astype(np.int64)
        if n > rows:
            need(of_row[0] == 0 and of_row[-1] == n and np.all(np.diff(of_row) >= 0), "row pointers")
            of_row = np.repeat(np.arange(rows), np.diff(of_row))
        columns = np.frombuffer(raw[columns_at: columns_at + n * width], f"<u{width}").astype(np.int64)
        need(of_row.max() < rows and columns.max() < cols, "place of an outlier")
        need(np.all(np.diff(of_row * cols + columns) > 0), "order of outliers")
        need(not any(raw[columns_at + n * width: residuals_at]) and not any(raw[residuals_at + 2 * n:]), "padding of outliers")
        return of_row, columns, np.frombuffer(raw[residuals_at: residuals_at + 2 * n], "<f2").astype("<f4")

    @staticmethod
    def library_rows(unit, mode, part):
        """x of a matrix in mode v2a or v2c, before outliers and balance."""
        rows, cols, k, group, codebooks = unit["rows"], unit["cols"], unit["k"], 1 << unit["group"], 1 << unit["library"]
        ratios = 256 // codebooks if mode == "v2c" else 0
        index = unpack_indices(part(INDEX, rows * row_bytes(cols, k)), rows, cols, k)
        code = np.frombuffer(part(CODE, 2 * ((codebooks << k) + ratios)), "<f2").astype(np.float64)
        library = code[: codebooks << k].reshape(codebooks, 1 << k)
        groups = -(-cols // group)
        total = rows * groups
        of_column = np.arange(cols) // group
        used = 5 * total if mode == "v2a" else total + rows
        raw = part(GROUP, -(-used // 16) * 16)
        need(not any(raw[used:]), "padding of groups")
        if mode == "v2a":
            pairs = np.frombuffer(raw[: 4 * total], "<f2").astype(np.float64).reshape(rows, groups, 2)[:, of_column]
            number = np.frombuffer(raw[4 * total: used], "u1").reshape(rows, groups)[:, of_column]
            need(np.all(number < codebooks), "number of a codebook")
            # exact in f64 except for a bit far below the precision of f32
            return (library[number, index] * pairs[:, :, 0] + pairs[:, :, 1]).astype("<f4")
        group_bytes = np.frombuffer(raw[:total], "u1").reshape(rows, groups)[:, of_column]
        row = np.float32(2**14) * quarter_octaves(np.frombuffer(raw[total: used], "u1"))
        ratio = code[codebooks << k:][group_bytes % ratios]
        return (library[group_bytes // ratios, index] * ratio * row[:, None].astype(np.float64)).astype("<f4")

    def unit(self, name, role):
        """All matrices of a unit, f32 [experts, rows, columns]."""
        unit = next(u for u in self.units if (u["name"], u["role"]) == (name, role))
        first = unit["first_matrix"]
        return np.stack([self.matrix(m) for m in range(first, first + unit["experts"])])

    def tensor(self, name):
        """A tensor: raw bytes if it was kept whole, else f32 in its shape (None if dropped)."""
        number = next(i for i, t in enumerate(self.tensors) if t["name"] == name)
        if FATES[self.tensors[number]["fate"]] == "tied":
            number = self.tensors[number]["tied"]
        tensor = self.tensors[number]
        if FATES[tensor["fate"]] == "dropped":
            return None
        if tensor["part"] != NONE:
            return self.part_bytes(self.parts[tensor["part"]])
        shape = [tensor[f"shape{i}"] for i in range(tensor["rank"])]
        flat = np.full(int(np.prod(shape)), np.nan, "<f4")
        for m, view in enumerate(self.matrices):
            if view["tensor"] == number:
                w = self.matrix(m)
                r, c = np.indices(w.shape)
                flat[view["base"] + r * view["row_stride"] + c * view["col_stride"]] = w
        return flat.reshape(shape)


def main(arguments):
    if len(arguments) not in (1, 4):
        sys.exit(__doc__)
    bundle = Bundle(arguments[0])
    if len(arguments) == 4:
        np.save(arguments[3], bundle.unit(arguments[1], arguments[2]))
        return
    for unit in bundle.units:
        keys = "name role k group library experts rows cols bytes outliers cos_median cos_p5 error floor".split()
        line = {key: unit[key] for key in keys}
        line.update({"class": CLASSES[unit["class"]], "mode": MODES[unit["mode"]], "dtype": DTYPES[unit["dtype"]],
                     "met": bool(unit["met"])})
        print(json.dumps(line))
    for tensor in bundle.tensors:
        print(json.dumps({"name": tensor["name"], "fate": FATES[tensor["fate"]], "reason": tensor["reason"],
                          "class": CLASSES[tensor["class"]], "dtype": DTYPES[tensor["dtype"]],
                          "shape": [tensor[f"shape{i}"] for i in range(tensor["rank"])]}))


if __name__ == "__main__":
    main(sys.argv[1:])

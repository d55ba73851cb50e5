# SPDX-License-Identifier: Apache-2.0
"""Reading and writing safetensors with numpy alone.

numpy has no bf16: such tensors are read as float32, exactly. Pass `raw=True` to get the
16-bit patterns as uint16 instead. `save` writes a uint16 array as BF16 when it is wrapped
in `Bf16`.
"""
import json
import os
import struct

import numpy as np

DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}


class Bf16:
    """bf16 patterns (uint16) on their way to a file."""

    def __init__(self, patterns):
        self.patterns = np.asarray(patterns, np.uint16)


def widen_bf16(patterns):
    return (patterns.astype(np.uint32) << 16).view(np.float32)


def round_bf16(values):
    """float32 -> bf16 patterns, to nearest, ties to even; finite values only."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def read_header(path):
    """(entries by name, offset of the data) of one file."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    return header, 8 + size


class Checkpoint:
    """The tensors of a model folder (one file, or shards with an index), read one at a time."""

    def __init__(self, folder):
        index = os.path.join(folder, "model.safetensors.index.json")
        if os.path.exists(index):
            with open(index, encoding="utf-8") as file:
                shards = sorted(set(json.load(file)["weight_map"].values()))
        else:
            shards = ["model.safetensors"]
        self.folder = folder
        self.entries = {}
        for shard in shards:
            path = os.path.join(folder, shard)
            header, start = read_header(path)
            for name, entry in header.items():
                self.entries[name] = (path, start, entry)

    def names(self):
        return sorted(self.entries)

    def __contains__(self, name):
        return name in self.entries

    def dtype(self, name):
        return self.entries[name][2]["dtype"]

    def element_bytes(self, name):
        return np.dtype(DTYPES[self.dtype(name)]).itemsize

    def read(self, name, raw=False):
        path, start, entry = self.entries[name]
        begin, end = entry["data_offsets"]
        with open(path, "rb") as file:
            file.seek(start + begin)
            data = file.read(end - begin)
        array = np.frombuffer(data, DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return widen_bf16(array) if entry["dtype"] == "BF16" and not raw else array

    def config(self):
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as file:
            return json.load(file)


def save(path, tensors):
    """Write {name: array or Bf16} in the order given."""
    names = {np.dtype(numpy): name for name, numpy in DTYPES.items() if name != "BF16"}
    header, arrays, offset = {}, [], 0
    for name, value in tensors.items():
        if isinstance(value, Bf16):
            array, dtype = value.patterns, "BF16"
        else:
            array = np.asarray(value)
            dtype = names[array.dtype]
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        arrays.append(array)
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            file.write(np.ascontiguousarray(array).tobytes())

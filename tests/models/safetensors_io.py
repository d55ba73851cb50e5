# SPDX-License-Identifier: Apache-2.0
"""Reads safetensors with numpy only. numpy has no bf16: such tensors are read as float32, exactly."""
import json
import os
import shutil
import struct

import numpy as np

DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}


def widen_bf16(patterns):
    return (patterns.astype(np.uint32) << 16).view(np.float32)


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

    def read(self, name):
        path, start, entry = self.entries[name]
        begin, end = entry["data_offsets"]
        with open(path, "rb") as file:
            file.seek(start + begin)
            data = file.read(end - begin)
        array = np.frombuffer(data, DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return widen_bf16(array) if entry["dtype"] == "BF16" else array

    def overwrite(self, name, array):
        """Write in place, in the file's own dtype: float32 only."""
        path, start, entry = self.entries[name]
        if entry["dtype"] != "F32" or list(array.shape) != entry["shape"]:
            raise ValueError(f"{name}: {entry['dtype']} {entry['shape']}")
        with open(path, "r+b") as file:
            file.seek(start + entry["data_offsets"][0])
            file.write(np.ascontiguousarray(array, np.float32).tobytes())

    def config(self):
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as file:
            return json.load(file)


def write_copy(source, folder, tensors):
    """A folder with the files of the model folder `source`, and one model.safetensors with the tensors of these names.

    `tensors(name)` gives a tensor's values, in float32, or None: it is then as it is in the source, in float32 too.
    """
    checkpoint = Checkpoint(source)
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(source):
        path = os.path.join(source, name)
        if os.path.isfile(path) and ".safetensors" not in name:
            shutil.copyfile(path, os.path.join(folder, name))
    header, end = {}, 0
    for name in checkpoint.names():
        shape = checkpoint.entries[name][2]["shape"]
        size = 4 * int(np.prod(shape, dtype=np.int64))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in checkpoint.names():
            values = tensors(name)
            values = checkpoint.read(name) if values is None else values
            file.write(np.ascontiguousarray(values, np.float32).tobytes())

# SPDX-License-Identifier: Apache-2.0
"""Weights derived from the names of their tensors, by a formula shared with tests/unit/tiny_model.h."""
import json
import os
import struct

import numpy as np


def weights(name, shape):
    """Uniform between -1/2 and 1/2, for norms between 1/2 and 3/2."""
    state = 0xcbf29ce484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001b3 & (1 << 64) - 1
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
        z = z ^ z >> np.uint64(31)
    values = (z >> np.uint64(40)).astype(np.float64) / (1 << 24) - 0.5
    return (values + ("norm" in name)).astype("<f4").reshape(shape)


def plain(name):
    """The name of a tensor in the text-only model."""
    for prefix in ("model.language_model.", "language_model.model."):
        if name.startswith(prefix):
            return "model." + name[len(prefix):]
    return "lm_head.weight" if name == "language_model.lm_head.weight" else name


def rewrite(path, scale=1, name_of=lambda name: name):
    """Give every tensor of a safetensors file its weights, times `scale` except for norms."""
    with open(path, "rb") as file:
        header = file.read(struct.unpack("<Q", file.read(8))[0])
    tensors = {name: t for name, t in json.loads(header).items() if name != "__metadata__"}
    with open(path, "r+b") as file:
        for name, tensor in tensors.items():
            assert tensor["dtype"] == "F32"
            file.seek(8 + len(header) + tensor["data_offsets"][0])
            file.write((weights(name_of(name), tensor["shape"]) * np.float32(1 if "norm" in name else scale)).tobytes())


def write_checkpoint(folder, config, shapes):
    """Write a config.json, and a model.safetensors of tensors with these names and shapes."""
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps({**header, "__metadata__": {"format": "pt"}}).encode()
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            file.write(weights(name, shape).tobytes())
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)

# SPDX-License-Identifier: Apache-2.0
"""EXL2's packing of matrices, for make-packed-checkpoint.py."""
import struct

import numpy as np

from packed_grouped import stream

# For matrices with this many inputs: (bits, inputs); others have groups of 128.
GROUPS = {128: ((6, 32), (5, 32), (4, 16), (3, 32), (2, 16)), 192: ((8, 32), (5, 64), (4, 40), (4, 8), (2, 48))}


def half(values):
    """Rounded to f16, as f32."""
    return np.float32(np.asarray(values, np.float32).astype(np.float16))


def exl2(w, name):
    """The tensors of a matrix by suffix, as (dtype, array), and the unpacked matrix."""
    rows, cols = w.shape
    padded = -(-rows // 32) * 32
    order = np.random.default_rng(sum(name.encode())).permutation(cols)  # the input that is stored at each place
    words, indices, most, starts = [], [], [], []
    unpacked = np.empty((rows, cols), np.float16)
    for bits, count in GROUPS.get(cols) or [(5 if c < cols // 2 else 4, 128) for c in range(0, cols, 128)]:
        columns, order = order[:count], order[count:]
        part, zero = w[:, columns], 2**(bits - 1)
        need = np.abs(part).max(1) / zero
        most.append(np.float16(need.max()))
        unit = half(np.float32(most[-1]) / 256)
        index = np.clip(np.ceil(np.sqrt(need / unit)) - 1, 0, 15).astype(np.uint32)
        scale = half((index + 1.0)**2 * unit)
        codes = np.clip(np.round(part / scale[:, None]) + zero, 0, 2**bits - 1).astype(np.uint32)
        unpacked[:, columns] = half((codes - np.float32(zero)) * scale[:, None])
        # Padding decodes to other values, and must not be read.
        codes = np.concatenate([codes, np.full((padded - rows, count), 2**bits - 1, np.uint32)])
        index = np.concatenate([index, np.full(padded - rows, 15, np.uint32)])
        starts += [bits, sum(map(len, words))]
        words.append(stream(codes, bits).T)
        indices.append(stream(index[None], 4)[0])
    inverse = np.empty(cols, np.int32)
    inverse[np.random.default_rng(sum(name.encode())).permutation(cols)] = np.arange(cols)
    return {"q_weight": ("I32", np.concatenate(words)), "q_scale": ("I32", np.stack(indices)),
            "q_scale_max": ("F16", np.array(most, "<f2")), "q_groups": ("I16", np.array(starts, "<i2")),
            "q_invperm": ("I32", inverse)}, unpacked


def forms(base):
    def make(old=False):
        m = base.llama({"quant_method": "exl2", "version": "0.2.4", "bits": 4.0, "head_bits": 6}, None)
        p = "model.layers.0."
        names = [n for n in m.plain if "_proj" in n] + ["lm_head.weight"]
        for name in names:
            m.packed.pop(name, None)
            tensors, unpacked = exl2(base.weights(name, *m.plain[name].shape), name)
            if old:
                tensors["q_perm"] = ("I32", np.argsort(tensors["q_invperm"][1]).astype(np.int32))
            m.grouped(name, tensors, unpacked)
        # Its outputs are not a multiple of 32, which only a bias shows.
        name = p + "self_attn.k_proj.weight"
        tensors, unpacked = exl2(base.weights(name, 56, 128), name)
        m.grouped(name, tensors, unpacked)
        bias = base.weights(p + "self_attn.k_proj.bias", 56).astype("<f2")
        m.packed[p + "self_attn.k_proj.bias"] = m.plain[p + "self_attn.k_proj.bias"] = base.Tensor("F16", [56], bias)
        return m
    return {"exl2": make, "exl2-old": lambda: make(True)}


def edit(ending, at, fmt, value):
    def spoil(m):
        t = m.packed[next(n for n in sorted(m.packed) if n.endswith(ending))]
        size = struct.calcsize(fmt)
        data = bytes(t.data)
        t.data = data[:at * size] + struct.pack(fmt, value) + data[(at + 1) * size:]
    return spoil


def cut(ending, count):
    def spoil(m):
        t = m.packed[next(n for n in sorted(m.packed) if n.endswith(ending))]
        rest = int(np.prod(t.shape[1:]))
        size = len(bytes(t.data)) // int(np.prod(t.shape))
        t.data, t.shape = bytes(t.data)[:(t.shape[0] - count) * rest * size], [t.shape[0] - count, *t.shape[1:]]
    return spoil


def without(ending):
    def spoil(m):
        del m.packed[next(n for n in sorted(m.packed) if n.endswith(ending))]
    return spoil


def swap(m):
    """Swap two inputs: another valid matrix."""
    t = m.packed[next(n for n in sorted(m.packed) if n.endswith("down_proj.q_invperm"))]
    order = np.frombuffer(bytes(t.data), "<i4").copy()
    order[[3, 90]] = order[[90, 3]]
    t.data = order.tobytes()


SPOILS = {
    "place-swap": swap, "scale-more": edit("down_proj.q_scale_max", 1, "<e", 0.5),
    "group-bits": edit(".q_groups", 0, "<h", 7), "group-start": edit(".q_groups", 3, "<h", 7),
    "group-order": edit(".q_groups", 5, "<h", 0), "first-group": edit(".q_groups", 1, "<h", 1),
    "fewer-groups": cut(".q_groups", 2), "fewer-scales": cut(".q_scale", 1), "fewer-words": cut(".q_weight", 1),
    "few-words": cut(".q_weight", 10), "fewer-inputs": cut(".q_invperm", 1),
    "place-range": edit(".q_invperm", 3, "<i", 192), "place-twice": edit(".q_invperm", 3, "<i", 5),
    "no-order": without(".q_invperm"), "no-most": without(".q_scale_max"),
}

# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's own quantizers, out of its libggml-base.so, which nothing here brings: GGML_LIBRARY names it."""
import ctypes

import numpy as np

# Bits a weight follow from the blocks; the embedding of a type in a file's mix of types is not our business.
FORMATS = ("Q2_K", "Q3_K", "IQ4_XS", "Q4_K", "Q5_K", "Q6_K")


class Ggml:
    """Quantizes and decodes flat arrays; rows are run together where they are no multiple of a block."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.ggml_type_name.restype = ctypes.c_char_p
        self.library.ggml_type_size.restype = ctypes.c_size_t
        self.library.ggml_blck_size.restype = ctypes.c_int64
        self.library.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.library.ggml_quantize_chunk.argtypes = [
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64,
            ctypes.c_void_p]
        self.types = {}
        for number in range(24):  # those that all versions have
            name = (self.library.ggml_type_name(number) or b"").decode().upper()
            if name in FORMATS:
                self.types[name] = number
        missing = set(FORMATS) - set(self.types)
        if missing:
            raise SystemExit(f"{path}: has no {', '.join(sorted(missing))}")

    def bits(self, name):
        number = self.types[name]
        return 8 * self.library.ggml_type_size(number) / self.library.ggml_blck_size(number)

    def decoded(self, name, weights):
        """What is left of a float32 array; its size is a multiple of a block."""
        number = self.types[name]
        block = self.library.ggml_blck_size(number)
        flat = np.ascontiguousarray(weights, np.float32).reshape(-1)
        if flat.size % block:
            raise SystemExit(f"{name}: {flat.size} weights are no multiple of {block}")
        packed = np.empty(flat.size // block * self.library.ggml_type_size(number), np.uint8)
        out = np.empty_like(flat)
        self.library.ggml_quantize_chunk(number, flat.ctypes.data, packed.ctypes.data, 0, flat.size // block, block,
                                         None)
        decode = getattr(self.library, "dequantize_row_" + (
            "iq4_xs" if name == "IQ4_XS" else name[0].lower() + name[1:]))
        decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        decode(packed.ctypes.data, out.ctypes.data, flat.size)
        return out.reshape(weights.shape)

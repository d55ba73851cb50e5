# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's own quantizers, from its libggml-base.so, which GGML_LIBRARY names; it is not part of this project."""
import ctypes

import numpy as np

# Bits per weight follow from the blocks; llama.cpp's mixtures of types are not considered.
FORMATS = ("Q2_K", "Q3_K", "IQ4_XS", "Q4_K", "Q5_K", "Q6_K")


class Ggml:
    """Quantizes and dequantizes flat arrays; rows are concatenated if they are not a multiple of a block."""

    def __init__(self, path, formats=FORMATS):
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
            if name in formats:
                self.types[name] = number
        missing = set(formats) - set(self.types)
        if missing:
            raise SystemExit(f"{path}: has no {', '.join(sorted(missing))}")

    def bits(self, name):
        number = self.types[name]
        return 8 * self.library.ggml_type_size(number) / self.library.ggml_blck_size(number)

    def bytes_of(self, number, count):
        """Bytes of `count` weights in the type of this number."""
        block = self.library.ggml_blck_size(number)
        if count % block:
            raise SystemExit(f"{count} weights are no multiple of {block}")
        return count // block * self.library.ggml_type_size(number)

    def decode(self, number, packed, count):
        out = np.empty(count, np.float32)
        decode = getattr(self.library, "dequantize_row_" + self.library.ggml_type_name(number).decode())
        decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        decode(packed.ctypes.data, out.ctypes.data, count)
        return out

    def encoded(self, name, weights, squares=None):
        """The bytes of a float32 array; its size is a multiple of a block, and with an importance matrix (`squares`,
        the mean square of each column's inputs) the size of a row is."""
        number = self.types[name]
        flat = np.ascontiguousarray(weights, np.float32).reshape(-1)
        packed = np.empty(self.bytes_of(number, flat.size), np.uint8)
        row, importance = self.library.ggml_blck_size(number), None
        if squares is not None:
            squares = np.ascontiguousarray(squares, np.float32)
            row, importance = squares.size, squares.ctypes.data
            self.bytes_of(number, row)
        self.library.ggml_quantize_chunk(number, flat.ctypes.data, packed.ctypes.data, 0, flat.size // row, row,
                                         importance)
        return packed

    def decoded(self, name, weights, squares=None):
        """A float32 array after quantization by `encoded`."""
        packed = self.encoded(name, weights, squares)
        return self.decode(self.types[name], packed, weights.size).reshape(weights.shape)

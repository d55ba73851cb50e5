#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every unit of a bundle times vectors, by libxfp, against its weights as xfp(5) says and numpy multiplies them.

    check_products.py LIBXFP.so BUNDLE...

Each result must be within the bound that xfp.h states; the line of a bundle says how near the nearest came.
"""
import ctypes
import sys

import numpy as np
from read_bundle import BALANCE, MODES, NONE, Bundle, quarter_octaves

COUNTS = 1, 5, 33
BLOCK = 256


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 1024)]


class Vectors(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int), ("count", ctypes.c_size_t), ("stride", ctypes.c_size_t)]


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.xfp_instructions.restype = ctypes.c_char_p
        self.library.xfp_use_instructions.restype = ctypes.c_bool
        self.error = Error()

    def sets(self):
        return [name for name in ("plain", "avx2", "avx512", "vbmi", "neon", "dotprod")
                if self.library.xfp_use_instructions(name.encode())]

    def make(self, function, *arguments):
        """The result of an open function."""
        out = ctypes.c_void_p()
        self.call(function, *arguments, ctypes.byref(out))
        return out

    def call(self, function, *arguments):
        if getattr(self.library, function)(*arguments, ctypes.byref(self.error)):
            sys.exit(f"{function}: {self.error.text.decode()}")

    def close(self, function, handle):
        getattr(self.library, function)(handle)


def vectors(array):
    return Vectors(array.ctypes.data, 1, len(array), array.shape[1])


def multiply(library, team, linear, expert, x, rows):
    y = np.full((len(x), rows), np.nan, "<f4")
    library.call("xfp_multiply", team, linear, ctypes.c_uint32(expert), ctypes.c_size_t(len(x)),
                 ctypes.byref(vectors(x)), ctypes.byref(vectors(y)))
    return y.astype(np.float64)


def blocks_largest(x):
    """The sum over blocks in the bound: [vectors] of n times the largest |x|."""
    return sum(min(BLOCK, x.shape[1] - c) * np.abs(x[:, c: c + BLOCK]).max(1) for c in range(0, x.shape[1], BLOCK))


def bounds(bundle, number, w, x, integers, narrow):
    """[vectors, rows]: the error bound of each result; `narrow`: entries may have 8 bits."""
    matrix = bundle.matrices[number]
    unit = bundle.units[matrix["unit"]]
    floats = (unit["cols"] / 16 + 40) * 2.0**-24 * (np.abs(x) @ np.abs(w).T)
    if not integers or MODES[matrix["mode"]] in ("keep", "fp8"):
        return floats
    if unit[f"part{BALANCE}"] != NONE:
        balance = bundle.part_bytes(bundle.parts[unit[f"part{BALANCE}"]])
        x = x * quarter_octaves(np.frombuffer(balance, "u1")).astype(np.float64)
    each = 2.0**-14 * blocks_largest(x)
    if narrow and MODES[matrix["mode"]] in ("v2a", "v2c") and matrix["k"] <= 4:
        each += np.abs(x).sum(1) / 254
    return floats + np.outer(each, bundle.largest(number))


def check(library, path, sets):
    bundle = Bundle(path)
    handle = library.make("xfp_bundle_open", path.encode())
    team = library.make("xfp_team_start", ctypes.c_uint(2))
    random, products, nearest = np.random.default_rng(1), 0, {name: 0 for name in sets}
    for u, unit in enumerate(bundle.units):
        linear = library.make("xfp_linear_open", handle, ctypes.c_uint32(u), None)
        for expert in range(unit["experts"]):
            number = unit["first_matrix"] + expert
            w = bundle.matrix(number).astype(np.float64)
            for count in COUNTS if expert == 0 else COUNTS[:1]:
                x = random.standard_normal((count, unit["cols"])).astype("<f4")
                expected = x.astype(np.float64) @ w.T
                for name in sets:
                    library.library.xfp_use_instructions(name.encode())
                    y = multiply(library, team, linear, expert, x, unit["rows"])
                    most = bounds(bundle, number, w, x.astype(np.float64), name in ("avx2", "vbmi", "dotprod"),
                                  name == "vbmi" and count <= 2)
                    off = np.abs(y - expected) / np.maximum(most, 1e-30)
                    if not off.max() <= 1:
                        sys.exit(f"{path}: {unit['name']}, expert {expert}, {name}: {off.max()} times the bound")
                    nearest[name] = max(nearest[name], off.max())
                    products += count * unit["rows"]
        library.close("xfp_linear_close", linear)
    library.close("xfp_team_end", team)
    library.close("xfp_bundle_close", handle)
    print(f"{path}: {len(bundle.units)} units, {len(bundle.matrices)} matrices, {products} results; of the bound at most "
          + ", ".join(f"{part:.3f} ({name})" for name, part in nearest.items()))


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    library = Library(arguments[0])
    for path in arguments[1:]:
        check(library, path, library.sets())


if __name__ == "__main__":
    main(sys.argv[1:])

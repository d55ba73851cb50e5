# SPDX-License-Identifier: Apache-2.0
"""The seals of cache/seal.h, computed with libxxhash: for tests that write sealed data.

    seal.py PARAMETERS.json NAME VALUE   change a parameter of a work folder, and its seal
"""

import ctypes
import json
import struct
import sys

library = ctypes.CDLL("libxxhash.so.0")
library.XXH3_64bits.restype = ctypes.c_uint64
library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


library.XXH3_128bits.restype = Hash128
library.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh128(data):
    value = library.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", value.high, value.low)


def source(path, identity, region, digest):
    """The seal of a row of the manifest's table sources; `identity` is device, inode, size, mtime, ctime."""
    fields = b"".join(struct.pack("<q", field) for field in identity)
    return xxh128(xxh128(path.encode()) + xxh128(region.encode()) + fields + digest)


def seal(text):
    data = text.encode()
    return f"{library.XXH3_64bits(data, len(data)):016x}"


def event(*fields):
    line = "\t".join(str(field) for field in fields)
    return f"{line}\t{seal(line)}\n"


def stamp(name, key):
    return f"{key} {seal(f'{name} {key}')}\n"


def replace_parameter(path, name, value):
    """Change a parameter of a work folder, as if it had been a setting."""
    plain = open(path).read().split("\n", 1)[1].removesuffix("}\n")
    old = json.loads(plain)[name]
    plain = plain.replace(f'"{name}": {json.dumps(old)}', f'"{name}": {json.dumps(value)}')
    with open(path, "w") as out:
        out.write(f'{{"seal": "{seal(plain)}", "parameters":\n{plain}}}\n')


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    replace_parameter(*sys.argv[1:])

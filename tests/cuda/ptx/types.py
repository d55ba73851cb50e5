# SPDX-License-Identifier: Apache-2.0
"""PTX types as numpy types. A register is an array of unsigned integers of the declared width, one per lane; reads as
float or signed reinterpret the same bits."""
import numpy as np

BYTES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
         "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4,
         "b64": 8, "u64": 8, "s64": 8, "f64": 8}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
# bf16 has no numpy type, and pairs are bits until they are split.
NUMPY = {"pred": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64}
for _name, _bytes in BYTES.items():
    NUMPY.setdefault(_name, SIGNED[_bytes] if _name[0] == "s" else UNSIGNED[_bytes])


def is_type(name):
    return name in NUMPY


def unsigned(name):
    """The type of the bits of a value of this type."""
    return np.bool_ if name == "pred" else UNSIGNED[BYTES[name]]


def immediate(text, name):
    """A literal as a scalar of this type, or None if it is not one."""
    if text[:2] in ("0f", "0F"):
        value = np.uint32(int(text[2:], 16)).view(np.float32)
        return np.float64(value) if name == "f64" else value
    if text[:2] in ("0d", "0D"):
        value = np.uint64(int(text[2:], 16)).view(np.float64)
        return value.view(NUMPY[name]) if BYTES[name] == 8 else NUMPY[name](value)
    try:
        value = int(text.rstrip("U"), 0)
    except ValueError:
        try:
            value = int(text.rstrip("U"), 8)
        except ValueError:
            return None
    if name == "pred":
        return np.bool_(value)
    bits = 8 * BYTES[name]
    if name in ("f32", "f64"):
        return NUMPY[name](value)
    return UNSIGNED[BYTES[name]](value & ((1 << bits) - 1)).view(NUMPY[name])

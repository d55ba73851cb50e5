# SPDX-License-Identifier: Apache-2.0
"""The contents of a bundle: units, matrices, tensors and files, as immutable records.

Arrays in records are read-only, point into the mapped file, and keep it mapped.
"""
import os
from collections.abc import Iterator, Sequence
from ctypes import Structure, string_at
from dataclasses import dataclass, field, fields
from typing import Any, Callable, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from . import abi
from .handles import Handle, mapped

Record = TypeVar("Record")
Bytes = NDArray[np.uint8]
Digest = bytes

# numpy types of checkpoint elements; others are unsigned integers of their size, and those of 4 or 6 bits bytes.
ELEMENTS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2",
    "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8", "C64": "<c8",
}


class Table(Sequence[Record]):
    """The units, matrices, tensors or files of a bundle, by number; records are made when they are read."""

    def __init__(self, count: int, record: Callable[[int], Record]) -> None:
        self._count = count
        self._record = record

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Record: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Record]: ...

    def __getitem__(self, number: int | slice) -> Record | Sequence[Record]:
        if isinstance(number, slice):
            return [self._record(i) for i in range(*number.indices(self._count))]
        return self._record(range(self._count)[number])

    def __iter__(self) -> Iterator[Record]:
        return map(self._record, range(self._count))


@dataclass(frozen=True)
class Info:
    """A bundle: sizes and how it was made."""

    version: int  # of the format
    family: str  # model family, "qwen3_moe"
    json: str  # conversion parameters and algorithm versions
    file_bytes: int
    weights: int  # elements of all units
    path: str


@dataclass(frozen=True)
class Unit:
    """One matrix [rows, cols], or all experts of one projection in one layer."""

    name: str  # of the source tensor; for a stack of experts, * stands for the expert number
    role: str  # "q", "gate" ...: distinguishes the units of one fused tensor
    class_: str
    mode: str  # "keep", "fp8", "v2", "v2a" or "v2c"
    dtype: str  # of the source tensor
    k: int  # bits per index, the maximum over its matrices; 0 without a codebook
    met: bool  # whether the quality floor was met
    group_size: int  # v2a, v2c: columns per group; otherwise 0
    library_size: int  # v2a, v2c: codebooks in the library; otherwise 0
    experts: int  # matrices first_matrix ... first_matrix + experts - 1
    first_matrix: int
    rows: int  # of each matrix
    cols: int
    weights: int  # experts * rows * cols
    bytes: int  # stored bytes of all parts
    outliers: int
    cos_median: float  # median and 5th percentile of the per-row cosine to the source
    cos_p5: float
    error: float  # squared error / squared norm
    floor: float  # minimum median cosine that was requested


@dataclass(frozen=True)
class Matrix:
    """A matrix of a unit, and its stored parts, which xfp(5) describes; a part that it does not have is empty."""

    unit: int
    expert: int
    tensor: int  # source tensor, whose element base + r * row_stride + c * col_stride is (r, c)
    base: int
    row_stride: int
    col_stride: int
    rows: int
    cols: int
    k: int
    group_size: int
    library_size: int
    exponent: int  # s: weights are 2^-s times the stored entries
    outliers: int
    source: Digest  # XXH3-128 of the source rows
    index: Bytes = field(repr=False, compare=False)
    code: Bytes = field(repr=False, compare=False)
    group: Bytes = field(repr=False, compare=False)
    balance: Bytes = field(repr=False, compare=False)
    outlier: Bytes = field(repr=False, compare=False)


@dataclass(frozen=True)
class Tensor:
    """A tensor of the checkpoint, and its data if it was kept at source precision."""

    name: str
    reason: str  # for the fate
    class_: str
    dtype: str  # "BF16", "F32" ...
    fate: str  # "quantized", "kept", "tied" or "dropped"
    shape: tuple[int, ...]
    elements: int
    tied: int | None  # fate "tied": number of the identical tensor
    bytes: int
    source: Digest | None  # XXH3-128 of the data
    data: NDArray[Any] | None = field(repr=False, compare=False)  # in its shape (F4 and F6: bytes); or None


@dataclass(frozen=True)
class File:
    """A small file of the checkpoint."""

    name: str  # relative path, with / between folders
    data: Bytes = field(repr=False, compare=False)


def _plain(struct: Structure, kind: type[Any]) -> dict[str, Any]:
    """Members of a struct that are fields of a record, with text decoded."""
    values = {f.name: getattr(struct, f.name, None) for f in fields(kind)}
    return {name: value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
            for name, value in values.items()}


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")


def info(_: Handle, struct: abi.BundleInfo) -> Info:
    json = string_at(struct.json, struct.json_bytes).decode(errors="replace")
    return Info(**_plain(struct, Info) | {"json": json, "path": os.fsdecode(struct.path)})


def unit(_: Handle, struct: abi.UnitInfo) -> Unit:
    names = {"class_": _text(struct.class_name), "mode": _text(struct.mode_name), "dtype": _text(struct.dtype_name)}
    return Unit(**_plain(struct, Unit) | names)


def matrix(bundle: Handle, struct: abi.MatrixInfo) -> Matrix:
    parts = {part: mapped(bundle, getattr(struct, part), getattr(struct, part + "_bytes"))
             for part in ("index", "code", "group", "balance", "outlier")}
    return Matrix(**_plain(struct, Matrix) | parts | {"source": string_at(struct.source, 16)})


def tensor(bundle: Handle, struct: abi.TensorInfo) -> Tensor:
    dtype, shape, data = _text(struct.dtype_name), tuple(struct.shape[:struct.rank]), None
    if struct.data:
        data = mapped(bundle, struct.data, struct.bytes)
        if dtype in ELEMENTS or dtype.startswith("F8"):
            data = data.view(ELEMENTS.get(dtype, "u1")).reshape(shape)
    return Tensor(**_plain(struct, Tensor) | {
        "class_": _text(struct.class_name), "dtype": dtype, "fate": _text(struct.fate_name), "shape": shape,
        "tied": None if struct.tied == abi.NOT_FOUND else struct.tied, "data": data,
        "source": string_at(struct.source, 16) if struct.source else None,
    })


def file(bundle: Handle, struct: abi.FileInfo) -> File:
    return File(_text(struct.name), mapped(bundle, struct.data, struct.bytes))

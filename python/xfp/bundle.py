# SPDX-License-Identifier: Apache-2.0
"""An open bundle."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, TypeVar

import numpy as np

from . import abi, contents, library
from .contents import File, Info, Matrix, Table, Tensor, Unit
from .errors import UsageError
from .handles import Handle, refuse_pickle
from .linear import Linear, Source
from .vectors import FLOATS, empty_like, known_dtype, vectors

Range = slice
Record = TypeVar("Record")
NDArray = np.ndarray[Any, Any]


class Bundle:
    """A mapped .xfp file. Opening verifies its index, without reading weights; check() verifies the rest.

        with xfp.Bundle("model.xfp") as bundle:
            q = bundle.linear("model.layers.0.self_attn.q_proj.weight")
        y = q.multiply(x)       # the file stays mapped while something opened from it is alive

    A bundle, and everything opened from it, may be used by several threads at once. Like any mapped file, it must not
    be truncated or overwritten in place meanwhile.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a file.

        Raises BadInputError if it is missing, damaged, not a bundle, or of a version that this libxfp does not read;
        FailedError if it cannot be read or mapped; LibraryError if there is no libxfp.
        """
        self._name = name_of(path)
        self._library = library.load()
        self._numbers: dict[str, dict[str, int]] = {}
        self._bundle: Handle | None = Handle(self._library.xfp_bundle_open, self._library.xfp_bundle_close,
                                             os.fsencode(self._name))
        self._counts = abi.BundleInfo()
        self._library.xfp_bundle_describe(self._bundle.pointer, ctypes.byref(self._counts))

    __reduce_ex__ = refuse_pickle

    def __enter__(self) -> Bundle:
        self._handle()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<xfp.Bundle {self._name!r}{' (closed)' if self.closed else ''}>"

    def close(self) -> None:
        """Refuse further use. The file is unmapped when the last linear or array that uses it is gone."""
        self._bundle = None

    @property
    def closed(self) -> bool:
        """Whether close was called."""
        return self._bundle is None

    def _handle(self) -> Handle:
        handle = self._bundle
        if handle is None:
            raise UsageError(f"{self._name}: the bundle is closed; open it again")
        return handle

    # ---- contents

    @property
    def info(self) -> Info:
        """Sizes, the model family, and how the bundle was made."""
        return contents.info(self._handle(), self._counts)

    @property
    def units(self) -> Table[Unit]:
        """The units, by number."""
        return self._table(self._library.xfp_bundle_unit, self._counts.units, abi.UnitInfo, contents.unit)

    @property
    def matrices(self) -> Table[Matrix]:
        """The matrices of all units, by number."""
        return self._table(self._library.xfp_bundle_matrix, self._counts.matrices, abi.MatrixInfo, contents.matrix)

    @property
    def tensors(self) -> Table[Tensor]:
        """The tensors of the checkpoint, by number."""
        return self._table(self._library.xfp_bundle_tensor, self._counts.tensors, abi.TensorInfo, contents.tensor)

    @property
    def files(self) -> Table[File]:
        """The small files, by number."""
        return self._table(self._library.xfp_bundle_file, self._counts.files, abi.FileInfo, contents.file)

    def _table(self, function: Callable[..., bool], count: int, struct: type[ctypes.Structure],
               convert: Callable[[Handle, Any], Record]) -> Table[Record]:
        handle = self._handle()

        def record(number: int) -> Record:
            found = struct()
            function(handle.pointer, number, ctypes.byref(found))
            return convert(handle, found)

        return Table(count, record)

    def unit(self, name: str, role: str | None = None) -> Unit:
        """The unit of that name; the role may be left out if there is only one.

        Raises UsageError if it does not exist, or if the units of a fused tensor share the name.
        """
        return self.units[self._unit_number(name, role)]

    def tensor(self, name: str) -> Tensor:
        """The tensor of that name. Raises UsageError if it does not exist."""
        return self.tensors[self._number(self._library.xfp_bundle_find_tensor, name, "tensor")]

    def file(self, name: str) -> File:
        """The file of that name. Raises UsageError if it does not exist."""
        return self.files[self._number(self._library.xfp_bundle_find_file, name, "file")]

    def _number(self, find: Callable[..., int], name: str, what: str, all_kinds: str = "") -> int:
        bundle = self._handle()  # in a variable, so that it outlives the call
        number = find(bundle.pointer, library.c_string(name, f"the name of a {what}"))
        if number == abi.NOT_FOUND:
            raise UsageError(f"{self._name}: has no {all_kinds or what} {name}; bundle.{what}s lists them")
        return number

    def _roles(self, name: str) -> dict[str, int]:
        """Numbers of the units of that name, by role."""
        if not self._numbers:
            numbers: dict[str, dict[str, int]] = {}
            for number, unit in enumerate(self.units):
                numbers.setdefault(unit.name, {})[unit.role] = number
            self._numbers = numbers
        library.c_string(name, "the name of a unit or tensor")
        return self._numbers.get(name, {})

    def _unit_number(self, name: str, role: str | None) -> int:
        self._handle()
        roles = self._roles(name)
        if not roles:
            raise UsageError(f"{self._name}: has no unit {name}; bundle.units lists them")
        if role is not None:
            library.c_string(role, "a role")
        if role is None and len(roles) == 1:
            return next(iter(roles.values()))
        if role in roles:
            return roles[role]
        reason = "choose a role" if role is None else f"it has no role {role}"
        raise UsageError(f"{self._name}: the units of {name} are {', '.join(sorted(roles))}; {reason}")

    # ---- weights

    def linear(self, name: str, role: str | None = None, slice: Range | tuple[Range, ...] | None = None) -> Linear:
        """Open a matrix, or a stack of experts, to multiply by.

        name: of a unit; or of a two-dimensional tensor, such as a kept embedding or a tied output head.
        role: of the unit; needed if units of a fused tensor share the name.
        slice: rows of the output, and columns of the input, for tensor parallelism: numpy.s_[0:64] or
            numpy.s_[:, 512:1024].

        Raises UsageError if the name, role or slice does not exist, if the name is ambiguous, or if the tensor is not
        stored as one two-dimensional matrix; FailedError if memory ran out.
        """
        bundle = self._handle()
        shape: tuple[int, ...]
        matrices = range(0)
        if role is not None or self._roles(name):
            number = self._unit_number(name, role)
            unit = self.units[number]
            opening, role, shape = self._library.xfp_linear_open, unit.role, (unit.rows, unit.cols)
            matrices = range(unit.first_matrix, unit.first_matrix + unit.experts)
        else:
            number = self._number(self._library.xfp_bundle_find_tensor, name, "tensor", "unit or tensor")
            opening, shape = self._library.xfp_linear_open_tensor, self.tensors[number].shape
        part = None if slice is None else _to_slice(slice, shape, f"{self._name}: {name}")
        handle = Handle(opening, self._library.xfp_linear_close, bundle.pointer, number, part, needs=bundle)
        return Linear(handle, Source(bundle, not matrices, number, part, matrices), name, role)

    def dequantize(self, name: str, role: str | None = None, *, expert: int | None = None, rows: Range | None = None,
                   out: NDArray | None = None, dtype: str | None = None) -> NDArray:
        """Decode a matrix, in the range of the source weights, rounded to nearest. Returns [rows, cols].

        name, role: of a unit.
        expert: number of the matrix; needed for a stack.
        rows: which rows; by default all.
        out: a contiguous array [rows, cols]; by default a new one.
        dtype: "f32" (the default), "f16", which can overflow to infinity, or "bf16", which is uint16 in numpy.

        Raises UsageError if an argument is invalid, BadInputError if stored data is damaged.
        """
        bundle = self._handle()
        unit = self.unit(name, role)
        if expert is None and unit.experts > 1:
            raise UsageError(f"{self._name}: {name} has {unit.experts} experts; choose one")
        number = unit.first_matrix + library.below(unit.experts, expert or 0, f"{name}: expert")
        if not isinstance(rows, (Range, type(None))):
            raise UsageError(f"{self._name}: {name}: rows must be a slice such as numpy.s_[0:64], not {rows!r}; all "
                             "columns are decoded")
        part = _to_slice(rows or Range(None), (unit.rows, unit.cols), f"{self._name}: {name}")
        if out is None:
            dtype = known_dtype(dtype or "f32")
            out = empty_like(np.empty(0), (part.rows, unit.cols), dtype)
        found = vectors(out, "out", unit.cols, dtype, output=True)
        if found.count != part.rows or found.stride != unit.cols:
            raise UsageError(f"out must be contiguous, of shape {[part.rows, unit.cols]}, not {list(found.shape)} "
                             f"with a stride of {found.stride} elements")
        library.call(self._library.xfp_bundle_dequantize, bundle.pointer, number, part.first_row, part.rows,
                     FLOATS[found.dtype], found.address)
        return out

    def check(self, progress: Callable[[int, int], object] | None = None) -> None:
        """Verify every byte of the file, which reads all of it.

        progress: called with the bytes checked so far and in total; the check stops if it raises, and so does check.

        Raises BadInputError, which names the first damaged member.
        """
        bundle, info, done = self._handle(), abi.MemberInfo(), 0
        count, total = self._library.xfp_bundle_members(bundle.pointer), self._counts.file_bytes
        for number in range(count):
            # member by member: an exception in a callback of ctypes, such as Ctrl-C, would be printed and forgotten
            library.call(self._library.xfp_bundle_check_member, bundle.pointer, number)
            self._library.xfp_bundle_member(bundle.pointer, number, ctypes.byref(info))
            done = done + info.bytes if number < count - 1 else total  # with headers and padding
            if progress:
                progress(done, total)


def name_of(path: str | os.PathLike[str], what: str = "bundle") -> str:
    """A path as a str. Raises UsageError if it cannot name a file."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise UsageError(f"the path of a {what} must be a str or a path, not {type(path).__name__}") from None
    if "\0" in name:
        raise UsageError(f"the path of a {what} contains a NUL character: {name!r}")
    if not name:
        raise UsageError(f"the path of a {what} is empty")
    return name


def _to_slice(ranges: Range | tuple[Range, ...], shape: tuple[int, ...], what: str) -> abi.Slice:
    """Rows and columns as a struct; ranges outside of the shape are refused, not clipped."""
    parts = ranges if isinstance(ranges, tuple) else (ranges,)
    if len(parts) > 2 or len(shape) != 2 or not all(isinstance(part, Range) for part in parts):
        raise UsageError(f"{what}: a slice consists of rows and columns, numpy.s_[0:64, 0:128], not {ranges!r}")
    bounds = []
    for part, size, axis in zip((*parts, Range(None))[:2], shape, ("rows", "columns")):
        first = 0 if part.start is None else library.integer(part.start, f"{what}: the first of the {axis}")
        stop = size if part.stop is None else library.integer(part.stop, f"{what}: the end of the {axis}")
        if first < 0 or stop < 0:
            raise UsageError(f"{what}: has {size} {axis}; bounds of a slice must not be negative, unlike those of "
                             f"{part!r}")
        if part.step not in (None, 1) or not 0 <= first < stop <= size:
            raise UsageError(f"{what}: has {size} {axis}; the slice must be a part of them with step 1, not {part!r}")
        bounds += [first, stop - first]
    return abi.Slice(*bounds)

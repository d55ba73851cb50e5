# SPDX-License-Identifier: Apache-2.0
"""Products: y = W x, computed from the mapped bytes of a bundle."""
from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from . import abi, library
from .errors import UsageError
from .handles import Handle, refuse_pickle
from .team import Team, handle_of
from .vectors import (
    Array, Vectors, check_apart, empty_like, is_torch, known_dtype, refuse_mask, to_input, to_output, vectors,
    written,
)

if TYPE_CHECKING:
    import torch

NDArray = np.ndarray[Any, Any]

#: One term of a mixture-of-experts layer, y[.y] += weight * W[expert] x[.x]: an element of `products`.
PRODUCT = np.dtype([("expert", "<u4"), ("x", "<u4"), ("y", "<u4"), ("weight", "<f4")])


def products(expert: Any, x: Any, y: Any, weight: Any = 1.0) -> NDArray:
    """List products for Linear.multiply_experts: an array [count] of PRODUCT.

    expert, x, y, weight: numbers, or arrays that broadcast to one shape: numbers of the expert, the input vector and
    the output vector, and the factor. For tokens [t] with top-k experts [t, k]:

        gate, up:  products(experts, arange(t)[:, None], arange(t * k).reshape(t, k))
        down:      products(experts, arange(t * k).reshape(t, k), arange(t)[:, None], weights)

    Raises UsageError if a number is not an integer of 32 bits, or the shapes do not match.
    """
    numbers = [to_u32(value, what) for value, what in ((expert, "expert"), (x, "x"), (y, "y"))]
    weight = _to_host(weight.detach().float(), "weight") if is_torch(weight) else _to_host(weight, "weight")
    if weight.dtype.kind not in "fiub":
        raise UsageError(f"weight has dtype {weight.dtype}; it must contain real numbers")
    try:
        columns = np.broadcast_arrays(*numbers, weight.astype(np.float32))
    except ValueError as error:
        raise UsageError(f"expert, x, y and weight must have one shape: {error}") from None
    table = np.empty(columns[0].size, PRODUCT)
    for name, column in zip(("expert", "x", "y", "weight"), columns):
        table[name] = column.ravel()
    return table


def _to_host(numbers: Any, what: str) -> NDArray:
    """Numbers as an array of numpy, not copied if they are in a numpy array or a tensor."""
    refuse_mask(numbers, what)
    if is_torch(numbers) and numbers.device.type != "cpu":
        raise UsageError(f"{what} is on device {numbers.device}; pass {what}.cpu()")
    try:
        return np.asarray(numbers)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"{what} cannot be converted to an array of numbers: {error}") from None


def to_u32(numbers: Any, what: str) -> NDArray:
    """Numbers as uint32: four bytes each, which libxfp needs; arrays of another type are converted."""
    found = _to_host(numbers, what)
    if found.dtype.kind == "O" and all(isinstance(number, int) for number in found.flat):
        raise UsageError(f"{what} contains a number outside of 0 ... 2^32 - 2")
    if found.dtype.kind not in "iu" and found.size:
        raise UsageError(f"{what} has dtype {found.dtype}; it must contain integers")
    if found.size and not (0 <= int(found.min()) and int(found.max()) < abi.NOT_FOUND):
        raise UsageError(f"{what} contains a number outside of 0 ... 2^32 - 2, in {int(found.min())} ... "
                         f"{int(found.max())}")
    return np.asarray(found, np.uint32, order="C")


def _located(numbers: NDArray) -> Vectors:
    """A contiguous array, of elements of a multiple of four bytes, as one vector."""
    width = numbers.nbytes // 4
    return Vectors(int(numbers.ctypes.data), "f32", min(width, 1), width, width, numbers.shape)


class Source(NamedTuple):
    """Location of a linear in its bundle; for this package."""

    bundle: Handle
    tensor: bool  # whether `number` is that of a tensor, not of a unit
    number: int
    slice: abi.Slice | None
    matrices: range  # of a unit


class Linear:
    """A matrix W [rows, cols], or a stack of experts, opened from a bundle (Bundle.linear).

    It keeps the bundle mapped. Any number of threads may multiply by it at once, each with a team of its own; products
    of one team wait for each other.

    name, role: as in the bundle; role is None for a tensor that is not a unit.
    experts: number of matrices, 1 for a tensor.
    shape: (rows, cols) of each matrix, or of the slice.
    """

    def __init__(self, handle: Handle, source: Source, name: str, role: str | None) -> None:
        found = abi.LinearInfo()
        self._library = library.load()
        self._library.xfp_linear_describe(handle.pointer, ctypes.byref(found))
        self.handle, self.source = handle, source
        self.uploads: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by device, for torch
        self.number = 0  # by which operators of torch find it, if not 0
        self.name, self.role = name, role
        self.experts: int = found.experts
        self.shape: tuple[int, int] = (found.rows, found.cols)

    __reduce_ex__ = refuse_pickle

    def __copy__(self) -> Linear:
        return self

    def __deepcopy__(self, _: Any) -> Linear:
        return self

    def __repr__(self) -> str:
        role = f", {self.role!r}" if self.role else ""
        return f"<xfp.Linear {self.name!r}{role}: {self.experts} x {list(self.shape)}>"

    def multiply(self, x: Array, out: Array | None = None, *, expert: int = 0, dtype: str | None = None,
                 out_dtype: str | None = None, team: Team | None = None) -> Array:
        """Multiply vectors by one matrix: y[m] = W x[m]. Returns y.

        x: [cols] or [count, cols], f32, f16 or bf16: a numpy array or a CPU torch tensor. Elements of a vector are
            contiguous; vectors may have any stride of at least cols elements.
        out: y, [rows] or [count, rows], of the same kind and layout; may not overlap x. By default a new array.
        expert: number of the matrix in a stack.
        dtype, out_dtype: "bf16" says that a numpy array of uint16, x or out, contains bfloat16. out_dtype also is the
            type of a new array: "f32" by default, "f16" or "bf16".
        team: the threads; by default those of the process (set_threads).

        Raises UsageError if an argument is invalid or cannot be used in place, BadInputError if stored data is
        damaged, FailedError if memory ran out.
        """
        inputs = vectors(x, "x", self.shape[1], dtype)
        shape = inputs.shape[:-1] + self.shape[:1]
        y, outputs = self._output(x, out, shape, self.shape[0], out_dtype)
        if outputs.count != inputs.count:
            raise UsageError(f"out has {outputs.count} vectors, but x has {inputs.count}")
        check_apart(inputs, outputs)
        number = library.below(self.experts, expert, f"{self.name}: expert")
        threads = handle_of(team)
        library.call(self._library.xfp_multiply, threads.pointer, self.handle.pointer, number, inputs.count,
                     ctypes.byref(to_input(inputs)), ctypes.byref(to_output(outputs)))
        written(y)
        return y

    def multiply_experts(self, products: NDArray, x: Array, out: Array | None = None, *, dtype: str | None = None,
                         out_dtype: str | None = None, team: Team | None = None) -> Array:
        """Multiply vectors by the top-k experts of a stack, in one call. Returns y.

        Products with the same y are summed in f32, in the order of the list, and replace the previous contents of
        that y. A vector of `out` that no product names is unchanged; in a new array it is zero.

        products: a contiguous array [count] of PRODUCT (see the function products).
        x: [inputs, cols], as for multiply.
        out: [outputs, rows]. By default a new array, with as many vectors as the products name.
        dtype, out_dtype, team: as for multiply.

        Raises as multiply; UsageError also if a product names an expert or a vector that does not exist.
        """
        refuse_mask(products, "products")
        if not isinstance(products, np.ndarray) or products.dtype != PRODUCT or products.ndim != 1:
            raise UsageError("products must be an array [count] of xfp.PRODUCT; make it with xfp.products")
        if not products.flags.c_contiguous:
            raise UsageError("products is not contiguous; pass a copy of it")
        inputs = vectors(x, "x", self.shape[1], dtype)
        count = int(products["y"].max()) + 1 if out is None and len(products) else 0
        y, outputs = self._output(x, out, (count, self.shape[0]), self.shape[0], out_dtype, zero=True)
        check_apart(inputs, outputs)
        check_apart(_located(products), outputs, "products")
        threads = handle_of(team)
        library.call(self._library.xfp_multiply_experts, threads.pointer, self.handle.pointer, products.ctypes.data,
                     len(products), ctypes.byref(to_input(inputs)), ctypes.byref(to_output(outputs)))
        written(y)
        return y

    @overload
    def rows(self, ids: torch.Tensor, out: None = None, *, out_dtype: str | None = None) -> torch.Tensor: ...

    @overload
    def rows(self, ids: Any, out: None = None, *, out_dtype: str | None = None) -> NDArray: ...

    @overload
    def rows(self, ids: Any, out: Array, *, out_dtype: str | None = None) -> Array: ...

    def rows(self, ids: Any, out: Any = None, *, out_dtype: str | None = None) -> Any:
        """Copy rows of W, decoded: y[i] = W[ids[i]], the look-up of a token embedding. Returns y.

        ids: integers of any shape, such as [tokens]: rows of the slice; those of a stack are numbered through its
            experts. They are converted to uint32; weights and results are not copied.
        out: [number of ids, cols], or [cols] for one id. By default a new array of the kind of ids: torch for a tensor,
            otherwise numpy, with the shape of ids and then cols.
        out_dtype: as for multiply.

        Raises UsageError if a row does not exist or out cannot be used in place.
        """
        numbers = to_u32(ids, "ids")
        like = ids if is_torch(ids) else numbers
        y, outputs = self._output(like, out, (numbers.size, self.shape[1]), self.shape[1], out_dtype)
        if outputs.count != numbers.size:
            raise UsageError(f"out has {outputs.count} vectors, but there are {numbers.size} ids")
        check_apart(_located(numbers), outputs, "ids")
        library.call(self._library.xfp_rows, self.handle.pointer, numbers.ctypes.data, numbers.size,
                     ctypes.byref(to_output(outputs)))
        written(y)
        return y.reshape((*numbers.shape, self.shape[1])) if out is None else y

    @staticmethod
    def _output(like: Array, out: Array | None, shape: tuple[int, ...], width: int, dtype: str | None,
                zero: bool = False) -> tuple[Array, Vectors]:
        """The array of results, new or the caller's, and its vectors."""
        if out is None:
            dtype = known_dtype(dtype or "f32")
            out = empty_like(like, shape, dtype, zero)
        return out, vectors(out, "out", width, dtype, output=True)

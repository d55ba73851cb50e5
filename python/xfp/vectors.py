# SPDX-License-Identifier: Apache-2.0
"""Vectors in arrays of the caller, used in place: numpy arrays and torch tensors; on GPUs torch tensors, and arrays
with __cuda_array_interface__, such as those of CuPy.

libxfp expresses vectors of consecutive elements, each a fixed number of elements after the previous one. Any other
layout is refused, because a hidden copy would cost more than the product. numpy has no bfloat16: an array of uint16 and
dtype "bf16" stand for it.
"""
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import abi
from .errors import FailedError, UsageError

if TYPE_CHECKING:
    import torch

NDArray = np.ndarray[Any, Any]
Array = TypeVar("Array", np.ndarray[Any, Any], "torch.Tensor")

FLOATS = {"f32": abi.FLOAT["FLOAT32"], "f16": abi.FLOAT["FLOAT16"], "bf16": abi.FLOAT["BFLOAT16"]}
NUMPY: dict[str, np.dtype[Any]] = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "bf16": np.dtype("<u2")}
NUMPY_NAMES = {kind: name for name, kind in NUMPY.items()}
TORCH = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}


@dataclass
class Vectors:
    """Location of vectors: `count` of `width` elements, each `stride` elements after the previous one."""

    address: int
    dtype: str
    count: int
    width: int
    stride: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return 4 if self.dtype == "f32" else 2

    @property
    def end(self) -> int:
        """Address after the last of one or more vectors."""
        return self.address + ((self.count - 1) * self.stride + self.width) * self.size


def known_dtype(dtype: str) -> str:
    if not isinstance(dtype, str) or dtype not in FLOATS:
        raise UsageError(f'unknown dtype {dtype!r}; the dtypes are "f32", "f16" and "bf16"')
    return dtype


Described = tuple[int, str, tuple[int, ...], tuple[int, ...]]  # address, dtype, shape, strides in elements


def _describe_numpy(kind: np.dtype[Any], address: int, shape: tuple[int, ...], strides: tuple[int, ...], what: str,
                    dtype: str | None) -> Described:
    found = NUMPY_NAMES.get(kind)
    if found is None or found == "bf16" and dtype is None:
        raise UsageError(f'{what} has dtype {kind}; use float32, float16, or uint16 with dtype="bf16"')
    size = kind.itemsize
    if any(stride % size for stride in strides) or address % size:
        raise UsageError(f"{what} is not aligned to its elements of {size} bytes; pass a copy of it")
    return address, found, shape, tuple(stride // size for stride in strides)


def _describe_torch(array: Any, what: str, torch: Any, device: str) -> Described:
    found = next((name for name, kind in TORCH.items() if getattr(torch, kind) == array.dtype), None)
    if found is None:
        raise UsageError(f"{what} has dtype {array.dtype}; use torch.float32, torch.float16 or torch.bfloat16")
    if str(array.device) != device:
        reason = f"the weights are on {device}: pass {what}.to({device!r})"
        raise UsageError(f"{what} is on device {array.device}; " +
                         (f"libxfp multiplies on the CPU: pass {what}.cpu()" if device == "cpu" else reason))
    if array.layout != torch.strided:
        raise UsageError(f"{what} has layout {array.layout}; pass {what}.to_dense()")
    if array.is_neg():
        raise UsageError(f"{what} has torch's negative bit; pass {what}.resolve_neg()")
    if array.requires_grad and torch.is_grad_enabled():
        raise UsageError(f"{what} requires a gradient, and xfp computes none; "
                         f"pass {what}.detach(), or use torch.no_grad()")
    return array.data_ptr(), found, tuple(array.shape), tuple(array.stride())


def is_torch(array: object) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def refuse_mask(array: object, what: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise UsageError(f"{what} is masked; pass {what}.filled(), with the value that replaces masked elements")


def vectors(array: Any, what: str, width: int, dtype: str | None, output: bool = False, device: str = "cpu") -> Vectors:
    """Locate vectors of `width` elements in an array [width] or [count, width].

    dtype: "bf16" for numpy arrays of uint16; otherwise None, or the array's own.
    device: "cpu", or "cuda:0" and so on.

    Raises UsageError, which names the array by `what`, if libxfp cannot use it in place.
    """
    interface = array if device == "cpu" else getattr(array, "__cuda_array_interface__", None)
    writeable = True
    if is_torch(array):
        address, found, shape, strides = _describe_torch(array, what, sys.modules["torch"], device)
    elif isinstance(interface, np.ndarray):
        refuse_mask(array, what)
        address, found, shape, strides = _describe_numpy(array.dtype, int(array.ctypes.data), array.shape,
                                                         array.strides, what, dtype)
        writeable = array.flags.writeable
    elif isinstance(interface, dict):
        if interface.get("mask") is not None:
            raise UsageError(f"{what} has a mask; pass an array without one")
        kind, shape = np.dtype(interface["typestr"]), interface["shape"]
        strides = interface.get("strides") or tuple(kind.itemsize * math.prod(shape[i + 1:]) for i in range(len(shape)))
        address, found, shape, strides = _describe_numpy(kind, interface["data"][0], shape, strides, what, dtype)
        writeable = not interface["data"][1]
    else:
        raise UsageError(f"{what} is a {type(array).__name__}; pass " + (
            "a numpy array or a torch tensor" if device == "cpu" else
            f"an array on {device}: a torch tensor, or one with __cuda_array_interface__"))
    if output and not writeable:
        raise UsageError(f"{what} is read-only; pass an array that can be written")
    if dtype is not None and found != known_dtype(dtype):
        raise UsageError(f"{what} has elements of {found}, not {dtype}")
    if len(shape) not in (1, 2) or shape[-1] != width:
        raise UsageError(f"{what} has shape {list(shape)}; it must be [{width}] or [count, {width}]")
    count = shape[0] if len(shape) == 2 else 1
    if width > 1 and count and strides[-1] != 1:
        raise UsageError(f"{what} has a stride of {strides[-1]} between the elements of a vector; it must be 1: "
                         "pass a contiguous copy")
    stride = strides[0] if len(shape) == 2 and count > 1 else width
    if stride < width:
        raise UsageError(f"{what} has a stride of {stride} elements between vectors of {width}; pass a contiguous copy")
    return Vectors(address, found, count, width, stride, shape)


def check_apart(x: Vectors, y: Vectors, what: str = "x") -> None:
    """Refuse overlapping inputs and outputs. Columns of one array, such as a[:, :64] and a[:, 64:], do not overlap."""
    if not x.count or not y.count or x.address >= y.end or y.address >= x.end:
        return
    steps = {one.stride * one.size for one in (x, y) if one.count > 1}
    if len(steps) == 1:
        step = steps.pop()
        between = (y.address - x.address) % step
        if between >= x.width * x.size and between + y.width * y.size <= step:
            return
    raise UsageError(f"out overlaps {what}; pass another array")


def written(array: Any) -> None:
    """Report to torch's autograd that an array has changed, which refuses to use it for a gradient then."""
    if is_torch(array):
        sys.modules["torch"].autograd.graph.increment_version(array)


def empty_like(array: Array, shape: tuple[int, ...], dtype: str, zero: bool = False) -> Array:
    """A new array of the kind of `array`, contiguous; bf16 in numpy is uint16."""
    try:
        if isinstance(array, np.ndarray):
            return np.zeros(shape, NUMPY[dtype]) if zero else np.empty(shape, NUMPY[dtype])
        kind = getattr(sys.modules["torch"], TORCH[dtype])
        return array.new_zeros(shape, dtype=kind) if zero else array.new_empty(shape, dtype=kind)
    except (MemoryError, ValueError, RuntimeError) as error:  # numpy raises ValueError for more than the address space
        raise FailedError(f"no memory for an array of shape {list(shape)}: {error}") from None


def to_input(x: Vectors) -> abi.Input:
    return abi.Input(x.address, FLOATS[x.dtype], x.count, x.stride)


def to_output(y: Vectors) -> abi.Output:
    return abi.Output(y.address, FLOATS[y.dtype], y.count, y.stride)

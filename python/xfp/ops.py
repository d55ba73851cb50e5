# SPDX-License-Identifier: Apache-2.0
"""Operators of torch: products and look-ups by matrices of open bundles.

    xfp::linear(Tensor x, int[] weights, int rows) -> Tensor
        y[..., rows] = W x[..., cols]; the outputs of several matrices are next to each other.
    xfp::experts(Tensor x, Tensor expert, Tensor? factor, int[] weights, int rows) -> Tensor
        For tokens [t] with experts [t, k]: x is [t, cols], or [t * k, cols] with an input for each expert. Without
        factors [t, k], the output is [t * k, rows]; with them, the weighted sums [t, rows].
    xfp::rows(Tensor ids, int weights, int cols, ScalarType dtype) -> Tensor
        y[..., cols] = W[ids[...]].

`weights` are numbers that `register` returned. Kernels are registered directly, without torch.library.custom_op, which
costs more than most products. They run on torch.get_num_threads() threads of the default team; if that is one, on the
calling thread, so that several Python threads multiply at the same time.
"""
from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, Sequence

import numpy as np
import torch

from . import abi, library
from .errors import CLASSES, FailedError, UsageError
from .handles import ProcessHandle
from .linear import PRODUCT, Linear, to_u32
from .team import handle_of, set_threads

FLOATS = {torch.float32: abi.FLOAT["FLOAT32"], torch.float16: abi.FLOAT["FLOAT16"],
          torch.bfloat16: abi.FLOAT["BFLOAT16"]}

_library = library.load()
_open: weakref.WeakValueDictionary[int, Linear] = weakref.WeakValueDictionary()
_threads = 0


class _Arguments(threading.local):
    """Structs of a call, which each thread fills in again and again."""

    def __init__(self) -> None:
        self.x, self.y, self.error = abi.Input(), abi.Output(), abi.Error()
        self.references = ctypes.byref(self.x), ctypes.byref(self.y), ctypes.byref(self.error)


_arguments = _Arguments()


def register(linear: Linear) -> int:
    """Number by which operators find a linear, as long as the caller keeps it."""
    number = id(linear)
    _open[number] = linear
    return number


def _find(number: int) -> Linear:
    linear = _open.get(number)
    if linear is None:
        raise UsageError(f"there are no open weights {number}; keep what xfp.ops.register was called with")
    return linear


def _team() -> ProcessHandle | None:
    global _threads
    threads = torch.get_num_threads()
    if threads == 1:
        return None
    if threads != _threads:
        set_threads(threads)
        _threads = threads
    return handle_of(None)


def _check(status: int, error: abi.Error) -> None:
    if status:
        raise CLASSES.get(status, FailedError)(error.text.decode(errors="replace"))


def _type_of(x: torch.Tensor, dtype: torch.dtype) -> int:
    found = FLOATS.get(dtype)
    if found is None:
        raise UsageError(f"xfp does not multiply {x.dtype}; use torch.float32, torch.float16 or torch.bfloat16")
    return found


def _fill(linear: Linear, x: torch.Tensor, y: torch.Tensor, kind: int, at: int, width: int) -> tuple[Any, Any, Any]:
    """Arguments of a product of contiguous vectors, whose outputs begin at element `at` of vectors of `width`."""
    cols = linear.shape[1]
    if x.shape[-1] != cols:
        raise UsageError(f"{linear.name} has {cols} columns, but x has shape {list(x.shape)}")
    arguments = _arguments
    inputs, outputs = arguments.x, arguments.y
    inputs.data, inputs.type, inputs.count, inputs.stride = x.data_ptr(), kind, x.numel() // cols, cols
    outputs.data = y.data_ptr() + at * y.element_size()
    outputs.type, outputs.count, outputs.stride = kind, y.numel() // width, width
    return arguments.references


def _linear(x: torch.Tensor, weights: Sequence[int], rows: int) -> torch.Tensor:
    x = x.contiguous()
    kind, at = _type_of(x, x.dtype), 0
    y = x.new_empty((*x.shape[:-1], rows))
    team = _team()
    threads = team and team.pointer
    for number in weights:
        linear = _find(number)
        inputs, outputs, error = _fill(linear, x, y, kind, at, rows)
        _check(_library.xfp_multiply(threads, linear.handle.pointer, 0, _arguments.x.count, inputs, outputs, error),
               _arguments.error)
        at += linear.shape[0]
    return y


def _experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[int],
             rows: int) -> torch.Tensor:
    x = x.contiguous()
    (tokens, k), kind, at = expert.shape, _type_of(x, x.dtype), 0
    slots = np.arange(tokens * k, dtype=np.uint32)
    owners = slots if k == 1 else slots // k
    if len(x) not in (tokens, tokens * k):
        raise UsageError(f"there are {len(x)} inputs for {tokens} tokens with {k} experts each")
    products = np.empty(len(slots), PRODUCT)
    products["expert"] = to_u32(expert.reshape(-1).numpy(), "expert")
    products["x"] = owners if len(x) == tokens else slots
    products["y"] = slots if factor is None else owners
    products["weight"] = 1 if factor is None else factor.reshape(-1).float().numpy()
    y = x.new_empty((tokens * k if factor is None else tokens, rows))
    team = _team()
    threads = team and team.pointer
    for number in weights:
        linear = _find(number)
        inputs, outputs, error = _fill(linear, x, y, kind, at, rows)
        _check(_library.xfp_multiply_experts(threads, linear.handle.pointer, products.ctypes.data, len(products),
                                             inputs, outputs, error), _arguments.error)
        at += linear.shape[0]
    return y


def _rows(ids: torch.Tensor, weights: int, cols: int, dtype: torch.dtype) -> torch.Tensor:
    linear, numbers = _find(weights), to_u32(ids.numpy(), "ids")
    y = ids.new_empty((*ids.shape, cols), dtype=dtype)
    arguments = _arguments
    outputs = arguments.y
    outputs.data, outputs.type, outputs.count, outputs.stride = y.data_ptr(), _type_of(y, dtype), numbers.size, cols
    if linear.shape[1] != cols:
        raise UsageError(f"{linear.name} has {linear.shape[1]} columns, not {cols}")
    _check(_library.xfp_rows(linear.handle.pointer, numbers.ctypes.data, numbers.size, *arguments.references[1:]),
           arguments.error)
    return y


def _linear_shape(x: torch.Tensor, weights: Sequence[int], rows: int) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], rows))


def _experts_shape(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[int],
                   rows: int) -> torch.Tensor:
    return x.new_empty((expert.shape[0] * expert.shape[1] if factor is None else expert.shape[0], rows))


def _rows_shape(ids: torch.Tensor, weights: int, cols: int, dtype: torch.dtype) -> torch.Tensor:
    return ids.new_empty((*ids.shape, cols), dtype=dtype)


class _NoGradient(torch.autograd.Function):
    """The outputs of a product, whose backward pass is refused."""

    @staticmethod
    def forward(ctx: Any, name: str, *arguments: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return getattr(torch.ops.xfp, name).default(*arguments)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise UsageError("products by packed weights have no gradient; use torch.no_grad(), or train the original "
                         "model")


def _on_cuda(*arguments: Any) -> Any:
    raise UsageError("xfp multiplies tensors on the CPU; move the model and its inputs there: model.to('cpu')")


def _define(name: str, schema: str, kernel: Any, fake: Any) -> None:
    def with_autograd(*arguments: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in arguments):
            return _NoGradient.apply(name, *arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)

    _definitions.define(f"{name}{schema}")
    operator = getattr(torch.ops.xfp, name).default
    _definitions.impl(name, kernel, "CPU")
    _definitions.impl(name, _on_cuda, "CUDA")
    _definitions.impl(name, with_autograd, "Autograd")
    torch.library.register_fake(f"xfp::{name}", fake, lib=_definitions)


_definitions = torch.library.Library("xfp", "DEF")
_define("linear", "(Tensor x, int[] weights, int rows) -> Tensor", _linear, _linear_shape)
_define("experts", "(Tensor x, Tensor expert, Tensor? factor, int[] weights, int rows) -> Tensor", _experts,
        _experts_shape)
_define("rows", "(Tensor ids, int weights, int cols, ScalarType dtype) -> Tensor", _rows, _rows_shape)

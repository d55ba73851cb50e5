# SPDX-License-Identifier: Apache-2.0
"""Operators of torch: products and look-ups by matrices of open bundles.

    xfp::linear(Tensor x, Tensor weights, int rows) -> Tensor
        y[..., rows] = W x[..., cols]; the outputs of several matrices are next to each other.
    xfp::experts(Tensor x, Tensor expert, Tensor? factor, Tensor weights, int rows) -> Tensor
        For tokens [t] with experts [t, k]: x is [t, cols], or [t * k, cols] with an input for each expert. Without
        factors [t, k], the output is [t * k, rows]; with them, the weighted sums [t, rows].
    xfp::rows(Tensor ids, Tensor weights, int cols, ScalarType dtype) -> Tensor
        y[..., cols] = W[ids[...]].

`weights` are numbers that `register` returned, in a tensor on the CPU: torch.compile would compile a graph for each
number that is a Python integer. On CUDA, matrices must be there (`upload`), products are launched on torch's current
stream, with memory of torch's allocator, and products by experts that do not exist are skipped. Rows are looked up on
the host, which waits for their numbers. A graph of products can be captured after a first product on its stream.

Kernels are registered directly, without torch.library.custom_op, which costs more than most products. On the CPU they
run on torch.get_num_threads() threads of a team for that number, whatever xfp.set_threads says; if that is one, on the
calling thread, so that several Python threads multiply at the same time.

The threads of torch spin for milliseconds after each operator that uses them, such as attention, and take processors
from the team. So while a model processes a few tokens of a short context, torch itself runs on one thread.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import os
import secrets
import struct
import threading
import weakref
from typing import Any, Sequence, cast

import numpy as np
import torch
from torch.autograd import forward_ad

from . import abi, library
from .cuda import Device, DeviceLinear, Queue
from .errors import UsageError
from .handles import ProcessHandle
from .linear import PRODUCT, Linear, to_u32
from .team import Team

FLOATS = {torch.float32: abi.FLOAT["FLOAT32"], torch.float16: abi.FLOAT["FLOAT16"],
          torch.bfloat16: abi.FLOAT["BFLOAT16"]}

FEW_TOKENS = 8
SHORT_CONTEXT = 2048  # tokens in the KV cache, of all sequences: beyond, attention needs more threads

_library = library.load()
_open: weakref.WeakValueDictionary[int, Linear] = weakref.WeakValueDictionary()
_numbers = itertools.count(secrets.randbits(62))  # so that a graph saved by another process finds none of its numbers
_teams: dict[int, Team] = {}  # by their number of threads
os.register_at_fork(after_in_child=_teams.clear)
_devices: dict[int, Device] = {}
_queues: dict[tuple[int, int], Queue] = {}
_opening = threading.Lock()
_vectors = struct.Struct("@PiNNPiNN")  # struct xfp_input and struct xfp_output
# Unlike torch.set_num_threads, these affect only the calling thread. MKL does not follow OpenMP's number; 0 resets it.
_torch = ctypes.CDLL(torch._C.__file__)
_set_openmp_threads: Any = getattr(_torch, "omp_set_num_threads", None)
_set_mkl_threads: Any = getattr(_torch, "MKL_Set_Num_Threads_Local", int)


class _Arguments:
    """Structs of a call."""

    def __init__(self) -> None:
        self.vectors, self.error = bytearray(_vectors.size), abi.Error()
        x = abi.Input.from_buffer(self.vectors)
        y = abi.Output.from_buffer(self.vectors, ctypes.sizeof(x))
        self.references = ctypes.byref(x), ctypes.byref(y), ctypes.byref(self.error)


class _Thread(threading.local):
    threads = 0  # of torch outside the model's forward, if torch runs on one thread in it


_thread = _Thread()
# A signal handler or a finalizer can multiply while its thread prepares a product, so a call removes its structs.
_unused: list[_Arguments] = []


def register(*linears: Linear) -> torch.Tensor:
    """Numbers [n] by which operators find linears, as long as the caller keeps these. No number is used twice."""
    for linear in linears:
        linear.number = linear.number or next(_numbers)
        _open[linear.number] = linear
    return torch.tensor([linear.number for linear in linears], dtype=torch.int64, device="cpu")


def _find(weights: torch.Tensor) -> list[Linear]:
    try:
        return [_open[number] for number in weights.tolist()]
    except KeyError as error:
        raise UsageError(f"there are no open weights {error}; keep what xfp.ops.register was called with") from None
    except TypeError:
        raise UsageError(f"weights has shape {list(weights.shape)}; it must be [matrices]") from None


def _team() -> ProcessHandle | None:
    threads = _thread.threads or torch.get_num_threads()
    if threads == 1:
        return None
    team = _teams.get(threads)
    if team is None:
        team = _teams.setdefault(threads, Team(threads))
    return team.handle()


def _before_forward(_: Any, args: tuple[Any, ...], inputs: dict[str, Any]) -> None:
    if torch.compiler.is_compiling() or torch.get_num_threads() == 1:
        return
    ids = inputs.get("input_ids", args[0] if args else None)
    if not isinstance(ids, torch.Tensor) or ids.numel() > FEW_TOKENS:
        return
    cache = inputs.get("cache", inputs.get("past_key_values"))  # the newer name, the older one
    length = getattr(cache, "get_seq_length", int)
    try:
        short = len(ids) * length() <= SHORT_CONTEXT
    except ValueError:  # no layer has a length
        short = True
    if short:
        _thread.threads = torch.get_num_threads()
        _set_openmp_threads(1)
        _set_mkl_threads(1)


def _after_forward(*_: Any) -> None:
    if not torch.compiler.is_compiling() and _thread.threads:
        _set_openmp_threads(_thread.threads)
        _set_mkl_threads(0)
        _thread.threads = 0


def share_processors(model: torch.nn.Module) -> None:
    """Run torch on one thread while a model processes few tokens."""
    if _set_openmp_threads is None:
        return
    model.register_forward_pre_hook(_before_forward, with_kwargs=True)
    model.register_forward_hook(_after_forward, always_call=True)


def _type_of(x: torch.Tensor, dtype: torch.dtype) -> int:
    found = FLOATS.get(dtype)
    if found is None:
        raise UsageError(f"xfp does not multiply {x.dtype}; use torch.float32, torch.float16 or torch.bfloat16")
    return found


def _check_rows(weights: Sequence[Any], rows: int) -> None:
    total = 0
    for linear in weights:
        total += linear.shape[0]
    if total != rows:
        raise UsageError(f"the weights have {total} rows, but rows is {rows}")


def _check_single(linear: Linear | DeviceLinear) -> None:
    if linear.experts != 1:
        raise UsageError(f"{linear.name} is a stack of {linear.experts} experts; use xfp::experts")


def _check_experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None) -> tuple[int, int]:
    """Number of tokens, and of experts for each."""
    if expert.dim() != 2 or x.dim() != 2 or factor is not None and factor.shape != expert.shape:
        raise UsageError("x, expert and factor must be [inputs, cols], [tokens, k] and [tokens, k], not " +
                         ", ".join(str([*each.shape]) for each in (x, expert, factor) if each is not None))
    _check_integers(expert, "expert")
    tokens, k = expert.shape
    if len(x) not in (tokens, tokens * k):
        raise UsageError(f"there are {len(x)} inputs for {tokens} tokens with {k} experts each")
    return tokens, k


def _check_integers(numbers: torch.Tensor, what: str) -> None:
    if numbers.dtype.is_floating_point or numbers.dtype.is_complex or numbers.dtype == torch.bool:
        raise UsageError(f"{what} has dtype {numbers.dtype}; it must contain integers")


def _call(function: Any, threads: Any, linear: Linear, first: Any, count: int, x: torch.Tensor, y: torch.Tensor,
          kind: int, at: int) -> None:
    """Call xfp_multiply or xfp_multiply_experts by contiguous vectors; outputs begin at element `at` of those of y."""
    cols, width = linear.shape[1], y.shape[-1]
    if not x.dim() or x.shape[-1] != cols:
        raise UsageError(f"{linear.name} has {cols} columns, but x has shape {list(x.shape)}")
    try:
        arguments = _unused.pop()
    except IndexError:
        arguments = _Arguments()
    _vectors.pack_into(arguments.vectors, 0, x.data_ptr(), kind, x.numel() // cols, cols,
                       y.data_ptr() + at * y.element_size(), kind, y.numel() // width, width)
    status = function(threads, linear.handle.pointer, first, count, *arguments.references)
    if status:
        library.raise_for(status, arguments.error)
    _unused.append(arguments)


def _plain(x: torch.Tensor) -> bool:
    """Whether a call of an operator by this tensor would do nothing but call the kernel for the CPU."""
    return (not torch.compiler.is_compiling() and type(x) is torch.Tensor and x.is_cpu
            and not (x.requires_grad and torch.is_grad_enabled()) and not torch._C._len_torch_dispatch_stack()
            and torch._C._functorch.peek_interpreter_stack() is None and forward_ad._current_level < 0)


def linear(x: torch.Tensor, weights: Sequence[Linear], numbers: torch.Tensor, rows: int) -> torch.Tensor:
    """The operator xfp::linear, but without torch's dispatcher if it would only call the kernel.

    A product streams its weights through the caches, and whatever runs next is read from memory again: in a model of
    a billion weights, a call through the dispatcher costs 65 us on top of its product, this one 20.
    """
    if _plain(x):
        return _multiply(x, weights, rows)
    y: torch.Tensor = torch.ops.xfp.linear.default(x, numbers, rows)
    return y


def _linear(x: torch.Tensor, weights: torch.Tensor, rows: int) -> torch.Tensor:
    return _multiply(x, _find(weights), rows)


def _multiply(x: torch.Tensor, weights: Sequence[Linear], rows: int) -> torch.Tensor:
    _check_rows(weights, rows)
    x = x.contiguous()
    kind, at, count = _type_of(x, x.dtype), 0, x.shape[:-1].numel()
    y = x.new_empty((*x.shape[:-1], rows))
    team = _team()
    threads = team and team.pointer
    for linear in weights:
        _check_single(linear)
        _call(_library.xfp_multiply, threads, linear, 0, count, x, y, kind, at)
        at += linear.shape[0]
    return y


def experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[Linear],
            numbers: torch.Tensor, rows: int) -> torch.Tensor:
    """The operator xfp::experts, as `linear` is xfp::linear."""
    if _plain(x) and (factor is None or not factor.requires_grad):
        return _multiply_experts(x, expert, factor, weights, rows)
    y: torch.Tensor = torch.ops.xfp.experts.default(x, expert, factor, numbers, rows)
    return y


def _experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: torch.Tensor,
             rows: int) -> torch.Tensor:
    return _multiply_experts(x, expert, factor, _find(weights), rows)


def _multiply_experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[Linear],
                      rows: int) -> torch.Tensor:
    _check_rows(weights, rows)
    tokens, k = _check_experts(x, expert, factor)
    x = x.contiguous()
    kind, at = _type_of(x, x.dtype), 0
    slots = np.arange(tokens * k, dtype=np.uint32)
    owners = slots if k == 1 else slots // max(k, 1)
    products = np.empty(len(slots), PRODUCT)
    products["expert"] = to_u32(expert.reshape(-1).numpy(), "expert")
    products["x"] = owners if len(x) == tokens else slots
    products["y"] = slots if factor is None else owners
    products["weight"] = 1 if factor is None else factor.reshape(-1).float().numpy()
    shape = tokens * k if factor is None else tokens, rows
    y = x.new_empty(shape) if k else x.new_zeros(shape)
    team = _team()
    threads = team and team.pointer
    for linear in weights:
        _call(_library.xfp_multiply_experts, threads, linear, products.ctypes.data, len(products), x, y, kind, at)
        at += linear.shape[0]
    return y


def _rows(ids: torch.Tensor, weights: torch.Tensor, cols: int, dtype: torch.dtype) -> torch.Tensor:
    linears = _find(weights)
    if len(linears) != 1 or linears[0].shape[1] != cols:
        raise UsageError(f"weights must be one matrix with {cols} columns, not {linears}")
    _check_integers(ids, "ids")
    numbers = to_u32(ids.numpy(), "ids")
    y = ids.new_empty((*ids.shape, cols), dtype=dtype)
    outputs = abi.Output(y.data_ptr(), _type_of(y, dtype), numbers.size, cols)
    library.call(_library.xfp_rows, linears[0].handle.pointer, numbers.ctypes.data, numbers.size, ctypes.byref(outputs))
    return y


# ---- CUDA


def _queue(device: torch.device) -> Queue:
    """Torch's current stream and allocator."""
    stream: int = torch.cuda.current_stream(device).cuda_stream
    key = device.index, stream
    if key not in _queues:
        with _opening:
            if device.index not in _devices:
                _devices[device.index] = Device(device.index)
            if key not in _queues:
                allocate = functools.partial(torch.empty, dtype=torch.uint8, device=device)
                _queues[key] = Queue(_devices[device.index], allocate, stream)
    return _queues[key]


def device_of(place: Any) -> torch.device:
    """The device of a name, if xfp can multiply there.

    Raises UsageError if it cannot, or torch finds no CUDA; LibraryError if libxfp-cuda is missing.
    """
    try:
        device = torch.device(place)
    except (RuntimeError, TypeError):
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"the device is {str(place)!r}, but xfp multiplies on the CPU or on one CUDA device; pass "
                         '"cpu" or "cuda"')
    if device.type == "cuda":
        library.load_cuda()
        if not torch.cuda.is_available():
            raise UsageError(f"torch {torch.__version__} finds no CUDA device; install torch for CUDA and the NVIDIA "
                             'driver, or pass "cpu"')
    return device


def upload(linear: Linear, device: torch.device) -> DeviceLinear:
    """Weights of a linear on a CUDA device, which are there as long as a caller keeps them.

    Raises as DeviceLinear and Device; torch.OutOfMemoryError if memory ran out.
    """
    found: DeviceLinear | None = linear.uploads.get(device.index)
    if found is None:
        found = linear.uploads[device.index] = DeviceLinear(linear, _queue(device))
    return found


def _on(device: torch.device, weights: torch.Tensor, rows: int) -> list[DeviceLinear]:
    linears = _find(weights)
    found: list[DeviceLinear | None] = [linear.uploads.get(device.index) for linear in linears]
    if None in found:
        raise UsageError(f"{linears[found.index(None)].name}: the weights are not on {device}; move the model there: "
                         f"model.to({str(device)!r})")
    _check_rows(found, rows)
    return cast("list[DeviceLinear]", found)


def _linear_cuda(x: torch.Tensor, weights: torch.Tensor, rows: int) -> torch.Tensor:
    linears = _on(x.device, weights, rows)
    y, queue, at = x.new_empty((*x.shape[:-1], rows)), _queue(x.device), 0
    inputs, outputs = x.contiguous().view(-1, *x.shape[-1:]), y.view(-1, rows)
    for linear in linears:
        _check_single(linear)
        linear.multiply(inputs, outputs[:, at: at + linear.shape[0]], queue)
        at += linear.shape[0]
    return y


def _experts_cuda(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: torch.Tensor,
                  rows: int) -> torch.Tensor:
    linears = _on(x.device, weights, rows)
    (tokens, k), queue, at = _check_experts(x, expert, factor), _queue(x.device), 0
    slots = torch.arange(tokens * k, dtype=torch.int32, device=x.device)
    owners, numbers = slots // max(k, 1), expert.reshape(-1).int()
    sources, targets = owners if len(x) == tokens else slots, slots if factor is None else owners
    scale = torch.ones_like(numbers, dtype=torch.float32) if factor is None else factor.reshape(-1).float()
    products = torch.stack((numbers, sources, targets, scale.view(torch.int32)), 1).view(torch.float32)
    x, y = x.contiguous(), x.new_zeros((tokens * k if factor is None else tokens, rows))
    for linear in linears:
        part = y[:, at: at + linear.shape[0]]
        if linear.listed:
            linear.multiply_experts(products, x, part, queue)
        else:
            each = _one_by_one(linear, x[sources], numbers, queue)
            part.copy_(each if factor is None else (each * scale[:, None]).view(tokens, k, -1).sum(1))
        at += linear.shape[0]
    return y


def _one_by_one(linear: DeviceLinear, x: torch.Tensor, expert: torch.Tensor, queue: Queue) -> torch.Tensor:
    """Products of x[i] by expert[i] in f32, an expert at a time; the host waits for their numbers."""
    order, at = expert.argsort(), 0
    x, y = x[order], x.new_empty((len(x), linear.shape[0]), dtype=torch.float32)
    for number, count in enumerate(expert.bincount().cpu().tolist()):
        if count:
            linear.multiply(x[at: at + count], y[at: at + count], queue, expert=number)
        at += count
    return y[order.argsort()]


def _rows_cuda(ids: torch.Tensor, weights: torch.Tensor, cols: int, dtype: torch.dtype) -> torch.Tensor:
    return ids.new_empty((*ids.shape, cols), dtype=dtype).copy_(_rows(ids.cpu(), weights, cols, dtype))


# ---- shapes, gradients


def _linear_shape(x: torch.Tensor, weights: torch.Tensor, rows: int) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], rows))


def _experts_shape(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: torch.Tensor,
                   rows: int) -> torch.Tensor:
    return x.new_empty((expert.shape[0] * expert.shape[1] if factor is None else expert.shape[0], rows))


def _rows_shape(ids: torch.Tensor, weights: torch.Tensor, cols: int, dtype: torch.dtype) -> torch.Tensor:
    return ids.new_empty((*ids.shape, cols), dtype=dtype)


NO_GRADIENT = "products by packed weights have no gradient; use torch.no_grad(), or train the original model"


class _NoGradient(torch.autograd.Function):
    """A product without a backward pass."""

    @staticmethod
    def forward(ctx: Any, name: str, *arguments: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return getattr(torch.ops.xfp, name).default(*arguments)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise UsageError(NO_GRADIENT)


def _define(name: str, schema: str, kernel: Any, on_cuda: Any, fake: Any) -> None:
    def with_autograd(*arguments: Any) -> Any:
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
        if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors):
            raise UsageError(NO_GRADIENT)
        if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
            if torch._C._functorch.peek_interpreter_stack() is not None:  # torch.func.grad takes no such function
                raise UsageError(NO_GRADIENT)
            return _NoGradient.apply(name, *arguments)
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)

    _definitions.define(f"{name}{schema}")
    operator = getattr(torch.ops.xfp, name).default
    _definitions.impl(name, kernel, "CPU")
    _definitions.impl(name, on_cuda, "CUDA")
    _definitions.impl(name, with_autograd, "Autograd")
    torch.library.register_fake(f"xfp::{name}", fake, lib=_definitions)


_definitions = torch.library.Library("xfp", "DEF")
_define("linear", "(Tensor x, Tensor weights, int rows) -> Tensor", _linear, _linear_cuda, _linear_shape)
_define("experts", "(Tensor x, Tensor expert, Tensor? factor, Tensor weights, int rows) -> Tensor", _experts,
        _experts_cuda, _experts_shape)
_define("rows", "(Tensor ids, Tensor weights, int cols, ScalarType dtype) -> Tensor", _rows, _rows_cuda, _rows_shape)

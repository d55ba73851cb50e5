# SPDX-License-Identifier: Apache-2.0
"""Operators of torch: products and look-ups by matrices of open bundles.

    xfp::linear(Tensor x, int[] weights, int rows) -> Tensor
        y[..., rows] = W x[..., cols]; the outputs of several matrices are next to each other.
    xfp::experts(Tensor x, Tensor expert, Tensor? factor, int[] weights, int rows) -> Tensor
        For tokens [t] with experts [t, k]: x is [t, cols], or [t * k, cols] with an input for each expert. Without
        factors [t, k], the output is [t * k, rows]; with them, the weighted sums [t, rows].
    xfp::rows(Tensor ids, int weights, int cols, ScalarType dtype) -> Tensor
        y[..., cols] = W[ids[...]].

`weights` are numbers that `register` returned. On CUDA, matrices must be there (`upload`), products are launched on
torch's current stream, with memory of torch's allocator, and products by experts that do not exist are skipped. Rows
are looked up on the host, which waits for their numbers. A graph of products can be captured after a first product on
its stream.

Kernels are registered directly, without torch.library.custom_op, which costs more than most products. On the CPU they
run on torch.get_num_threads() threads of the default team; if that is one, on the calling thread, so that several
Python threads multiply at the same time.

The threads of torch spin for milliseconds after each operator that uses them, such as attention, and take processors
from the team. So while a model processes a few tokens of a short context, torch itself runs on one thread.
"""
from __future__ import annotations

import ctypes
import functools
import struct
import threading
import weakref
from typing import Any, Sequence

import numpy as np
import torch

from . import abi, library
from .cuda import Device, DeviceLinear, Queue
from .errors import CLASSES, FailedError, UsageError
from .handles import ProcessHandle
from .linear import PRODUCT, Linear, to_u32
from .team import handle_of, set_threads

FLOATS = {torch.float32: abi.FLOAT["FLOAT32"], torch.float16: abi.FLOAT["FLOAT16"],
          torch.bfloat16: abi.FLOAT["BFLOAT16"]}

FEW_TOKENS = 8
SHORT_CONTEXT = 2048  # tokens in the KV cache, of all sequences: beyond, attention needs more threads

_library = library.load()
_open: weakref.WeakValueDictionary[int, Linear] = weakref.WeakValueDictionary()
_threads = 0
_devices: dict[int, Device] = {}
_queues: dict[tuple[int, int], Queue] = {}
_opening = threading.Lock()
_vectors = struct.Struct("@PiNNPiNN")  # struct xfp_input and struct xfp_output
# Unlike torch.set_num_threads, these affect only the calling thread. MKL does not follow OpenMP's number; 0 resets it.
_torch = ctypes.CDLL(torch._C.__file__)
_set_openmp_threads: Any = getattr(_torch, "omp_set_num_threads", None)
_set_mkl_threads: Any = getattr(_torch, "MKL_Set_Num_Threads_Local", int)


class _Arguments(threading.local):
    """Structs of a call, which each thread fills in again and again."""

    def __init__(self) -> None:
        self.vectors, self.error = bytearray(_vectors.size), abi.Error()
        self.x = abi.Input.from_buffer(self.vectors)
        self.y = abi.Output.from_buffer(self.vectors, ctypes.sizeof(self.x))
        self.references = ctypes.byref(self.x), ctypes.byref(self.y), ctypes.byref(self.error)
        self.threads = 0  # of torch outside the model's forward, if torch runs on one thread in it


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
    threads = _arguments.threads or torch.get_num_threads()
    if threads == 1:
        return None
    if threads != _threads:
        set_threads(threads)
        _threads = threads
    return handle_of(None)


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
        _arguments.threads = torch.get_num_threads()
        _set_openmp_threads(1)
        _set_mkl_threads(1)


def _after_forward(*_: Any) -> None:
    if not torch.compiler.is_compiling() and _arguments.threads:
        _set_openmp_threads(_arguments.threads)
        _set_mkl_threads(0)
        _arguments.threads = 0


def share_processors(model: torch.nn.Module) -> None:
    """Run torch on one thread while a model processes few tokens."""
    if _set_openmp_threads is None:
        return
    model.register_forward_pre_hook(_before_forward, with_kwargs=True)
    model.register_forward_hook(_after_forward, always_call=True)


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
    _vectors.pack_into(arguments.vectors, 0, x.data_ptr(), kind, x.numel() // cols, cols,
                       y.data_ptr() + at * y.element_size(), kind, y.numel() // width, width)
    return arguments.references


def _plain(x: torch.Tensor) -> bool:
    """Whether a call of an operator by this tensor would do nothing but call the kernel for the CPU."""
    return (not torch.compiler.is_compiling() and type(x) is torch.Tensor and x.is_cpu
            and not (x.requires_grad and torch.is_grad_enabled()) and not torch._C._len_torch_dispatch_stack()
            and torch._C._functorch.peek_interpreter_stack() is None)


def linear(x: torch.Tensor, weights: Sequence[Linear], numbers: Sequence[int], rows: int) -> torch.Tensor:
    """The operator xfp::linear, but without torch's dispatcher if it would only call the kernel.

    A product streams its weights through the caches, and whatever runs next is read from memory again: in a model of
    a billion weights, a call through the dispatcher costs 65 us on top of its product, this one 20.
    """
    if _plain(x):
        return _multiply(x, weights, rows)
    y: torch.Tensor = torch.ops.xfp.linear.default(x, numbers, rows)
    return y


def _linear(x: torch.Tensor, weights: Sequence[int], rows: int) -> torch.Tensor:
    return _multiply(x, [_find(number) for number in weights], rows)


def _multiply(x: torch.Tensor, weights: Sequence[Linear], rows: int) -> torch.Tensor:
    x = x.contiguous()
    kind, at, count = _type_of(x, x.dtype), 0, x.numel() // (x.shape[-1] or 1)
    y = x.new_empty((*x.shape[:-1], rows))
    team = _team()
    threads = team and team.pointer
    for linear in weights:
        inputs, outputs, error = _fill(linear, x, y, kind, at, rows)
        status = _library.xfp_multiply(threads, linear.handle.pointer, 0, count, inputs, outputs, error)
        if status:
            _check(status, _arguments.error)
        at += linear.shape[0]
    return y


def experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[Linear],
            numbers: Sequence[int], rows: int) -> torch.Tensor:
    """The operator xfp::experts, as `linear` is xfp::linear."""
    if _plain(x) and (factor is None or not factor.requires_grad):
        return _multiply_experts(x, expert, factor, weights, rows)
    y: torch.Tensor = torch.ops.xfp.experts.default(x, expert, factor, numbers, rows)
    return y


def _experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[int],
             rows: int) -> torch.Tensor:
    return _multiply_experts(x, expert, factor, [_find(number) for number in weights], rows)


def _multiply_experts(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[Linear],
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
    for linear in weights:
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


def _on(device: torch.device, number: int) -> DeviceLinear:
    linear = _find(number)
    found: DeviceLinear | None = linear.uploads.get(device.index)
    if found is None:
        raise UsageError(f"{linear.name}: the weights are not on {device}; move the model there: "
                         f"model.to({str(device)!r})")
    return found


def _linear_cuda(x: torch.Tensor, weights: Sequence[int], rows: int) -> torch.Tensor:
    y, queue, at = x.new_empty((*x.shape[:-1], rows)), _queue(x.device), 0
    inputs, outputs = x.contiguous().view(-1, x.shape[-1]), y.view(-1, rows)
    for number in weights:
        linear = _on(x.device, number)
        linear.multiply(inputs, outputs[:, at: at + linear.shape[0]], queue)
        at += linear.shape[0]
    return y


def _experts_cuda(x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None, weights: Sequence[int],
                  rows: int) -> torch.Tensor:
    (tokens, k), queue, at = expert.shape, _queue(x.device), 0
    if len(x) not in (tokens, tokens * k):
        raise UsageError(f"there are {len(x)} inputs for {tokens} tokens with {k} experts each")
    slots = torch.arange(tokens * k, dtype=torch.int32, device=x.device)
    owners, numbers = slots // k, expert.reshape(-1).int()
    sources, targets = owners if len(x) == tokens else slots, slots if factor is None else owners
    scale = torch.ones_like(numbers, dtype=torch.float32) if factor is None else factor.reshape(-1).float()
    products = torch.stack((numbers, sources, targets, scale.view(torch.int32)), 1).view(torch.float32)
    x, y = x.contiguous(), x.new_zeros((tokens * k if factor is None else tokens, rows))
    for number in weights:
        linear = _on(x.device, number)
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


def _rows_cuda(ids: torch.Tensor, weights: int, cols: int, dtype: torch.dtype) -> torch.Tensor:
    return ids.new_empty((*ids.shape, cols), dtype=dtype).copy_(_rows(ids.cpu(), weights, cols, dtype))


# ---- shapes, gradients


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


def _define(name: str, schema: str, kernel: Any, on_cuda: Any, fake: Any) -> None:
    def with_autograd(*arguments: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in arguments):
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
_define("linear", "(Tensor x, int[] weights, int rows) -> Tensor", _linear, _linear_cuda, _linear_shape)
_define("experts", "(Tensor x, Tensor expert, Tensor? factor, int[] weights, int rows) -> Tensor", _experts,
        _experts_cuda, _experts_shape)
_define("rows", "(Tensor ids, int weights, int cols, ScalarType dtype) -> Tensor", _rows, _rows_cuda, _rows_shape)

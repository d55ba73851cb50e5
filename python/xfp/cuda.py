# SPDX-License-Identifier: Apache-2.0
"""Products on NVIDIA GPUs, by libxfp-cuda.

    device = xfp.cuda.Device(0)
    queue = xfp.cuda.Queue(device, allocate, stream)
    with xfp.Bundle("model.xfp") as bundle:
        q = xfp.cuda.DeviceLinear(bundle.linear("model.layers.0.self_attn.q_proj.weight"), queue)
    q.multiply(x, y, queue)     # y[m] = W x[m]: launched on the stream

x and y are arrays in the device's memory, used in place: torch tensors, or objects with __cuda_array_interface__, such
as arrays of CuPy and Numba. Memory and streams are the caller's:

allocate: called with a number of bytes; returns device memory at a multiple of 256 bytes, as an object with data_ptr()
    or __cuda_array_interface__ that frees it when it is garbage-collected. Scratch memory is dropped while launches
    may still use it. So freed memory may be reused only by later work of the same stream, as the allocators of torch
    and CuPy do, or only after the device is done, as with cuMemFree.
stream: a CUstream or cudaStream_t as an integer; 0 is the default stream. Streams are not ordered among each other.

Everything is launched in the primary context of the device, which torch, CuPy and the CUDA runtime use, too; it is made
current for each call, on any thread. Errors on the device are reported by the next call of the driver. The tests run
this module on a stand-in for the driver, with kernels in an emulator; tests/on-device runs it on a GPU, with torch.
"""
from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import dataclass
from typing import Any, Callable

from . import abi, library, linear
from .errors import FailedError, UsageError
from .handles import ProcessHandle
from .vectors import FLOATS, Vectors, is_torch, vectors, written

Allocate = Callable[[int], Any]
DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


@functools.cache
def _driver() -> ctypes.CDLL | None:
    """The driver, to make contexts current; or None if it is missing or too old, which xfp_cuda_open reports."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuDevicePrimaryCtxRelease_v2  # the newest call used here
        return None if driver.cuInit(0) else driver
    except (OSError, AttributeError):
        return None


class _Context:
    """The primary context of a device: `with` makes it current on this thread."""

    def __init__(self, index: int) -> None:
        self.index, self.pid, self._pointer, self._device = index, os.getpid(), ctypes.c_void_p(), ctypes.c_int()
        self._driver, count = _driver(), ctypes.c_int()
        if self._driver and not self._driver.cuDeviceGetCount(ctypes.byref(count)) and count.value:
            library.below(count.value, index, "the CUDA device")
            self._call("cuDeviceGet", ctypes.byref(self._device), index)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._pointer), self._device)

    def _call(self, name: str, *arguments: Any) -> None:
        result = getattr(self._driver, name)(*arguments)
        if result:
            raise FailedError(f"CUDA device {self.index}: {name} failed with error {result} of the CUDA driver")

    def __enter__(self) -> None:
        if self.pid != os.getpid():
            raise UsageError("the CUDA device was opened before fork, and a child process cannot use it; start "
                             "processes with the method spawn")
        if self._pointer:
            self._call("cuCtxPushCurrent_v2", self._pointer)

    def __exit__(self, *_: object) -> None:
        if self._pointer:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) and self._driver and self.pid == os.getpid():
            self._driver.cuDevicePrimaryCtxRelease_v2(self._device)

    def check(self, address: int, what: str) -> None:
        """Refuse memory of the host and of other devices."""
        device = ctypes.c_int()
        assert self._driver
        if self._driver.cuPointerGetAttribute(ctypes.byref(device), DEVICE_ORDINAL, ctypes.c_uint64(address)):
            raise UsageError(f"{what} is at {address:#x}, which is not memory of a CUDA device")
        if device.value != self.index:
            raise UsageError(f"{what} is on cuda:{device.value}; the weights are on cuda:{self.index}: copy it there")


class Device:
    """A GPU with the kernels of libxfp-cuda, which are loaded once; usable by any thread.

    index: number of the device, among those that CUDA_VISIBLE_DEVICES names.
    name, capability: "NVIDIA H200", (9, 0).
    """

    def __init__(self, index: int = 0) -> None:
        """Load the kernels.

        Raises LibraryError if libxfp-cuda is missing; UsageError if there is no such device; FailedError if the driver
        is missing or too old, if no device is found, if it is older than compute capability 8.0, or if memory ran out.
        """
        self._library = library.load_cuda()
        self.context = _Context(index)
        self.index, self.torch_name = index, f"cuda:{index}"
        with self.context:
            self._handle: ProcessHandle | None = ProcessHandle(
                self._library.xfp_cuda_open, self._library.xfp_cuda_close, needs=self.context)
        found = abi.CudaInfo()
        self._library.xfp_cuda_describe(self._handle.pointer, ctypes.byref(found))
        self.name: str = found.device.decode(errors="replace")
        self.capability: tuple[int, int] = (found.major, found.minor)

    def __repr__(self) -> str:
        return f"<xfp.cuda.Device {self.index}: {self.name}>"

    def close(self) -> None:
        """Refuse further use. The kernels are unloaded when the last weights on the device are gone."""
        self._handle = None

    def handle(self) -> ProcessHandle:
        """For this package: the handle."""
        if self._handle is None:
            raise UsageError(f"CUDA device {self.index} is closed; open it again")
        return self._handle


class Queue:
    """A stream of a device, its allocator, and a workspace of 4 MiB for partial sums.

    Any thread may use it. It must outlive graphs that contain its launches.
    """

    def __init__(self, device: Device, allocate: Allocate, stream: int = 0) -> None:
        """Allocate and clear the workspace; the stream must not be capturing a graph.

        Raises UsageError if it is, or if the memory is not 4 MiB of this device; FailedError if the driver failed.
        """
        self.device, self.allocate, self.stream = device, allocate, stream
        self.struct = abi.CudaQueue()
        handle = device.handle()
        with device.context:
            self._workspace = allocate(abi.CUDA_WORKSPACE)
            library.call(library.load_cuda().xfp_cuda_queue_open, handle.pointer, stream, _address(self._workspace),
                         abi.CUDA_WORKSPACE, ctypes.byref(self.struct))


@dataclass
class Prepared:
    """Vectors in the layout of the kernels, for every linear with the same columns and balance."""

    struct: abi.CudaPrepared
    memory: Any


class DeviceLinear:
    """A matrix W [rows, cols], or a stack of experts, in the memory of a device.

    It does not need the bundle, which may be closed. Any thread may use it, with any queue of the device.

    name, role, experts, shape: as in Linear.
    bytes: device memory.
    kernel: name of the kernel that multiplies one vector.
    listed: whether multiply_experts works: the indices of all experts have the same number of bits.
    """

    def __init__(self, source: linear.Linear, queue: Queue) -> None:
        """Upload a linear, with its slice. The copies are complete on return.

        Raises UsageError if the memory is too small, misaligned or not of this device, or the stream is capturing;
        BadInputError if stored data is damaged; FailedError if the driver failed, or memory ran out.
        """
        self._library, device = library.load_cuda(), queue.device
        self.name, self.role, self.experts, self.shape = source.name, source.role, source.experts, source.shape
        bundle, tensor, *part, matrices = source.source
        suffix, size, found = "_tensor" if tensor else "", ctypes.c_uint64(), abi.CudaLinearInfo()
        library.call(getattr(self._library, f"xfp_cuda_linear_bytes{suffix}"), bundle.pointer, *part,
                     ctypes.byref(size))
        opened = device.handle()
        with device.context:
            memory = queue.allocate(size.value)
            self._handle: ProcessHandle | None = ProcessHandle(
                getattr(self._library, f"xfp_cuda_linear_open{suffix}"), self._library.xfp_cuda_linear_close,
                opened.pointer, bundle.pointer, *part, _address(memory), size, queue.stream, needs=(opened, memory))
        self.device = device
        self._library.xfp_cuda_linear_describe(self._handle.pointer, ctypes.byref(found))
        matrix = abi.MatrixInfo()
        self.listed = len({matrix.k for number in matrices if library.load().xfp_bundle_matrix(
            bundle.pointer, number, ctypes.byref(matrix))}) <= 1
        self.bytes: int = found.bytes
        self.kernel: str = found.kernel.decode()

    def __repr__(self) -> str:
        return f"<xfp.cuda.DeviceLinear {self.name!r} on {self.device.torch_name}: {self.experts} x {list(self.shape)}>"

    def close(self) -> None:
        """Drop the device memory; launches that use it must be earlier on the stream that allocated it, or finished."""
        self._handle = None

    def prepare(self, x: Any, queue: Queue, *, dtype: str | None = None) -> Prepared:
        """Convert vectors once, to multiply them by several linears, such as q, k and v. Returns them.

        x: [cols] or [count, cols] on the device, f32, f16 or bf16; it may be changed after that on the stream. Elements
            of a vector are contiguous; vectors may have any stride of at least cols elements.
        dtype: "bf16" says that x, with elements of uint16, contains bfloat16.

        Raises UsageError if the array cannot be used in place or is not on the device; FailedError if the driver
        failed.
        """
        inputs = self._vectors(x, "x", self.shape[1], dtype)
        handle = self._opened(queue)
        with self.device.context:
            size = self._library.xfp_cuda_prepared_bytes(handle.pointer, inputs.count)
            prepared = Prepared(abi.CudaPrepared(), queue.allocate(max(size, 1)))
            library.call(self._library.xfp_cuda_prepare, handle.pointer,
                         abi.CudaInput(inputs.address, FLOATS[inputs.dtype], inputs.count, inputs.stride),
                         _address(prepared.memory), size, ctypes.byref(queue.struct), ctypes.byref(prepared.struct))
        return prepared

    def multiply(self, x: Any, out: Any, queue: Queue, *, expert: int = 0, dtype: str | None = None,
                 out_dtype: str | None = None) -> Any:
        """Launch y[m] = W x[m]. Returns out.

        x: vectors as for prepare, or prepared ones.
        out: y, [rows] or [count, rows] on the device, with the layouts of x; it may overlap x.
        expert: number of the matrix in a stack.
        dtype, out_dtype: "bf16" says that elements of uint16, in x or out, are bfloat16.

        Raises UsageError as prepare, or if the prepared vectors do not fit W; FailedError if the driver failed.
        """
        x = x if isinstance(x, Prepared) else self.prepare(x, queue, dtype=dtype)
        outputs = self._vectors(out, "out", self.shape[0], out_dtype, output=True)
        if outputs.count != x.struct.count:
            raise UsageError(f"out has {outputs.count} vectors, but x has {x.struct.count}")
        number = library.below(self.experts, expert, f"{self.name}: expert")
        return self._launch("xfp_cuda_multiply", number, outputs.count, x, outputs, queue, out)

    def multiply_experts(self, products: Any, x: Any, out: Any, queue: Queue, *, dtype: str | None = None,
                         out_dtype: str | None = None) -> Any:
        """Launch the products of a list, as Linear.multiply_experts. Returns out.

        The list is read when the kernel runs: products whose expert or vector does not exist are skipped. Vectors of
        out that no product names are unchanged.

        products: on the device, contiguous, [count, 4] of f32: products(...).view(numpy.float32).reshape(-1, 4).
        x, out, dtype, out_dtype: as for multiply; out is [outputs, rows].

        Raises as multiply; UsageError also if not `listed`: multiply by one expert at a time.
        """
        found = self._vectors(products, "products", 4, "f32")
        if found.stride != 4:
            raise UsageError("products is not contiguous; pass a copy of it")
        x = x if isinstance(x, Prepared) else self.prepare(x, queue, dtype=dtype)
        outputs = self._vectors(out, "out", self.shape[0], out_dtype, output=True)
        return self._launch("xfp_cuda_multiply_experts", found.address, found.count, x, outputs, queue, out)

    def _launch(self, name: str, first: int, count: int, x: Prepared, y: Vectors, queue: Queue, out: Any) -> Any:
        handle = self._opened(queue)
        with self.device.context:
            library.call(getattr(self._library, name), handle.pointer, first, count, ctypes.byref(x.struct),
                         abi.CudaOutput(y.address, FLOATS[y.dtype], y.count, y.stride), ctypes.byref(queue.struct))
        written(out)
        return out

    def _opened(self, queue: Queue) -> ProcessHandle:
        if self._handle is None:
            raise UsageError(f"{self.name}: the weights were closed; upload them again")
        if queue.device is not self.device:
            raise UsageError(f"{self.name}: the weights are on {self.device.torch_name}, but the queue is not of that "
                             "device")
        return self._handle

    def _vectors(self, array: Any, what: str, width: int, dtype: str | None, output: bool = False) -> Vectors:
        found = vectors(array, what, width, dtype, output, self.device.torch_name)
        if found.count and not is_torch(array):
            self.device.context.check(found.address, what)
        return found


def _address(memory: Any) -> int:
    """Address of what an allocator returned."""
    address: int = memory.data_ptr() if hasattr(memory, "data_ptr") else memory.__cuda_array_interface__["data"][0]
    return address

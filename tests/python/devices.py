#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Products of xfp.cuda on the stand-in driver, whose kernels run in an emulator (tests/cuda/driver.c).

Arrays are in the stand-in's memory, so the package must not read or write them on the host. Results are compared with
decoded weights, within the bound of xfp_cuda.h, and with libxfp on the CPU.
"""
import ctypes
import os
import unittest

import numpy as np
from common import DOWN, GATE, HEAD, Q, WORDS, Case, bundle, from_bf16, path_of, random, run, to_bf16
from read_bundle import BALANCE, NONE, Bundle as Reader, quarter_octaves
from stand_in import Memory, driver

import xfp
from xfp.cuda import Device, DeviceLinear, Queue

def allocate(size):
    return Memory(device.context, size)


class Array:
    """An array on the device, as CuPy has them; `change` replaces entries of the interface."""

    def __init__(self, array, **change):
        self.like = np.ascontiguousarray(array)
        self.memory = allocate(self.like.nbytes)
        self.memory.write(self.like.ctypes.data, self.like.nbytes)
        self.__cuda_array_interface__ = {"shape": self.like.shape, "typestr": self.like.dtype.str, "strides": None,
                                         "data": (self.memory.data_ptr(), False), "version": 3} | change

    def numpy(self):
        found = np.empty_like(self.like)
        self.memory.read(found.ctypes.data, found.nbytes)
        return found


def empty(*shape, dtype=np.float32):
    return Array(np.full(shape, 7, dtype))


def bounds(reader, number, w, x, integers):
    """[vectors, rows]: the bound of xfp_cuda.h; `integers`: whether the product may use the integer path."""
    matrix = reader.matrices[number]
    unit, cols, k = reader.units[matrix["unit"]], w.shape[1], matrix["k"]
    down = np.ones(cols)
    if unit[f"part{BALANCE}"] != NONE:
        down = quarter_octaves(np.frombuffer(reader.part_bytes(reader.parts[unit[f"part{BALANCE}"]]), "u1"))
    x, w, most = np.abs(x), np.abs(w), np.abs(x * down)
    found = (cols / 4 + 64) * 2.0**-24 * (x @ w.T) + cols * 2.0**-40 * np.outer(most.max(1), (w / down).max(1))
    if integers and k in (2, 3, 4):
        found += np.outer(most.sum(1) * 2.0**(-14 if k == 4 else -16) + 2.0**-21 * cols * most.max(1),
                          reader.largest(number))
    return found


class Devices(Case):
    def upload(self, name, role=None, file="auto.xfp", **options):
        with bundle(file) as opened:
            return DeviceLinear(opened.linear(name, role, **options), queue)

    def within(self, y, x, reader, number, integers, rounding=0.0):
        w = reader.matrix(number).astype(np.float64)
        x, expected = x.astype(np.float64), x.astype(np.float64) @ w.T
        most = bounds(reader, number, w, x, integers) + rounding * np.abs(expected)
        self.assertLessEqual(np.max(np.abs(y - expected) / np.maximum(most, 1e-30)), 1)

    def test_every_unit(self):
        for name in ("v2.xfp", "v2a.xfp", "auto.xfp"):
            reader = Reader(path_of(name))
            for number, unit in enumerate(bundle(name).units):
                linear = self.upload(unit.name, unit.role, name)
                self.assertEqual((linear.name, linear.experts, linear.shape),
                                 (unit.name, unit.experts, (unit.rows, unit.cols)))
                count = (2, 5)[number % 2]
                x, y = random(count, unit.cols), empty(count, unit.rows)
                expert = number % unit.experts
                self.assertIs(linear.multiply(Array(x), y, queue, expert=expert), y)
                self.within(y.numpy(), x, reader, unit.first_matrix + expert, count <= 4)

    def test_kept_tensors_slices_and_one_vector(self):
        x = random(3, 64)
        with bundle("kept.xfp") as opened:
            for name, part in ((HEAD, None), (WORDS, np.s_[5:40, 8:56])):
                host = opened.linear(name, slice=part)
                linear, cut = DeviceLinear(host, queue), np.ascontiguousarray(x[:, :host.shape[1]])
                self.assertEqual(linear.shape, host.shape)
                y = linear.multiply(Array(cut), empty(3, host.shape[0]), queue).numpy()
                self.assertLess(np.abs(y - host.multiply(cut)).max(), 1e-5)
                one = linear.multiply(Array(cut[1]), empty(host.shape[0]), queue)
                self.assertLess(np.abs(one.numpy() - y[1]).max(), 1e-5)

    def test_sixteen_bits(self):
        q, reader, number = self.upload(Q), Reader(path_of("auto.xfp")), bundle().unit(Q).first_matrix
        x = random(5, q.shape[1])
        half, short = x.astype(np.float16), to_bf16(x)
        y = q.multiply(Array(half), empty(5, q.shape[0], dtype=np.float16), queue).numpy()
        self.within(y, half, reader, number, False, 2.0**-11)
        y = q.multiply(Array(short), empty(5, q.shape[0], dtype=np.uint16), queue, dtype="bf16", out_dtype="bf16")
        self.within(from_bf16(y.numpy()), from_bf16(short), reader, number, False, 2.0**-8)

    def test_strides_in_place(self):
        q = self.upload(Q)
        x, y = random(3, 100), np.full((3, 200), 7, np.float32)
        xs, ys = Array(x, shape=(3, 64), strides=(400, 4)), Array(y, shape=(3, q.shape[0]), strides=(800, 4))
        found = q.multiply(xs, ys, queue).numpy()
        expected = q.multiply(Array(x[:, :64]), empty(3, q.shape[0]), queue).numpy()
        self.assertEqual(found[:, :q.shape[0]].tobytes(), expected.tobytes())
        self.assertTrue((found[:, q.shape[0]:] == 7).all())
        self.assertEqual(q.multiply(Array(x[:0, :64]), empty(0, q.shape[0]), queue).numpy().size, 0)

    def test_prepared_once(self):
        gate, x = self.upload(GATE), Array(random(2, 64))
        prepared = gate.prepare(x, queue)
        for expert in (0, 1):
            once = gate.multiply(prepared, empty(2, gate.shape[0]), queue, expert=expert).numpy()
            again = gate.multiply(x, empty(2, gate.shape[0]), queue, expert=expert).numpy()
            self.assertEqual(once.tobytes(), again.tobytes())
        part = self.upload(Q, slice=np.s_[:, 8:48])
        self.refused("prepared for other columns", part.multiply, prepared, empty(2, part.shape[0]), queue)

    def test_experts(self):
        for name in ("auto.xfp", "v2a.xfp"):
            down = self.upload(DOWN, file=name)
            host = bundle(name).linear(DOWN)
            products = xfp.products([2, 0, 1, 9, 2], [0, 1, 1, 0, 2], [0, 0, 2, 1, 2], [.5, -2, 1, 1, .25])
            x, y = random(3, down.shape[1]), empty(4, down.shape[0])
            listed = Array(products.view(np.float32).reshape(-1, 4))
            self.assertIs(down.multiply_experts(listed, Array(x), y, queue), y)
            expected = host.multiply_experts(products[products["expert"] < 3], x, np.full((4, down.shape[0]), 7, "f4"))
            self.assertLess(np.abs(y.numpy() - expected).max(), 1e-3)
            self.assertTrue((y.numpy()[[1, 3]] == 7).all())

    def test_streams_threads_and_lifetimes(self):
        stream = ctypes.c_void_p()
        x = Array(random(2, 64))
        x.memory.call("cuStreamCreate", ctypes.byref(stream), 1)
        other = Queue(device, allocate, stream.value)
        q = self.upload(Q)
        y = q.multiply(x, empty(2, q.shape[0]), queue).numpy()
        found = q.multiply(x, empty(2, q.shape[0]), other)
        x.memory.call("cuStreamSynchronize", stream)
        self.assertEqual(found.numpy().tobytes(), y.tobytes())
        current = ctypes.c_void_p()
        driver.cuCtxGetCurrent(ctypes.byref(current))
        self.assertFalse(current)
        before = Memory.held
        linear = self.upload(Q)
        self.assertEqual(Memory.held, before + linear.bytes)
        self.assertRegex(linear.kernel, "^xfp_multiply_v2")
        linear.close()
        self.assertEqual(Memory.held, before)
        self.refused("q_proj.weight: the weights were closed; upload them again", linear.multiply, x,
                     empty(2, q.shape[0]), queue)
        closed = Device()
        late = Queue(closed, allocate)
        kept = DeviceLinear(bundle().linear(Q), late)
        closed.close()
        self.refused("CUDA device 0 is closed", Queue, closed, allocate)
        self.refused("CUDA device 0 is closed", DeviceLinear, bundle().linear(Q), late)
        self.assertEqual(kept.multiply(x, empty(2, q.shape[0]), late).numpy().tobytes(), y.tobytes())
        self.refused("queue is not of that device", q.multiply, x, empty(2, q.shape[0]), late)
        child = os.fork()
        if not child:
            try:
                kept.multiply(x, found, late)
            except xfp.UsageError as error:
                os._exit("opened before fork" not in str(error))
            os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_refused(self):
        q, x = self.upload(Q), random(2, 64)
        out, good = empty(2, q.shape[0]), Array(x)

        def refused(pattern, x=good, out=out, **options):
            self.refused(pattern, q.multiply, x, out, queue, **options)

        refused("x is a ndarray; pass an array on cuda:0", x)
        refused("out is a list; pass an array on cuda:0", out=[1.0])
        refused("x has dtype float64; use float32", Array(x.astype(np.float64)))
        refused('x has dtype uint16; use .*uint16 with dtype="bf16"', Array(to_bf16(x)))
        refused("x has elements of f32, not f16", dtype="f16")
        refused(r"x has shape \[2, 63\]; it must be \[64\]", Array(x[:, :63]))
        refused("x has a stride of 2 between the elements", Array(np.tile(x, 2), shape=(2, 64), strides=(512, 8)))
        refused("x has a stride of 32 elements between vectors of 64", Array(x, strides=(128, 4)))
        refused("x is not aligned to its elements", Array(x, data=(good.memory.data_ptr() + 2, False)))
        refused("x is not aligned to its elements", Array(x, strides=(258, 4)))
        refused("out is read-only", out=Array(out.like, data=(out.memory.data_ptr(), True)))
        refused("out has 3 vectors, but x has 2", out=empty(3, q.shape[0]))
        refused("expert 1 does not exist", expert=1)
        refused(r"x is at 0x[0-9a-f]+, which is not memory of a CUDA device", Array(x, data=(x.ctypes.data, False)))
        self.refused("expert .*cannot multiply|products has shape", q.multiply_experts, good, good, out, queue)
        self.refused("products is not contiguous", q.multiply_experts,
                     Array(np.zeros((2, 8), "f4"), shape=(2, 4), strides=(32, 4)), good, out, queue)

    def test_memory_of_an_allocator(self):
        def misaligned(size):
            memory = allocate(size + 256)
            address = memory.data_ptr() + 16
            memory.data_ptr = lambda: address
            return memory

        linear = bundle().linear(Q)
        self.refused("not a multiple of 256 bytes", Queue, device, misaligned)
        self.refused("0x7000 is not an address of device memory|0x7000, is not a multiple", Queue, device,
                     lambda size: Array([0.0], data=(0x7000, False)))
        bad = Queue(device, allocate)
        bad.allocate = misaligned
        self.refused("q_proj.weight: the address of device memory, .* is not a multiple", DeviceLinear, linear, bad)


OPEN = """
import xfp
try:
    xfp.cuda.Device({})
except xfp.XfpError as error:
    print(type(error).__name__, error)
"""


class Machines(Case):
    """Machines that lack something, in processes of their own."""

    def check(self, pattern, index=0, **environment):
        status, output = run(OPEN.format(index), **environment)
        self.assertEqual(status, 0, output)
        self.assertRegex(output, f"(?s)^{pattern}")

    def test_machines(self):
        self.check("LibraryError cannot load libxfp-cuda, which multiplies on GPUs: .*/none.so.*; build xfp .* with nvcc"
                   ".*, and set XFP_CUDA_LIBRARY", XFP_CUDA_LIBRARY="/none.so")
        self.check("LibraryError libc.so.6: is not libxfp-cuda .*has no function xfp_cuda_open; build xfp",
                   XFP_CUDA_LIBRARY="libc.so.6")
        self.check("FailedError no CUDA driver found .*; install the NVIDIA driver",
                   LD_LIBRARY_PATH=os.environ["XFP_TEST_LIB"])
        self.check("FailedError .*supports CUDA 11.8, but the kernels need CUDA 1.*update the NVIDIA driver",
                   STAND_IN_VERSION="11080")
        self.check("FailedError .*finds no device.*CUDA_VISIBLE_DEVICES", STAND_IN_DEVICES="0")
        self.check("FailedError .*compute capability 7.5; the kernels need 8.0", STAND_IN_ARCH="75")
        self.check("UsageError the CUDA device 1 does not exist; there are 1", 1)
        self.check("UsageError the CUDA device -1 does not exist", -1)
        self.check("FailedError CUDA device 0: cuDevicePrimaryCtxRetain failed with error 2 of the CUDA driver",
                   STAND_IN_FAIL="cuDevicePrimaryCtxRetain 1 2")

    def test_two_devices(self):
        program = f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import numpy as np
import devices
from common import Q, bundle, random
first = devices.device = devices.Device(0)
x = devices.Array(random(2, 64))
second = devices.device = devices.Device(1)
queue = devices.Queue(second, devices.allocate)
q = devices.DeviceLinear(bundle().linear(Q), queue)
out = devices.empty(2, q.shape[0])
try:
    q.multiply(x, out, queue)
except devices.xfp.UsageError as error:
    print(error)
near = devices.Array(random(2, 64))
y = q.multiply(near, out, queue).numpy()
print(second.torch_name, np.abs(y - bundle().linear(Q).multiply(random(2, 64))).max() < 1e-3)
devices.device = first
try:
    q.multiply(near, out, devices.Queue(first, devices.allocate))
except devices.xfp.UsageError as error:
    print(error)
"""
        status, output = run(program, STAND_IN_DEVICES="2")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, "x is on cuda:0; the weights are on cuda:1: copy it there\ncuda:1 True\n.*q_proj.weight: "
                         "the weights are on cuda:1, but")


if __name__ == "__main__":
    device = Device()
    queue = Queue(device, allocate)
    unittest.main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of torch, modules and models on a CUDA device, without one.

torch makes no tensors of a GPU that is not there, so DeviceTensor stands for them: its device is cuda:0, and its
elements are in the memory of the stand-in driver. Torch's own operators copy it to the host and compute there;
those of xfp run the kernel that is registered for CUDA, which gets its addresses and strides. torch.cuda.current_stream
and torch's allocator are replaced: tests/on-device uses the real ones.
"""
import ctypes
import gc
import os
import types
import unittest

import torch
from common import DOWN, GATE, Q, WORDS, Case, bundle, path_of, run
from operators import Model, tokens
from stand_in import Memory, driver
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

import xfp
from xfp import ops
from xfp.quantizer import XfpConfig, XfpQuantizer


def is_cuda(value):
    return isinstance(value, (str, torch.device)) and str(value).startswith("cuda")


def to_host_device(value):  # C++ sees the device meta, which needs no driver
    return torch.device("cpu") if is_cuda(value) or value == torch.device("meta") else value


class DeviceTensor(torch.Tensor):
    @staticmethod
    def __new__(cls, memory, like):
        return torch.Tensor._make_wrapper_subclass(cls, like.shape, like.stride(), like.storage_offset(),
                                                   dtype=like.dtype, device="meta")

    def __init__(self, memory, like):
        self.memory = memory

    device = property(lambda self: torch.device("cuda:0"))
    is_meta = False

    def data_ptr(self):
        return self.memory.data_ptr() + self.storage_offset() * self.element_size()

    def __repr__(self):
        return f"DeviceTensor({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func.namespace == "xfp":
            return func._op_dk(torch._C.DispatchKey.CUDA, *args, **kwargs or {})
        copies = {}  # memory by the address of its copy on the host

        def to_host(x):
            if not isinstance(x, DeviceTensor):
                return to_host_device(x)
            whole = next((copy for copy, memory in copies.values() if memory is x.memory), None)
            if whole is None:
                whole = torch.empty(x.memory.size, dtype=torch.uint8)
                x.memory.read(whole.data_ptr(), x.memory.size)
                copies[whole.data_ptr()] = whole, x.memory
            return torch.empty(0, dtype=x.dtype).set_(whole.untyped_storage(), x.storage_offset(), x.shape, x.stride())

        result = func(*tree_map(to_host, args), **tree_map(to_host, kwargs or {}))
        if func._schema.is_mutable:
            for copy, memory in copies.values():
                memory.write(copy.data_ptr(), memory.size)
        if str((kwargs or {}).get("device")) == "cpu":
            return result
        return tree_map(lambda x: to_device(x, copies), result)


def to_device(x, copies=()):
    """Copy a tensor of the host to new memory; a view of a tensor that was copied shares that copy."""
    if not isinstance(x, torch.Tensor) or isinstance(x, DeviceTensor):
        return x
    storage = x.untyped_storage()
    if storage.data_ptr() in copies:
        return DeviceTensor(copies[storage.data_ptr()][1], x)
    memory = Memory(device.context, storage.nbytes())
    memory.write(storage.data_ptr(), memory.size)
    return DeviceTensor(memory, x)


class Cuda(TorchFunctionMode):
    """Calls that name a CUDA device return tensors there."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.__name__ in ("device", "_parse_to") or not any(map(is_cuda, (*args, *kwargs.values()))):
            return func(*args, **kwargs)
        return to_device(func(*map(to_host_device, args), **tree_map(to_host_device, kwargs)))


def placed(factory):
    """A factory of torch that kernels call, where the mode is not active."""
    return lambda *arguments, device=None, **options: to_device(factory(*arguments, **options)) \
        if is_cuda(device) else factory(*arguments, device=device, **options)


class Devices(Case):
    def setUp(self):
        opened = bundle()
        self.q, self.words, self.gate, self.down = (opened.linear(name) for name in (Q, WORDS, GATE, DOWN))
        self.numbers = {linear: ops.register(linear) for linear in (self.q, self.words, self.gate, self.down)}
        mode = Cuda()
        mode.__enter__()
        self.addCleanup(mode.__exit__, None, None, None)
        self.held = [ops.upload(linear, torch.device("cuda:0")) for linear in (self.q, self.gate, self.down)]

    def near(self, found, expected, limit=1e-3):
        self.assertEqual((str(found.device), found.dtype, found.shape), ("cuda:0", expected.dtype, expected.shape))
        self.assertLessEqual(float((found.cpu().float() - expected.float()).abs().max()), limit)

    def both(self, operator, *arguments, limit=1e-3):
        """The operator on the device and on the host."""
        names = [argument.name for argument in operator.default._schema.arguments]
        moved = [to_device(x.clone()) if isinstance(x, torch.Tensor) and name != "weights" else x
                 for name, x in zip(names, arguments)]
        y = operator(*moved)
        self.near(y, operator(*arguments), limit)
        return y

    def test_linear(self):
        q, rows = self.numbers[self.q], self.q.shape[0]
        twice = ops.register(self.q, self.q)
        for dtype, limit in ((torch.float32, 1e-4), (torch.float16, 1e-3), (torch.bfloat16, 1e-2)):
            y = self.both(torch.ops.xfp.linear, tokens(2, 3, 64).to(dtype), twice, 2 * rows, limit=limit)
            self.assertTrue(torch.equal(y[..., :rows].cpu(), y[..., rows:].cpu()))
        self.both(torch.ops.xfp.linear, tokens(64), q, rows)
        y = torch.ops.xfp.linear(to_device(tokens(3, 2, 64)).transpose(0, 1), q, rows)
        self.near(y, torch.ops.xfp.linear(tokens(3, 2, 64).transpose(0, 1), q, rows))
        self.assertEqual(torch.ops.xfp.linear(to_device(tokens(0, 64)), q, rows).shape, (0, rows))
        self.assertEqual(list(ops._queues), [(0, stream.value)])

    def test_experts(self):
        x, chosen, factor = tokens(2, 64), torch.tensor([[2, 0], [1, 2]]), torch.tensor([[.75, .25], [.5, .5]])
        gate, down = self.numbers[self.gate], self.numbers[self.down]
        twice = ops.register(self.gate, self.gate)
        for listed in (True, False):
            for linear in self.held:
                linear.listed = listed
            h = self.both(torch.ops.xfp.experts, x, chosen, None, twice, 2 * self.gate.shape[0]).cpu()
            h = h[:, :self.gate.shape[0]].contiguous()
            self.both(torch.ops.xfp.experts, h, chosen, None, down, self.down.shape[0])
            self.both(torch.ops.xfp.experts, h, chosen, factor, down, self.down.shape[0])
            self.both(torch.ops.xfp.experts, h.half(), chosen, factor.half(), down, self.down.shape[0], limit=1e-2)
        self.refused("expert 3 does not exist", torch.ops.xfp.experts, to_device(x), to_device(chosen + 1), None, gate,
                     self.gate.shape[0])
        for linear in self.held:
            linear.listed = True
        y = torch.ops.xfp.experts(to_device(x), to_device(chosen + 1), None, gate, self.gate.shape[0]).cpu()
        self.assertEqual(y.any(1).tolist(), [False, True, True, False])

    def test_rows(self):
        self.both(torch.ops.xfp.rows, torch.tensor([[5, 0], [95, 5]]), self.numbers[self.words], 64, torch.bfloat16,
                  limit=0)

    def test_refused(self):
        x, chosen, q = to_device(tokens(2, 64)), torch.tensor([[0, 2], [1, 2]]), self.numbers[self.q]
        self.refused("x has dtype torch.float64; use", torch.ops.xfp.linear, to_device(tokens(2, 64).double()), q, 64)
        self.refused(r"x has shape \[2, 63\]", torch.ops.xfp.linear, to_device(tokens(2, 63)), q, 64)
        self.refused("there are no open weights 3", torch.ops.xfp.linear, x, torch.tensor([3]), 64)
        self.refused(r"embed_tokens.weight: the weights are not on cuda:0; move the model there: model.to\('cuda:0'\)",
                     torch.ops.xfp.linear, x, self.numbers[self.words], 96)
        self.refused("there are 3 inputs for 2 tokens with 2 experts each", torch.ops.xfp.experts,
                     to_device(tokens(3, 64)), to_device(chosen), None, self.numbers[self.gate], 48)
        self.refused("x is on device cpu; the weights are on cuda:0: pass x.to", self.held[0].multiply, tokens(2, 64), x,
                     ops._queue(x.device))
        self.refused(r"x is on device cuda:0; libxfp multiplies on the CPU: pass x.cpu\(\)", self.q.multiply, x)

    def test_modules(self):
        """Weights move with their modules, are shared by copies, and end with the last."""
        ids, before = torch.arange(3), Memory.held
        model, bias = Model(), tokens(2 * self.q.shape[0])
        model.q.bias = torch.nn.Parameter(bias, requires_grad=False)
        expected = model(ids)
        with torch.no_grad():
            model.to("cuda")
            again = model.half().float()
            self.assertIs(again.q.uploaded[0], again.q.uploaded[1])
            size = sum({id(linear): linear.bytes for part in (model.q, model.experts.packed_experts)
                        for linear in part.uploaded}.values())
            model.q.bias = torch.nn.Parameter(to_device(bias.clone()), requires_grad=False)
            self.assertEqual(Memory.held, before + size + model.q.bias.memory.size)
            self.assertEqual(model.words.uploaded, ())
            self.near(model(to_device(ids.clone())), expected)
        model.to("cpu")
        self.assertEqual((Memory.held, model.q.uploaded), (before, ()))
        self.assertTrue(torch.equal(model(ids), expected))
        self.refused("q_proj.weight: xfp multiplies on the CPU and on CUDA devices, not on mps", model.q._apply,
                     lambda x: types.SimpleNamespace(device=torch.device("mps")) if x is model.q.like else x)

    def test_device_map(self):
        quantizer = XfpQuantizer(XfpConfig("a.xfp"))
        cuda = torch.device("cuda:0")
        for places in ({"": cuda}, {"": 0}, {"": "cuda:0"}):
            quantizer.validate_environment(device_map=places)
            self.assertEqual((quantizer.update_device_map(places), quantizer.device), ({"": "cpu"}, cuda))
        self.assertEqual((quantizer.update_device_map("auto"), quantizer.device), ({"": "cpu"}, torch.device("cuda")))
        self.refused("device_map has 2 devices", quantizer.validate_environment, device_map={"a": "cpu", "b": "cuda:0"})
        model = Model()
        self.assertIs(quantizer._process_model_after_weight_loading(model), model)
        self.assertEqual(str(model.words.like.device), "cuda:0")
        self.assertEqual(len(model.q.uploaded), 2)


class Loading(Case):
    def test_model(self):
        """Logits of a model on the device are those on the host."""
        for name in os.environ.get("XFP_TEST_MODELS", "").split():
            options = {"dtype": torch.float32, "attn_implementation": "eager"}
            expected = xfp.load(path_of(name + ".xfp"), **options)[0]
            # a mask, because the one of transformers is made by C++, which sees the device meta
            inputs = {"input_ids": torch.tensor([[5, 7, 9, 11]]),
                      "attention_mask": torch.full((1, 1, 4, 4), -1e9).triu(1)}
            with Cuda(), torch.no_grad():
                model = xfp.load(path_of(name + ".xfp"), device="cuda", **options)[0]
                self.assertEqual({str(x.device) for x in (*model.parameters(), *model.buffers())}, {"cuda:0"})
                found = model(**{name: to_device(x.clone()) for name, x in inputs.items()}).logits
            with torch.no_grad():
                wanted = expected(**inputs).logits
            self.assertEqual(str(found.device), "cuda:0")
            self.assertLess(float((found.cpu() - wanted).abs().max() / wanted.std()), 1e-3)

    def test_refused(self):
        program = f"""
import torch, xfp
for device in ("disk", "mps", "cuda"):
    try:
        xfp.load({path_of("auto.xfp")!r}, device=device)
    except xfp.XfpError as error:
        print(type(error).__name__, error)
"""
        bad = "UsageError the device is '{}', but xfp multiplies on the CPU or on one CUDA device; pass .*\n"
        for library, last in (("", "UsageError torch .* finds no CUDA device; install torch for CUDA"),
                              ("/none.so", "LibraryError cannot load libxfp-cuda, .*; build xfp")):
            status, output = run(program, XFP_CUDA_LIBRARY=library)
            self.assertEqual(status, 0, output)
            self.assertRegex(output, bad.format("disk") + bad.format("mps") + "(.*\n)*" + last)


if __name__ == "__main__":
    stream = ctypes.c_void_p()
    device = ops._devices[0] = xfp.cuda.Device(0)
    Memory(device.context, 1).call("cuStreamCreate", ctypes.byref(stream), 0)
    torch.empty, torch.arange = placed(torch.empty), placed(torch.arange)
    torch.cuda.is_available = lambda: True
    torch.cuda.current_stream = lambda device: types.SimpleNamespace(cuda_stream=stream.value)
    ops._queue(torch.device("cuda:0"))
    gc.collect()
    unittest.main()

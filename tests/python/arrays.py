#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays that products accept in place, and those that they refuse."""
import unittest

import numpy as np
from common import GATE, HEAD, Q, WORDS, Case, bundle, random, to_bf16

import xfp

try:
    import torch
except ImportError:
    torch = None


class Arrays(Case):
    def setUp(self):
        self.bundle = bundle()
        self.q = self.bundle.linear(Q)
        self.rows, self.cols = self.q.shape
        self.x = random(3, self.cols)
        self.y = self.q.multiply(self.x)

    def same(self, x, out=None, **named):
        """Check that a product of other arrays has the same bits, and is written in place."""
        y = self.q.multiply(x, out, **named)
        if out is not None:
            self.assertIs(y, out)
        self.assertEqual(np.asarray(y).tobytes(), self.y.tobytes())

    def test_strides(self):
        wide = np.full((6, self.cols + 9), np.nan, np.float32)
        wide[::2, 5:5 + self.cols] = self.x
        self.same(wide[::2, 5:5 + self.cols])
        out = np.zeros((3, 4, self.rows), np.float32)
        self.same(self.x, out[:, 1])
        self.assertFalse(out[:, [0, 2, 3]].any())
        self.same(np.asfortranarray(self.x).T.T.copy())

    def test_layouts_that_libxfp_cannot_express(self):
        q, x = self.q, self.x
        columns = np.asfortranarray(x)
        self.refused("x has a stride of 3 between the elements", q.multiply, columns)
        self.refused("x has a stride of -1 between the elements", q.multiply, x[:, ::-1])
        self.refused("x has a stride of -64 elements between vectors", q.multiply, x[::-1])
        self.refused("x has a stride of 0 elements between vectors", q.multiply, np.broadcast_to(x[0], x.shape))
        self.refused("x is not aligned", q.multiply, np.zeros(65 * 4, np.uint8)[1:257].view(np.float32))
        odd = np.ndarray((2, 64), np.float32, np.zeros(1024, np.uint8), 0, (257, 4))
        self.refused("x is not aligned", q.multiply, odd)
        windows = np.lib.stride_tricks.as_strided(np.zeros(200, np.float32), (3, 64), (4 * 32, 4))
        self.refused("x has a stride of 32 elements between vectors of 64", q.multiply, windows)
        self.refused("out has a stride of 2 between", q.multiply, x, np.zeros((3, 128), np.float32)[:, ::2])
        self.refused("out has a stride of 0 elements between", q.multiply, x,
                     np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (3, 64), (0, 4)))

    def test_dtypes(self):
        q, x = self.q, self.x
        for kind in (np.float64, np.int32, np.complex64, ">f4", object, "m8[s]"):
            self.refused("x has dtype .*; use float32, float16, or uint16", q.multiply, np.zeros((3, 64), kind))
        self.refused("uint16 with dtype=\"bf16\"", q.multiply, to_bf16(x))
        self.refused("uint16 with dtype=\"bf16\"", q.multiply, x, np.zeros((3, 64), np.uint16))
        self.refused("x has elements of f32, not bf16", q.multiply, x, dtype="bf16")
        self.refused("out has elements of f32, not f16", q.multiply, x, np.zeros((3, 64), np.float32), out_dtype="f16")
        self.refused("unknown dtype 'int8'", q.multiply, x, out_dtype="int8")
        self.refused(r"unknown dtype \['f32'\]", q.multiply, x, out_dtype=["f32"])
        self.refused("unknown dtype 'BF16'", q.multiply, to_bf16(x), dtype="BF16")

    def test_shapes_and_kinds(self):
        q, x = self.q, self.x
        self.refused(r"x has shape \[3, 63\]; it must be \[64\] or \[count, 64\]", q.multiply, x[:, :63])
        self.refused(r"x has shape \[1, 3, 64\]", q.multiply, x[None])
        self.refused(r"x has shape \[\]", q.multiply, np.array(1, np.float32))
        self.refused(r"out has shape \[3, 65\]", q.multiply, x, np.zeros((3, 65), np.float32))
        self.refused("out has 2 vectors, but x has 3", q.multiply, x, np.zeros((2, 64), np.float32))
        self.refused("x is a list; pass a numpy array or a torch tensor", q.multiply, [1.0] * 64)
        self.refused("x is a NoneType", q.multiply, None)
        self.refused("out is read-only", q.multiply, x, np.frombuffer(bytes(768), np.float32).reshape(3, 64))
        self.refused("expert 1 does not exist; there are 1", q.multiply, x, expert=1)
        self.refused("expert -1 does not exist", q.multiply, x, expert=-1)
        self.refused("expert must be an integer, not 0.5", q.multiply, x, expert=0.5)
        self.refused("team must be an xfp.Team, not 2", q.multiply, x, team=2)

    def test_overlap(self):
        q = self.q
        both = np.zeros((3, 2 * self.cols), np.float32)
        both[:, :self.cols] = self.x
        self.same(both[:, :self.cols], both[:, self.cols:])
        self.refused("out overlaps x", q.multiply, self.x, self.x)
        self.refused("out overlaps x", q.multiply, both[:, :self.cols], both[:, 63:127])
        flat = np.zeros(5 * 64, np.float32)
        self.refused("out overlaps x", q.multiply, flat[:192].reshape(3, 64), flat[128:].reshape(3, 64))
        self.refused("out overlaps x", q.multiply, flat[128:].reshape(3, 64), flat[:192].reshape(3, 64))
        self.same(self.x, np.zeros(600, np.float32)[:192].reshape(3, 64))
        beside = np.concatenate((self.x.ravel(), np.zeros(192, np.float32)))
        self.same(beside[:192].reshape(3, 64), beside[192:].reshape(3, 64))
        long = np.zeros(600, np.float32)
        wraps = np.lib.stride_tricks.as_strided(long[100:], (3, 64), (512, 4))
        self.refused("out overlaps x", q.multiply, long[10:394].reshape(3, 128)[:, :64], wraps)
        rows = both.reshape(6, 64)
        self.refused("out overlaps x", q.multiply, rows[:3], rows[::2])
        wide = np.ones((4, 112), np.float32)
        gate = self.bundle.linear(GATE)
        gate.multiply_experts(xfp.products(0, 0, 0), wide[1:2, :64], wide[:, 64:])
        self.assertTrue((wide[:, :64] == 1).all())
        self.refused("out overlaps x", gate.multiply_experts, xfp.products(0, 0, 0), wide[1:2, :64], wide[:, 63:111])
        self.refused("out overlaps x", q.multiply, wide[1:2, :64], wide[1:2, 48:])
        x = random(1, 64)
        self.assertEqual(q.multiply(x[0], flat[64:128]).tobytes(), q.multiply(x).tobytes())

    def test_lists_that_overlap_outputs(self):
        words, gate = self.bundle.linear(WORDS), self.bundle.linear(GATE)
        buffer = np.zeros(256, np.uint32)
        out = buffer.view(np.float32)
        self.refused("out overlaps ids", words.rows, buffer[:2], out[:128].reshape(2, 64))
        self.refused("out overlaps ids", words.rows, buffer[127:129], out[:128].reshape(2, 64))
        self.assertEqual(words.rows(buffer[128:130], out[:128].reshape(2, 64)).tobytes(), words.rows([0, 0]).tobytes())
        signed = buffer.view(np.int32)  # which is converted
        signed[:] = 1
        self.assertEqual(words.rows(signed[:2], out[:128].reshape(2, 64)).tobytes(), words.rows([1, 1]).tobytes())
        out[:] = 0
        table = out[:8].view(xfp.PRODUCT)
        table["y"] = 0, 1
        self.refused("out overlaps products", gate.multiply_experts, table, random(1, 64), out[:96].reshape(2, 48))
        gate.multiply_experts(table, random(1, 64), out[96:192].reshape(2, 48))

    def test_masks(self):
        masked = np.ma.array(self.x, mask=self.x > 0)
        self.refused(r"x is masked; pass x.filled\(\)", self.q.multiply, masked)
        self.refused("out is masked", self.q.multiply, self.x, np.ma.zeros((3, self.rows), np.float32))
        self.refused("ids is masked", self.bundle.linear(WORDS).rows, np.ma.array([1, 2], mask=[0, 1]))
        self.refused("expert is masked", xfp.products, np.ma.array([1, 2], mask=[0, 1]), 0, 0)

    def test_experts(self):
        gate = self.bundle.linear(GATE)
        x = random(2, gate.shape[1])
        table = xfp.products([0, 1], [0, 1], [0, 1])
        self.refused("products must be an array", gate.multiply_experts, [(0, 0, 0, 1)], x)
        self.refused("products must be an array", gate.multiply_experts, np.zeros((2, 4), np.uint32), x)
        self.refused("products is not contiguous", gate.multiply_experts, np.repeat(table, 2)[::2], x)
        self.refused("names expert 3, input 0 and output 0; there are 3, 2 and 1", gate.multiply_experts,
                     xfp.products(3, 0, 0), x)
        self.refused("names expert 0, input 2 and output 0", gate.multiply_experts, xfp.products(0, 2, 0), x)
        self.refused("names expert 1, input 1 and output 1", gate.multiply_experts, table, x,
                     np.zeros((1, 48), np.float32))
        self.refused("out overlaps x", gate.multiply_experts, table, x, x[:, :48])
        self.refused("expert contains a number outside", xfp.products, -1, 0, 0)
        self.refused("x contains a number outside", xfp.products, 0, 2**32, 0)
        self.refused("y has dtype float64", xfp.products, 0, 0, 0.5)
        self.refused("weight has dtype complex128; it must contain real numbers", xfp.products, 0, 0, 0, 1j)
        self.refused("one shape", xfp.products, [0, 1], [0, 1, 2], 0)
        self.assertEqual(gate.multiply_experts(table[:0], x).shape, (0, 48))

    def test_ids(self):
        words = self.bundle.linear(WORDS)
        self.refused("row 96 does not exist; there are 96", words.rows, [5, 96])
        for bad in ([-1], [2**32], [2**32 - 1], [2**63]):
            self.refused("ids contains a number outside", words.rows, bad)
        self.refused("ids has dtype float64", words.rows, [0.0])
        self.refused("ids has dtype bool", words.rows, [True])
        self.refused("ids contains a number outside", words.rows, [2**70])
        self.refused("ids cannot be converted to an array", words.rows, [[1], [1, 2]])
        self.refused("no memory for", words._output, self.x, None, (2**60, 64), 64, None, kind=xfp.FailedError)
        self.refused("out has 1 vectors, but there are 2 ids", words.rows, [0, 1], np.zeros((1, 64), np.float32))
        self.refused("row 288 does not exist", bundle().linear(GATE).rows, [48 * 6])

    @unittest.skipUnless(torch, "torch is not installed")
    def test_torch(self):
        x = torch.from_numpy(self.x)
        y = self.q.multiply(x)
        self.assertEqual(y.dtype, torch.float32)
        self.same(x, torch.zeros(3, 2 * self.rows)[:, :self.rows])
        y = self.q.multiply(x.bfloat16(), out_dtype="bf16")
        self.assertEqual(y.dtype, torch.bfloat16)
        self.assertLess(float((y.float() - torch.from_numpy(self.y)).abs().max()), 0.1)
        head = self.bundle.linear(HEAD)
        y = head.rows(torch.tensor([[1], [2]]))
        self.assertEqual((y.dtype, tuple(y.shape)), (torch.float32, (2, 1, 64)))
        self.assertEqual(y.numpy().tobytes(), head.rows([1, 2]).tobytes())
        self.assertEqual(head.rows(torch.tensor([1, 2]), torch.zeros(2, 64)).shape, (2, 64))
        self.refused("x has dtype torch.float64; use torch.float32", self.q.multiply, x.double())
        self.refused("x is on device meta", self.q.multiply, x.to("meta"))
        self.refused("x has layout torch.sparse_coo", self.q.multiply, x.to_sparse())
        self.refused("stride of 3 between", self.q.multiply, x.T.contiguous().T)
        for ids in (torch.tensor([1.0]).bfloat16(), torch.tensor([1]).to_sparse()):
            self.refused("ids cannot be converted", head.rows, ids)
        self.refused("ids is on device meta; pass ids.cpu", head.rows, torch.tensor([1], device="meta"))
        weight = torch.tensor([0.5, 2], dtype=torch.bfloat16, requires_grad=True)
        self.assertEqual(xfp.products([0, 1], 0, 0, weight)["weight"].tolist(), [0.5, 2])
        self.refused("weight is on device meta", xfp.products, 0, 0, 0, weight.to("meta"))
        self.refused("no memory for an array", head._output, x, None, (2**60, 64), 64, None, kind=xfp.FailedError)
        self.refused(r"x has torch's negative bit; pass x.resolve_neg\(\)", self.q.multiply, torch._neg_view(x))
        self.refused("out has torch's negative bit", self.q.multiply, x, torch._neg_view(x.clone()))
        self.refused("requires a gradient, and xfp computes none; pass x.detach", self.q.multiply, x.clone().requires_grad_())
        with torch.no_grad():
            self.same(x.clone().requires_grad_())
        outs = torch.zeros(3, self.rows), torch.zeros(1, 64), torch.zeros(1, 48)
        self.q.multiply(x, outs[0])
        head.rows([0], outs[1])
        bundle().linear(GATE).multiply_experts(xfp.products(0, 0, 0), x, outs[2])
        self.assertEqual([out._version for out in outs], [1, 1, 1])  # autograd sees the changes
        self.refused("out overlaps x", self.q.multiply, x, x)


if __name__ == "__main__":
    unittest.main()

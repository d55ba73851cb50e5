#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of torch, by the bundles of tests/cli/python.bats."""
import os
import signal
import threading
import time
import unittest
import warnings

import torch
from common import DOWN, GATE, Q, WORDS, Case, bundle, path_of, run
from torch._dynamo.utils import counters
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

import xfp
from xfp import ops
from xfp.packed import PackedEmbedding, PackedExperts, PackedLinear, forward_experts

UP = GATE.replace("gate", "up")


def tokens(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Experts(torch.nn.Module):
    """A module of experts, as transformers has them."""

    has_gate = is_concatenated = True
    has_bias = has_post_expert_norm = is_transposed = False
    forward = forward_experts

    def __init__(self, packed):
        super().__init__()
        self.packed_experts = packed

    def _apply_gate(self, h):
        gate, up = h.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        opened = bundle()
        words = opened.linear(WORDS)
        self.words = PackedEmbedding(WORDS, words, torch.nn.Embedding(*words.shape, device="meta"), torch.float32)
        self.q = PackedLinear(Q, [opened.linear(Q)] * 2, None)
        self.experts = Experts(PackedExperts("experts", [opened.linear(GATE), opened.linear(UP)], opened.linear(DOWN)))

    def forward(self, ids):
        x = self.q(self.words(ids))[..., :64]
        chosen = torch.stack([ids % 3, (ids + 1) % 3], -1)
        return self.experts(x, chosen, chosen.softmax(-1, dtype=torch.float32))


class Operators(Case):
    def setUp(self):
        opened = bundle()
        self.q, self.words = opened.linear(Q), opened.linear(WORDS)
        self.gate, self.down = opened.linear(GATE), opened.linear(DOWN)
        self.numbers = {linear: ops.register(linear) for linear in (self.q, self.words, self.gate, self.down)}

    def linear(self, x, rows=None, weights=None):
        weights = self.numbers[self.q] if weights is None else weights
        return torch.ops.xfp.linear(x, weights, self.q.shape[0] if rows is None else rows)

    def experts(self, linear, x, chosen, factor=None):
        return torch.ops.xfp.experts(x, chosen, factor, self.numbers[linear], linear.shape[0])

    def test_values(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x = tokens(2, 3, 64).to(dtype)
            y = self.linear(x)
            self.assertEqual((y.shape, y.dtype), ((2, 3, self.q.shape[0]), dtype))
            expected = torch.empty(6, self.q.shape[0], dtype=dtype)
            self.q.multiply(x.reshape(6, 64), expected)
            self.assertTrue(torch.equal(y.reshape(6, -1), expected))
            ids = torch.tensor([[5, 0], [95, 5]])
            rows = torch.ops.xfp.rows(ids, self.numbers[self.words], 64, dtype)
            name = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}[dtype]
            self.assertTrue(torch.equal(rows, self.words.rows(ids, out_dtype=name)))
        self.assertTrue(torch.equal(self.linear(x.transpose(0, 1)), self.linear(x.transpose(0, 1).contiguous())))
        self.assertEqual(self.linear(tokens(0, 64)).shape, (0, self.q.shape[0]))
        twice = self.linear(x, 2 * self.q.shape[0], ops.register(self.q, self.q))
        self.assertTrue(torch.equal(twice, torch.cat([self.linear(x)] * 2, -1)))

    def test_experts(self):
        x, chosen, factor = tokens(2, 64), torch.tensor([[0, 2], [1, 2]]), torch.tensor([[.75, .25], [.5, .5]])
        h = self.experts(self.gate, x, chosen)
        for slot, (token, expert) in enumerate(((0, 0), (0, 2), (1, 1), (1, 2))):
            y = self.gate.multiply(x[token], expert=expert)
            self.assertLess(float((h[slot] - y).abs().max()), 1e-3)
        each = self.experts(self.down, h, chosen)
        y = self.experts(self.down, h, chosen, factor)
        self.assertLess(float((y - (each.view(2, 2, -1) * factor[..., None]).sum(1)).abs().max()), 1e-3)
        for weights in (None, factor[:, :0]):
            none = self.experts(self.gate, x, chosen[:, :0], weights)
            self.assertEqual(none.shape, (0 if weights is None else 2, self.gate.shape[0]))
            self.assertFalse(none.any())
        one = self.experts(self.gate, x, chosen[:, :1])
        self.assertLess(float((one - h[::2]).abs().max()), 1e-3)

    def test_opcheck(self):
        x, chosen, factor = tokens(2, 3, 64), torch.tensor([[0, 2], [1, 2]]), torch.ones(2, 2)
        q, gate, words = (self.numbers[linear] for linear in (self.q, self.gate, self.words))
        xfp_ops = torch.ops.xfp
        for gradient in (False, True):
            x = x.detach().requires_grad_(gradient)
            kinds = ("test_schema", "test_autograd_registration", "test_faketensor") if gradient else \
                ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
            for operator, arguments in (
                    (xfp_ops.linear, (x, ops.register(self.q, self.q), 2 * self.q.shape[0])),
                    (xfp_ops.experts, (x[0, :2], chosen, None, gate, self.gate.shape[0])),
                    (xfp_ops.experts, (x[0, :2], chosen, factor, gate, self.gate.shape[0])),
                    (xfp_ops.rows, (chosen, words, 64, torch.bfloat16))):
                torch.library.opcheck(operator.default, arguments, test_utils=kinds)

    def test_compile(self):
        model = Model()
        whole = torch.compile(model, backend=os.environ.get("XFP_TEST_BACKEND", "aot_eager"), fullgraph=True)
        with torch.no_grad():
            for count in (4, 7, 9):
                ids = torch.arange(count)
                self.assertTrue(torch.allclose(whole(ids), model(ids), rtol=1e-4, atol=1e-6))

    def test_compile_shares_graphs(self):
        """Modules of one shape are one graph, so there is no limit to their number."""
        with torch.no_grad():
            for make in (lambda linear: PackedLinear(Q, [linear], None),
                         lambda linear: PackedEmbedding(Q, linear, torch.nn.Embedding(96, 64), torch.float32)):
                torch.compiler.reset()
                counters.clear()
                for seed in range(10):
                    module = make(bundle().linear(Q))
                    x = torch.arange(4) if isinstance(module, PackedEmbedding) else tokens(2, 64)
                    y = module(x)
                    module.compile(backend="eager", fullgraph=True)
                    self.assertTrue(torch.equal(module(x), y))
                self.assertEqual(counters["stats"]["unique_graphs"], 1)

    def test_no_derivative(self):
        x, message = tokens(2, 64), "packed weights have no gradient"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that torch.autograd.forward_ad uses torch.jit.script
            for function in (self.linear, PackedLinear(Q, [self.q], None)):
                y = function(x)
                self.refused(message, torch.func.jvp, function, (x,), (x,))
                self.refused(message, torch.func.vjp, function, x)
                with forward_ad.dual_level():
                    self.refused(message, function, forward_ad.make_dual(x, x))
                    self.assertTrue(torch.equal(function(x), y))

    def test_no_gradient(self):
        x = tokens(2, 64).requires_grad_()
        y = self.linear(x)
        self.assertTrue(y.requires_grad)
        self.refused("packed weights have no gradient; use torch.no_grad", y.sum().backward)
        with torch.no_grad():
            self.assertFalse(self.linear(x).requires_grad)

    def test_refused(self):
        x, chosen = tokens(2, 64), torch.tensor([[0, 2], [1, 2]])
        self.refused("does not multiply torch.float64; use torch.float32", self.linear, x.double())
        self.refused(r"q_proj.weight has 64 columns, but x has shape \[2, 63\]", self.linear, x[:, :63])
        self.refused("there are no open weights 3", self.linear, x, weights=torch.tensor([3]))
        self.refused("there are 3 inputs for 2 tokens with 2 experts each", self.experts, self.gate, tokens(3, 64),
                     chosen)
        self.refused("expert", self.experts, self.gate, x, chosen + 1)
        for bad in (-1, 2**32):
            self.refused("expert contains a number outside", self.experts, self.gate, x, chosen + bad)
            self.refused("ids contains a number outside", torch.ops.xfp.rows, chosen + bad, self.numbers[self.words], 64,
                         torch.float32)
        self.refused("row", torch.ops.xfp.rows, chosen + 1000, self.numbers[self.words], 64, torch.float32)
        self.refused("does not multiply", torch.ops.xfp.rows, chosen, self.numbers[self.words], 64, torch.int8)
        self.refused("is a stack of 3 experts; use xfp::experts", self.linear, x, self.gate.shape[0],
                     self.numbers[self.gate])
        self.refused(r"x has shape \[\]", self.linear, torch.tensor(1.))
        self.refused(r"weights has shape \[\]", self.linear, x, weights=self.numbers[self.q][0])
        for factor in (torch.ones(1), torch.ones(3), torch.ones(2, 1)):
            self.refused(r"must be \[inputs, cols\], \[tokens, k\] and \[tokens, k\], not \[2, 64\], \[2, 2\], ",
                         self.experts, self.gate, x, chosen, factor)
        self.refused(r"not \[2, 64\], \[2\]$", self.experts, self.gate, x, chosen[0])
        self.refused(r"not \[64\], \[2, 2\]$", self.experts, self.gate, x[0], chosen)
        for kind in (torch.bfloat16, torch.float32, torch.bool, torch.complex64):
            self.refused("expert has dtype", self.experts, self.gate, x, chosen.to(kind))
            self.refused("ids has dtype", torch.ops.xfp.rows, chosen.to(kind), self.numbers[self.words], 64,
                         torch.float32)
        self.refused("must be one matrix with 60 columns", torch.ops.xfp.rows, chosen, self.numbers[self.words], 60,
                     torch.float32)
        module = PackedLinear(Q, [self.q], None)
        self.assertTrue(module.weight.is_meta)
        for _ in range(2):
            module.loaded()
        with self.assertRaisesRegex(AttributeError, "q_proj.weight is packed and cannot be read"):
            module.weight
        self.assertFalse(hasattr(module, "weight"))

    def test_calls_within_calls(self):
        """A signal handler multiplies while its thread prepares a product."""
        x, other, held = tokens(8, 64), tokens(8, 64, seed=2), []
        y, before = self.linear(x), torch.get_num_threads()
        old = signal.signal(signal.SIGALRM, lambda *_: held.append(self.linear(other)))
        try:
            torch.set_num_threads(1)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            end = time.monotonic() + 1
            while time.monotonic() < end:
                self.assertTrue(torch.equal(self.linear(x), y))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
            torch.set_num_threads(before)
        self.assertGreater(len(held), 10)
        self.assertTrue(all(torch.equal(result, self.linear(other)) for result in held))

    def test_rows_of_weights(self):
        """Weights with more rows than the output would be written past its end."""
        x, chosen = tokens(1, 64), torch.zeros(1, 1, dtype=torch.int64)
        for weights, rows in (([self.q] * 2, 64), ([self.q], 66), ([], 4), ([self.q], 0), ([self.q], -1)):
            self.refused("rows, but rows is", self.linear, x, rows, ops.register(*weights))
            self.refused("rows, but rows is", torch.ops.xfp.experts, x, chosen, None, ops.register(*weights), rows)

    def test_numbers_are_not_used_again(self):
        numbers = set()
        for _ in range(50):
            linear = bundle().linear(Q)
            numbers.add(ops.register(linear).item())
            self.assertIn(ops.register(linear).item(), numbers)
            del linear
        self.assertEqual(len(numbers), 50)
        program = "import xfp; from xfp import ops; print(ops.register(xfp.Bundle({!r}).linear({!r})).item())"
        status, other = run(program.format(path_of("auto.xfp"), Q))
        self.assertEqual(status, 0, other)
        self.assertGreater(abs(int(other) - max(numbers)), 50)  # those of another process are others

    def test_numbers_end_with_their_linear(self):
        linear = bundle().linear(Q)
        number = ops.register(linear)
        self.linear(tokens(1, 64), weights=number)
        del linear
        self.refused("there are no open weights", self.linear, tokens(1, 64), weights=number)

    def test_modules(self):
        model = Model()
        model.q.bias = torch.nn.Parameter(tokens(model.q.out_features))
        self.assertEqual(sum(p.numel() for p in model.parameters()), model.q.out_features)
        ids = torch.arange(3)
        y = model.words(ids)
        self.assertEqual((y.dtype, model.half().words(ids).dtype, model.bfloat16().words(ids).dtype),
                         (torch.float32, torch.float16, torch.bfloat16))
        x = y.bfloat16()
        self.assertTrue(torch.equal(model.q(x)[:, :64], self.linear(x) + model.q.bias[:64]))

    def test_threads_and_fork(self):
        x, before = tokens(40, 64), torch.get_num_threads()
        y = self.linear(x)
        try:
            for threads in (1, 2):
                torch.set_num_threads(threads)
                self.assertTrue(torch.equal(self.linear(x), y))
                self.assertEqual(ops._team() is None, threads == 1)
            results = [None] * 4

            def multiply(i):
                results[i] = self.linear(x)

            workers = [threading.Thread(target=multiply, args=(i,)) for i in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            self.assertTrue(all(torch.equal(result, y) for result in results))
            teams = dict(ops._teams)
            xfp.set_threads(1)
            self.linear(x)
            torch.set_num_threads(3)
            self.linear(x)
            torch.set_num_threads(2)
            self.linear(x)
            self.assertEqual({threads: ops._teams[threads] for threads in teams}, teams)
            self.assertEqual(xfp.team._default.threads, 1)
            child = os.fork()
            if not child:
                os._exit(not torch.equal(self.linear(x), y))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            torch.set_num_threads(before)
            xfp.set_threads(0)

    def test_few_tokens(self):
        """Torch runs on one thread while a model processes few tokens, and products on as many as before."""

        class Counting(torch.nn.Module):
            def forward(self, input_ids, past_key_values=None, cache=None):
                counts.append((torch.get_num_threads(), ops._team() is not None))
                if not input_ids.numel():
                    raise ValueError

        class Cache:
            def __init__(self, length):
                self.length = length

            def get_seq_length(self):
                if self.length is None:
                    raise ValueError("no layer has a length")
                return self.length

        counts, model, before = [], Counting(), torch.get_num_threads()
        ops.share_processors(model)
        few, many, none = (torch.zeros(1, count, dtype=torch.int64) for count in (1, 9, 0))
        try:
            torch.set_num_threads(2)
            for ids, cache in ((few, {}), (many, {}), (few, {"cache": Cache(9)}), (few, {"cache": Cache(5000)}),
                               (few, {"past_key_values": Cache(5000)}), (few, {"cache": Cache(None)})):
                model(ids, **cache)
                self.assertEqual(torch.get_num_threads(), 2)
            with self.assertRaises(ValueError):
                model(none)
            self.assertEqual(torch.get_num_threads(), 2)
            torch.set_num_threads(1)
            model(input_ids=few)
        finally:
            torch.set_num_threads(before)
        self.assertEqual(counts, [(1, True), (2, True), (1, True), (2, True), (2, True), (1, True), (1, True), (1, False)])

    def test_modules_call_the_kernel(self):
        """Without the dispatcher, unless something watches."""
        module, x = PackedLinear(Q, [self.q], None), tokens(2, 64)
        y = self.linear(x)
        self.assertTrue(torch.equal(module(x), y))
        with FlopCounterMode(display=False):
            self.assertTrue(torch.equal(module(x), y))
        self.assertTrue(module(x.clone().requires_grad_()).requires_grad)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that torch.vmap calls the operator in a loop
            self.assertTrue(torch.equal(torch.func.vmap(module)(x), y))
        self.assertTrue(module(x.to("meta")).is_meta)


if __name__ == "__main__":
    unittest.main()

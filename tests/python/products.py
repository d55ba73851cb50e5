#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Products and decoded weights of the package, against numpy and against xfp unpack."""
import json
import unittest

import numpy as np
from common import DOWN, GATE, HEAD, Q, WORDS, Case, bundle, from_bf16, path_of, random, to_bf16
from check_products import bounds
from read_bundle import Bundle as Reader

import xfp

BUNDLES = "v2.xfp", "v2a.xfp", "auto.xfp", "kept.xfp"


def unpacked(name):
    """{tensor: uint16 array} of the folder that xfp unpack wrote."""
    with open(path_of(name) + "/model.safetensors", "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    return {key: np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], "<u2").reshape(entry["shape"])
            for key, entry in json.loads(data[8:8 + size]).items() if key != "__metadata__"}


class Products(Case):
    def check(self, y, x, reader, number, limit=0.0):
        """Check y = W x within the bound of xfp.h, plus `limit` of each result for rounding to 16 bits."""
        w = reader.matrix(number).astype(np.float64)
        x = x.astype(np.float64)
        name = xfp.instructions()
        most = bounds(reader, number, w, x, name in ("avx2", "vbmi", "dotprod"), name == "vbmi" and len(x) <= 2)
        most += limit * np.abs(x @ w.T)
        self.assertLessEqual(np.max(np.abs(y - x @ w.T) / np.maximum(most, 1e-30)), 1)

    def test_every_unit(self):
        for name in BUNDLES:
            reader = Reader(path_of(name))
            with bundle(name) as opened, xfp.Team(1) as one, xfp.Team(2) as two:
                self.assertEqual(len(opened.units), len(reader.units))
                for unit in opened.units:
                    linear = opened.linear(unit.name, unit.role)
                    self.assertEqual((linear.experts, linear.shape), (unit.experts, (unit.rows, unit.cols)))
                    x = random(3, unit.cols)
                    for expert in range(unit.experts):
                        y = linear.multiply(x, expert=expert)
                        self.assertEqual((y.shape, y.dtype), ((3, unit.rows), np.float32))
                        self.check(y, x, reader, unit.first_matrix + expert)
                        for team in (one, two, None):
                            again = linear.multiply(x, expert=expert, team=team)
                            self.assertEqual(y.tobytes(), again.tobytes())

    def test_sixteen_bits(self):
        reader = Reader(path_of("auto.xfp"))
        with bundle() as opened:
            q = opened.linear(Q)
            x = random(4, q.shape[1])
            number = opened.unit(Q).first_matrix
            f16 = x.astype(np.float16)
            self.check(q.multiply(f16), f16, reader, number)
            bf16 = to_bf16(x)
            self.check(q.multiply(bf16, dtype="bf16"), from_bf16(bf16), reader, number)
            y = q.multiply(x, out_dtype="f16")
            self.assertEqual(y.dtype, np.float16)
            self.check(y, x, reader, number, 2.0**-11)
            y = q.multiply(x, out_dtype="bf16")
            self.assertEqual(y.dtype, np.uint16)
            self.assertEqual(y.tobytes(), to_bf16(q.multiply(x)).tobytes())

    def test_one_vector(self):
        with bundle() as opened:
            q = opened.linear(Q)
            x = random(1, q.shape[1])
            y = q.multiply(x[0])
            self.assertEqual(y.shape, q.shape[:1])
            self.assertEqual(y.tobytes(), q.multiply(x).tobytes())
            self.assertEqual(q.multiply(x[:0]).shape, (0, q.shape[0]))

    def test_slices(self):
        with bundle() as opened:
            q = opened.linear(Q)
            x, w = random(2, q.shape[1]), opened.dequantize(Q)
            part = opened.linear(Q, slice=np.s_[16:40])
            self.assertEqual(part.shape, (24, q.shape[1]))
            self.assertEqual(part.multiply(x).tobytes(), q.multiply(x)[:, 16:40].tobytes())
            self.assertEqual(opened.linear(Q, slice=np.s_[16:]).shape, (q.shape[0] - 16, q.shape[1]))
            part = opened.linear(Q, "q", np.s_[:, np.int64(8):48])
            self.assertEqual(part.shape, (q.shape[0], 40))
            self.assertLessEqual(np.abs(part.multiply(x[:, 8:48]) - x[:, 8:48] @ w[:, 8:48].T).max(), 1e-2)
            kept = bundle("kept.xfp").linear(HEAD, slice=np.s_[1:5])
            self.assertEqual(kept.shape[0], 4)
            for bad in (np.s_[3:3], np.s_[0:1000], np.s_[-2:], np.s_[::2], np.s_[:, :, :], 3, np.s_[5:2]):
                self.refused("slice", opened.linear, Q, slice=bad)

    def test_experts(self):
        with bundle() as opened:
            gate, down = opened.linear(GATE), opened.linear(DOWN)
            tokens = np.arange(2)[:, None]
            chosen, weights = np.array([[0, 2], [1, 2]]), np.array([[0.75, 0.25], [0.5, 0.5]], np.float32)
            x = random(2, gate.shape[1])
            h = gate.multiply_experts(xfp.products(chosen, tokens, np.arange(4).reshape(2, 2)), x)
            self.assertEqual(h.shape, (4, gate.shape[0]))
            for token, expert, y in ((0, 0, 0), (0, 2, 1), (1, 1, 2), (1, 2, 3)):
                w = opened.dequantize(GATE, expert=expert)
                self.assertLessEqual(np.abs(h[y] - w @ x[token]).max(), 1e-2)
            y = down.multiply_experts(xfp.products(chosen, np.arange(4).reshape(2, 2), tokens, weights), h)
            expected = sum(weights[:, i: i + 1] * np.stack([opened.dequantize(DOWN, expert=chosen[t, i]) @ h[2 * t + i]
                                                            for t in range(2)]) for i in range(2))
            self.assertLessEqual(np.abs(y - expected).max(), 1e-2 * np.abs(expected).max() + 1e-2)
            out = np.full((3, down.shape[0]), 7, np.float16)
            del out  # numpy hands this memory out again
            y3 = down.multiply_experts(xfp.products([0, 1], [0, 1], [0, 2]), h, out_dtype="f16")
            self.assertEqual((y3.shape[0], y3[1].any(), y3[2].any()), (3, False, True))
            out = np.full((4, down.shape[0]), 7, np.float32)
            same = down.multiply_experts(xfp.products(chosen, np.arange(4).reshape(2, 2), tokens, weights), h, out)
            self.assertIs(same, out)
            self.assertEqual(out[:2].tobytes(), y.tobytes())
            self.assertTrue((out[2:] == 7).all())

    def test_rows(self):
        for name, tensor in (("auto.xfp", WORDS), ("kept.xfp", WORDS), ("tied.xfp", HEAD)):
            with bundle(name) as opened:
                words = opened.linear(tensor)
                ids = np.array([[5, 0], [95, 5]])
                y = words.rows(ids)
                self.assertEqual(y.shape, (2, 2, words.shape[1]))
                for kind in (np.uint32, np.int32, np.uint8, np.uint64):
                    self.assertEqual(words.rows(ids.astype(kind)).tobytes(), y.tobytes())
                self.assertEqual(words.rows([5, 0, 95, 5]).tobytes(), y.tobytes())
                self.assertEqual(words.rows(95).shape, (words.shape[1],))
                self.assertEqual(words.rows([]).shape, (0, words.shape[1]))
                out = np.zeros((2, words.shape[1]), np.uint16)
                self.assertIs(words.rows([95, 5], out, out_dtype="bf16"), out)
                self.assertEqual(out.tobytes(), to_bf16(y[1]).tobytes())
                if name == "auto.xfp":
                    self.assertEqual(y[1, 0].tobytes(), opened.dequantize(tensor)[95].tobytes())

    def test_dequantize(self):
        for name in BUNDLES:
            reader, tensors = Reader(path_of(name)), unpacked(name[:-4])
            with bundle(name) as opened:
                for unit in opened.units:
                    for expert in range(unit.experts):
                        w = opened.dequantize(unit.name, unit.role, expert=expert if unit.experts > 1 else None)
                        exact = reader.matrix(unit.first_matrix + expert)
                        self.assertLessEqual(np.abs(w - exact).max(), 2.0**-20 * np.abs(exact).max())
                        bf16 = opened.dequantize(unit.name, unit.role, expert=expert, dtype="bf16")
                        self.assertEqual(bf16.tobytes(), to_bf16(w).tobytes())
                        self.assertEqual(bf16.tobytes(), tensors[unit.name.replace("*", str(expert))].tobytes())
                w = opened.dequantize(Q)
                out = np.zeros((5, w.shape[1]), np.float32)
                self.assertIs(opened.dequantize(Q, rows=np.s_[7:12], out=out), out)
                self.assertEqual(out.tobytes(), w[7:12].tobytes())
                self.refused("3 experts; choose one", opened.dequantize, GATE)
                self.refused("expert 3 does not exist; there are 3", opened.dequantize, GATE, expert=3)
                self.refused("contiguous", opened.dequantize, Q, out=np.zeros((64, 128), np.float32)[:, :64])
                self.refused("contiguous", opened.dequantize, Q, out=np.zeros((63, 64), np.float32))
                self.refused("unknown dtype", opened.dequantize, Q, dtype="f64")

    def test_instructions(self):
        chosen = xfp.instructions()
        reader = Reader(path_of("auto.xfp"))
        with bundle() as opened:
            q, x = opened.linear(Q), random(3, opened.unit(Q).cols)
            try:
                xfp.use_instructions("plain")
                self.assertEqual(xfp.instructions(), "plain")
                self.check(q.multiply(x), x, reader, opened.unit(Q).first_matrix)
                self.refused("does not support the instruction set 'mmx'", xfp.use_instructions, "mmx")
            finally:
                xfp.use_instructions(chosen)


if __name__ == "__main__":
    unittest.main()

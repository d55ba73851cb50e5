# SPDX-License-Identifier: Apache-2.0
"""Fits with error feedback next to numpy: tests/feedback_reference.py applied to a bundle, its checkpoint and inputs.

    calibrated_fit.py write MODEL CASE [INPUT [FACTOR]]
                                                        inputs of layer 0 for tests/inputs; a channel of INPUT is larger
    calibrated_fit.py check MODEL BUNDLE PLAIN OUTPUTS...
    calibrated_fit.py changed BUNDLE OTHER              roles of the units whose weights differ

`check` computes bytes, indices and residuals of every v2c unit of layer 0 again, from the bundle's library and the
training rows, and compares them; then outputs of held-out rows with those that the fits measured, one file a unit, as
`inputs outputs` prints them. The output error must be below that of PLAIN, the bundle without calibration.
"""
import json
import re
import struct
import sys

import numpy as np

import feedback_reference as ref
import read_bundle

F, D = np.float32, np.float64
LENGTH, WINDOWS, NO_EXPERT, OF_STACK = 32, 16, 2**32 - 1, 2**32 - 2
MAX_HELD_OUT, MIN_HELD_OUT = 256, 32


def tensors_of(model):
    with open(f"{model}/model.safetensors", "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (tensor["dtype"], tensor["shape"], data[slice(*tensor["data_offsets"])])
            for name, tensor in header.items()}


# ---- inputs ------------------------------------------------------------------------------------------------


class Inputs:
    """Inputs of layer 0: rows of bf16 by name, the experts of each token, the input and expert of each tensor."""

    def __init__(self, model, changed=None, factor=4):
        rng = np.random.default_rng(1)
        tensors = tensors_of(model)
        config = json.load(open(f"{model}/config.json"))
        hidden, experts = config["hidden_size"], config.get("num_experts", 0)
        self.tokens, self.hidden, self.each = LENGTH * WINDOWS, hidden, 2 if experts else 0
        inner = config.get("moe_intermediate_size") if experts else config["intermediate_size"]
        attention = config["num_attention_heads"] * config.get("head_dim", hidden // config["num_attention_heads"])
        self.experts = np.full((self.tokens, self.each), NO_EXPERT, np.uint32)
        for t in range(self.tokens if experts else 0):
            # the last expert gets no token; another gets few, and some tokens have only one
            own = rng.choice(experts - 1, 2, replace=False, p=self.shares(experts - 1))
            own = np.sort(own[: 1 + (rng.random() < 0.9)])
            self.experts[t, : len(own)] = own
        down = "expert-down" if experts else "down"
        self.rows = {"attention": self.sample(rng, self.tokens, hidden, 0),
                     "attention-output": self.sample(rng, self.tokens, attention, 0.3),
                     "mlp": self.sample(rng, self.tokens, hidden, 0.1),
                     down: self.sample(rng, self.tokens * max(self.each, 1), inner, 0)}
        self.rows[down][(self.experts == NO_EXPERT).ravel()] = 0
        if changed:
            self.rows[changed][:, 5] = ref.to_bf16(np.float32(factor) * ref.from_bf16(self.rows[changed][:, 5]))
        self.tensor = {}
        for name in sorted(tensors):
            match = re.fullmatch(r"model\.layers\.0\.(?:self_attn|mlp)\.(?:experts\.(?:(\d+)\.)?)?(\w+?)_proj(\.weight)?",
                                 name)
            if not match:
                continue
            kind = {"q": "attention", "k": "attention", "v": "attention", "o": "attention-output", "gate": "mlp",
                    "up": "mlp", "gate_up": "mlp", "down": down}[match[2]]
            expert = int(match[1]) if match[1] else OF_STACK if not match[3] else NO_EXPERT
            self.tensor[name] = (kind, expert)

    @staticmethod
    def shares(count):
        p = np.ones(count)
        p[-1] = 0.02
        return p / p.sum()

    @staticmethod
    def sample(rng, count, cols, dead):
        mix = rng.standard_normal((cols, cols)) / cols**0.5 * np.exp(0.7 * rng.standard_normal(cols))
        mix[:, rng.random(cols) < dead] = 0
        return ref.to_bf16((rng.standard_normal((count, cols)) + rng.standard_normal((count, 1))) @ mix)

    def write(self, path):
        names = list(self.rows)
        with open(path, "wb") as file:
            file.write(struct.pack("<QQ6I", self.tokens, LENGTH, 0, 1, self.hidden, self.each, len(names),
                                   len(self.tensor)))
            for name, rows in self.rows.items():
                file.write(struct.pack("<24sQQ", name.encode(), *rows.shape) + rows.tobytes())
            file.write(self.experts.tobytes())
            for name, (kind, expert) in self.tensor.items():
                file.write(struct.pack("<96sII", name.encode(), names.index(kind), expert))

    def numbers(self, kind, expert, held_out):
        """Row numbers of an input: of an expert, or of all tokens."""
        found = []
        for t in range(self.tokens):
            if (t // LENGTH % 8 == 7) != held_out:
                continue
            if len(self.rows[kind]) == self.tokens:
                if expert == NO_EXPERT or expert in self.experts[t]:
                    found.append(t)
                continue
            for i, own in enumerate(self.experts[t]):
                if own != NO_EXPERT and expert in (NO_EXPERT, own):
                    found.append(t * self.each + i)
        return np.array(found, np.int64)

    def values(self, kind, expert, held_out):
        return ref.from_bf16(self.rows[kind][self.numbers(kind, expert, held_out)])

    def measured(self, kind, expert):
        """Held-out rows that outputs are measured with."""
        rows = self.values(kind, expert, True)
        if len(rows) < MIN_HELD_OUT:
            rows = self.values(kind, NO_EXPERT, True)
        count = min(len(rows), MAX_HELD_OUT)
        return rows[np.arange(count) * len(rows) // max(count, 1)]


# ---- units -------------------------------------------------------------------------------------------------


def up(d):
    """2^(d/4) as f32."""
    d = np.asarray(d, np.int64)
    return np.ldexp(np.exp2(d % 4 / 4).astype(F), d // 4)


class Unit:
    """A v2c unit of a bundle, with the weights of its matrices in the checkpoint."""

    def __init__(self, bundle, number, tensors):
        self.unit = unit = bundle.units[number]
        self.rows, self.cols, self.k, self.group = unit["rows"], unit["cols"], unit["k"], 1 << unit["group"]
        entries, groups = 1 << unit["library"], -(-self.cols // self.group)
        code = np.frombuffer(self.part(bundle, read_bundle.CODE), "<f2")
        self.book = ref.Book(self.k, code[: entries << self.k].reshape(entries, -1), code[entries << self.k :])
        self.balance = np.zeros(self.cols, np.uint8)
        if unit[f"part{read_bundle.BALANCE}"] != read_bundle.NONE:
            self.balance = np.frombuffer(self.part(bundle, read_bundle.BALANCE), "u1")
        self.matrices = []
        for m in range(unit["first_matrix"], unit["first_matrix"] + unit["experts"]):
            matrix, own = bundle.matrices[m], {}

            def part(kind, size):
                return self.part(bundle, kind)[matrix[f"offset{kind}"]:][:size]

            own["index"] = read_bundle.unpack_indices(
                part(read_bundle.INDEX, self.rows * read_bundle.row_bytes(self.cols, self.k)), self.rows, self.cols,
                self.k)
            codes = np.frombuffer(part(read_bundle.GROUP, self.rows * (groups + 1)), "u1")
            own["byte"] = codes[: self.rows * groups].reshape(self.rows, groups)
            own["row"] = codes[self.rows * groups :]
            own["marked"] = np.zeros((self.rows, self.cols), bool)
            own["residual"] = np.zeros((self.rows, self.cols), np.float16)
            if matrix["outliers"]:
                row, column, residual = bundle.outliers(self.rows, self.cols, matrix["outliers"], part)
                own["marked"][row, column] = True
                own["residual"][row, column] = residual
            name = bundle.tensors[matrix["tensor"]]["name"]
            dtype, _, raw = tensors[name]
            r, c = np.indices((self.rows, self.cols))
            at = matrix["base"] + r * matrix["row_stride"] + c * matrix["col_stride"]
            own["w"] = read_bundle.to_f32(dtype, raw)[at]
            own["x"] = own["w"] * (up(self.balance) * F(2.0 ** matrix["exponent"]))
            own["decoded"], own["tensor"] = bundle.matrix(m), name
            self.matrices.append(own)

    def part(self, bundle, kind):
        return bundle.part_bytes(bundle.parts[self.unit[f"part{kind}"]])


def same(unit, what, actual, expected):
    if not np.array_equal(actual, expected):
        bad = np.argwhere(actual != expected)
        sys.exit(f"{unit['role']}: {what}: {len(bad)} of {expected.size} differ, the first at {bad[0]}")


def check_matrix(unit, m, matrix, inputs):
    """Compare the codes of a matrix. Returns the output errors: of the codes, and of the search without feedback."""
    kind, expert = inputs.tensor[matrix["tensor"]]
    expert = m if expert == OF_STACK else expert
    rows = inputs.values(kind, expert, False)
    own = ref.moments(rows) if len(rows) else None
    stack = ref.moments(inputs.values(kind, NO_EXPERT, False)) if expert != NO_EXPERT else None
    g = ref.balance(ref.blend(own, stack, len(rows), unit.cols), ref.quarter_power(unit.balance))
    h = ref.hessian(g, ref.scale_of(np.diag(g)))
    order = ref.order_of(np.diag(h), unit.group)
    ordered = h[np.ix_(order, order)]
    x, marked = matrix["x"], matrix["marked"]
    square = np.where(marked, 0, x.astype(D) ** 2).sum(1) / np.maximum((~marked).sum(1), 1)
    same(unit.unit, "bytes of rows", matrix["row"],
         np.clip(np.rint(56 - 2 * np.log2(np.maximum(square, 2.0**-60))), 0, 255))
    scale = np.ldexp(ref.quarter_power(matrix["row"]), 14)
    encoded = ref.Rows(unit.book, unit.group, order, x, marked, scale)
    encoded.encode(ref.factor(ordered), 4)
    for _ in range(2):
        encoded.improve(ordered)
    same(unit.unit, "bytes", matrix["byte"], encoded.byte)
    same(unit.unit, "indices", matrix["index"], encoded.index)
    same(unit.unit, "residuals", matrix["residual"], np.where(marked, encoded.residuals(), 0))
    plain = ref.Rows(unit.book, unit.group, order, x, marked, scale)
    plain.encode(np.eye(unit.cols, dtype=F), 4)
    return [ref.output_error(rows.y, rows.values(), g) for rows in (encoded, plain)]


def outputs_of(unit, inputs):
    """Median, 5th percentile and error of the outputs of a unit."""
    cosine, error, norm = [], 0.0, 0.0
    for m, matrix in enumerate(unit.matrices):
        kind, expert = inputs.tensor[matrix["tensor"]]
        x = inputs.measured(kind, m if expert == OF_STACK else expert).astype(D)
        y, z = matrix["w"].astype(D) @ x.T, matrix["decoded"].astype(D) @ x.T
        length = np.sqrt((y * y).sum(1) * (z * z).sum(1))
        cosine.extend(np.where(length > 0, (y * z).sum(1) / np.where(length > 0, length, 1), (y == z).all(1)))
        error += ((y - z) ** 2).sum()
        norm += (y * y).sum()
    cosine = np.sort(cosine)
    return cosine[(len(cosine) - 1) // 2], cosine[-(-len(cosine) * 5 // 100) - 1], error / norm if norm else 0


def check(model, bundle, plain, files):
    bundle, plain, tensors, inputs = read_bundle.Bundle(bundle), read_bundle.Bundle(plain), tensors_of(model), Inputs(model)
    checked = 0
    for number, record in enumerate(bundle.units):
        if read_bundle.MODES[record["mode"]] != "v2c":
            continue
        unit = Unit(bundle, number, tensors)
        if unit.matrices[0]["tensor"] not in inputs.tensor:
            continue
        errors = np.sum([check_matrix(unit, m, matrix, inputs) for m, matrix in enumerate(unit.matrices)], 0)
        assert errors[0] < 0.9 * errors[1] or not errors[1], (record["role"], errors)
        expected = np.array(outputs_of(unit, inputs))
        lines = [line.split() for line in open(files[number])]
        line = next(line for line in lines if line[:3] == ["v2c", str(unit.group), str(unit.k)])
        actual = np.array([float(word) for word in line[4:7]])
        assert np.abs(actual - expected).max() <= 1e-6, (record["role"], actual, expected)
        stated = np.array([float(word) for word in bundle.json["outputs"].split()[number].split(",")])
        assert np.abs(stated - actual).max() <= 5.1e-7, (record["role"], stated, actual)
        before = outputs_of(Unit(plain, number, tensors), inputs)[2]
        assert actual[2] < 0.6 * before, (record["role"], actual[2], before)
        checked += 1
        print(f"{record['role']}: identical; {errors[0] / (errors[1] or 1):.3f} of the error without feedback; "
              f"unreached {line[3]}; output error {actual[2]:.5f}, without calibration {before:.5f}")
    assert checked and "outputs" not in plain.json


def changed(bundle, other):
    bundle, other = read_bundle.Bundle(bundle), read_bundle.Bundle(other)
    for unit in bundle.units:
        name = unit["name"], unit["role"]
        if not np.array_equal(bundle.unit(*name), other.unit(*name)):
            print(unit["role"])


def main(command, *rest):
    if command == "write":
        Inputs(rest[0], *rest[2:]).write(rest[1])
    elif command == "changed":
        changed(*rest)
    else:
        check(*rest[:3], rest[3:])


if __name__ == "__main__":
    main(*sys.argv[1:])

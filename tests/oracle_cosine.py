#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do a bundle's cosines and choices follow from the definitions?

    oracle_cosine.py [--xfp XFP] [--all] BUNDLE MODEL

Nothing of the C is used but `xfp info --json`, whose figures are under test. For one unit of each class
and mode (with --all: every unit), from the source weights alone:
  - the unit as stored, decoded here, has the median and 5th-percentile cosine that info reports;
  - a fit redone here gives the stored balance, exponents, outliers and codebooks, bit for bit;
  - the chosen k takes the fewest bytes of those whose median, measured here, meets the floor.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "models"))
import oracle_fit as fit
from read_bundle import Bundle
from safetensors_io import Checkpoint

CLOSE = 1e-9
E4M3 = np.array([(m / 8 + (e > 0)) * 2.0 ** (max(e, 1) - 7) for e in range(16) for m in range(8)][:127])


def fp8(w):
    """e4m3 with one scale a row: nearest value, ties to the even code."""
    scale = np.abs(w).max(-1, keepdims=True) / np.float32(448)
    ratio = np.where(scale > 0, w / np.where(scale > 0, scale, np.float32(1)), np.float32(0))
    size = np.abs(ratio.astype(np.float64))
    upper = np.minimum(np.searchsorted(E4M3, size), 126)
    lower = np.maximum(upper - 1, 0)
    up, down = E4M3[upper] - size, size - E4M3[lower]
    code = np.where((up < down) | ((up == down) & (upper % 2 == 0)), upper, lower)
    return (np.copysign(E4M3[code], ratio) * scale).astype(np.float32)


def source(checkpoint, bundle, matrix, unit):
    """W [rows, cols] of the checkpoint, where the bundle says that it lies."""
    flat = checkpoint.read(bundle.tensors[matrix.tensor].name).ravel().astype(np.float32)
    at = np.arange(unit.rows)[:, None] * matrix.row_stride + np.arange(unit.cols) * matrix.col_stride
    return flat[matrix.base + at]


def bit_set(text):
    bits = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        bits.update(range(int(low), int(high or low) + 1))
    return sorted(bits)


class Oracle:
    def __init__(self, bundle, checkpoint, reported):
        self.bundle, self.checkpoint = bundle, checkpoint
        self.reported = {unit["name"] + " " + unit["role"]: unit for unit in reported["units"]}
        self.parameters = bundle.json["parameters"]
        self.failures = 0

    def expect(self, good, what):
        if not good:
            self.failures += 1
            print(f"  WRONG: {what}")

    def check(self, unit):
        """Every claim that the bundle makes of one unit."""
        matrices = [matrix for matrix in self.bundle.matrices if matrix.unit == unit.number]
        w = np.array([source(self.checkpoint, self.bundle, matrix, unit) for matrix in matrices])
        stored = np.array([self.bundle.decode(matrix) for matrix in matrices])
        median, p5 = fit.summary(fit.row_cosines(w, stored))
        told = self.reported[unit.name + " " + unit.role]
        print(f"{unit.class_}: {unit.name} {unit.role}: {unit.mode}, k = {unit.k}, median {median:.9f}, p5 {p5:.9f}")
        for name, value in (("cos_median", median), ("cos_p5", p5)):
            self.expect(abs(told[name] - value) <= CLOSE, f"{name} is {value:.12f}, info says {told[name]:.12f}")
        for name, value in (("mode", unit.mode), ("k", unit.k), ("class", unit.class_), ("rows", unit.rows),
                            ("cols", unit.cols), ("experts", len(matrices)), ("weights", w.size)):
            self.expect(told[name] == value, f"{name} is {value}, info says {told[name]}")
        if unit.mode == "fp8":
            self.expect((stored == fp8(w)).all(), "fp8 codes are not the nearest")
            return
        again = fit.Unit(w, balance=float(self.parameters["balance"]),
                         sigma=float(self.parameters["outlier_sigma"]), cap=float(self.parameters["outlier_cap"]),
                         start=self.parameters["start"], rounds=self.parameters["lloyd_iterations"])
        if unit.mode == "keep":
            self.expect((stored == w).all(), "kept weights are not those of the checkpoint")
        else:
            self.check_fit(unit, matrices, stored, again, told)
        self.check_choice(unit, again, told)

    def check_fit(self, unit, matrices, stored, again, told):
        codebooks, restored, size = again.fit(unit.k)
        self.expect(np.array_equal(self.bundle.balance(matrices[0]), again.d), "balance bytes differ")
        for matrix, codebook, exponent, marked in zip(matrices, codebooks, again.s, again.marked):
            self.expect(matrix.exponent == exponent, f"exponent is {exponent}, stored {matrix.exponent}")
            self.expect(np.array_equal(self.bundle.codebook(matrix), codebook.view(np.uint16)), "codebooks differ")
            rows, columns = self.bundle.outliers(matrix)
            self.expect(np.array_equal(np.flatnonzero(marked), rows * unit.cols + columns), "outliers differ")
        self.expect((stored == restored).all(), "decoded weights differ")
        self.expect(told["bytes"] == size, f"takes {size} bytes, info says {told['bytes']}")
        self.expect(told["outliers"] == again.marked.sum(), f"has {again.marked.sum()} outliers, not {told['outliers']}")

    def check_choice(self, unit, again, told):
        floor = float(self.parameters["floors"][unit.class_])
        self.expect(abs(told["floor"] - floor) <= CLOSE, f"floor is {floor}, info says {told['floor']}")
        sizes = {}
        source_bytes = again.w.size * self.checkpoint.element_bytes(self.bundle.tensors[
            next(m.tensor for m in self.bundle.matrices if m.unit == unit.number)].name)
        for k in bit_set(self.parameters["bits"]):
            _, restored, size = again.fit(k)
            median, _ = fit.summary(fit.row_cosines(again.w, restored))
            print(f"  k = {k}: median {median:.9f}, {size} bytes")
            if median >= floor and size < source_bytes:
                sizes[k] = size
        best = min(sizes, key=sizes.get) if sizes else 0
        self.expect(unit.k == best, f"k should be {best or 'none (keep)'}, not {unit.k}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xfp", default="xfp", help="the xfp command")
    parser.add_argument("--all", action="store_true", help="every unit")
    parser.add_argument("bundle")
    parser.add_argument("model")
    arguments = parser.parse_args()
    reported = subprocess.run([arguments.xfp, "info", "--json", arguments.bundle], stdout=subprocess.PIPE, check=True)
    bundle = Bundle(arguments.bundle)
    oracle = Oracle(bundle, Checkpoint(arguments.model), json.loads(reported.stdout))
    seen = set()
    for unit in bundle.units:
        if arguments.all or (unit.class_, unit.mode) not in seen:
            seen.add((unit.class_, unit.mode))
            oracle.check(unit)
    print(f"{len(seen)} kinds of unit, {oracle.failures} wrong")
    sys.exit(4 if oracle.failures or not seen else 0)


if __name__ == "__main__":
    main()

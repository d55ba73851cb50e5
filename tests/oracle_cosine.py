#!/usr/bin/python3
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
import read_bundle
from safetensors_io import Checkpoint

CLOSE = 1e-9
E4M3 = read_bundle.e4m3(np.arange(127))


def fp8(w):
    """e4m3 with one scale per row: nearest value, ties to the even code."""
    scale = np.abs(w).max(-1, keepdims=True) / np.float32(448)
    ratio = np.where(scale > 0, w / np.where(scale > 0, scale, np.float32(1)), np.float32(0))
    size = np.abs(ratio.astype(np.float64))
    upper = np.minimum(np.searchsorted(E4M3, size), 126)
    lower = np.maximum(upper - 1, 0)
    up, down = E4M3[upper] - size, size - E4M3[lower]
    code = np.where((up < down) | ((up == down) & (upper % 2 == 0)), upper, lower)
    return (np.copysign(E4M3[code], ratio) * scale).astype(np.float32)


class Unit:
    """A unit of the bundle, as read_bundle.py reads it."""

    def __init__(self, bundle, number):
        self.bundle, self.record = bundle, bundle.units[number]
        for name in ("name", "role", "k", "rows", "cols", "experts", "bytes", "outliers"):
            setattr(self, name, self.record[name])
        self.class_ = read_bundle.CLASSES[self.record["class"]]
        self.mode = read_bundle.MODES[self.record["mode"]]
        first = self.record["first_matrix"]
        self.numbers = range(first, first + self.experts)
        self.matrices = [bundle.matrices[number] for number in self.numbers]

    def source(self, checkpoint):
        """W [experts, rows, cols] of the checkpoint, from the place that the bundle gives."""
        result = []
        for matrix in self.matrices:
            flat = checkpoint.read(self.bundle.tensors[matrix["tensor"]]["name"]).ravel()
            at = np.arange(self.rows)[:, None] * matrix["row_stride"] + np.arange(self.cols) * matrix["col_stride"]
            result.append(flat[matrix["base"] + at].astype(np.float32))
        return np.array(result)

    def source_bytes(self, checkpoint):
        return checkpoint.element_bytes(self.bundle.tensors[self.matrices[0]["tensor"]]["name"]) * \
            self.experts * self.rows * self.cols

    def stored(self):
        return np.array([self.bundle.matrix(number) for number in self.numbers])

    def part(self, matrix, kind, dtype, count, skip=0):
        part = self.record[f"part{kind}"]
        if part == read_bundle.NONE:
            return np.zeros(count, dtype)
        raw = self.bundle.part_bytes(self.bundle.parts[part])
        return np.frombuffer(raw, dtype, count, matrix[f"offset{kind}"] + skip)

    def balance(self):
        return self.part(self.matrices[0], read_bundle.BALANCE, "u1", self.cols)

    def codebook(self, matrix):
        return self.part(matrix, read_bundle.CODE, "<u2", self.rows << self.k).reshape(self.rows, -1)

    def outlier_positions(self, matrix):
        count, raw = matrix["outliers"], lambda kind, size: self.part(matrix, kind, "u1", size).tobytes()
        if not count:
            return np.zeros(0, np.int64)
        rows, columns, _ = self.bundle.outliers(self.rows, self.cols, count, raw)
        return rows * self.cols + columns


def up(value, unit):
    return -(-value // unit) * unit


def library_bytes(unit, again):
    """Check all stored data of a v2a or v2c unit."""
    group, library = 1 << unit.record["group"], 1 << unit.record["library"]
    groups = unit.rows * -(-unit.cols // group)
    size = 2 * (library << unit.k) + (unit.cols if again.d.any() else 0)
    if unit.mode == "v2c":
        size += 2 * (256 // library)
    for marked in again.marked:
        count = int(marked.sum())
        size += unit.rows * up(-(-unit.cols // 32) * 4 * unit.k, 16)
        size += up(groups * 5 if unit.mode == "v2a" else groups + unit.rows, 16)
        size += fit.outlier_bytes(unit.rows, unit.cols, count)
    return size


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
        """Check every claim of the bundle about one unit."""
        w, stored = unit.source(self.checkpoint), unit.stored()
        median, p5 = fit.summary(fit.row_cosines(w, stored))
        told = self.reported[unit.name + " " + unit.role]
        print(f"{unit.class_}: {unit.name} {unit.role}: {unit.mode}, k = {unit.k}, median {median:.9f}, p5 {p5:.9f}")
        for name, value in (("cos_median", median), ("cos_p5", p5)):
            self.expect(abs(told[name] - value) <= CLOSE, f"{name} is {value:.12f}, info says {told[name]:.12f}")
        for name, value in (("mode", unit.mode), ("k", unit.k), ("class", unit.class_), ("rows", unit.rows),
                            ("cols", unit.cols), ("experts", unit.experts), ("weights", w.size)):
            self.expect(told[name] == value, f"{name} is {value}, info says {told[name]}")
        if unit.mode == "fp8":
            self.expect((stored == fp8(w)).all(), "fp8 codes are not the nearest")
            return
        again = fit.Unit(w, balance=float(self.parameters["balance"]),
                         sigma=float(self.parameters["outlier_sigma"]), cap=float(self.parameters["outlier_cap"]),
                         start=self.parameters["start"], rounds=self.parameters["lloyd_iterations"])
        if unit.mode == "keep":
            self.expect((stored == w).all(), "kept weights are not those of the checkpoint")
        elif unit.mode in ("v2a", "v2c"):
            self.check_frame(unit, again, told, library_bytes(unit, again))
        else:
            self.check_fit(unit, stored, again, told)
        if self.parameters["mode"] == "v2":
            self.check_choice(unit, again, told)

    def check_fit(self, unit, stored, again, told):
        codebooks, restored, size = again.fit(unit.k)
        for matrix, codebook in zip(unit.matrices, codebooks):
            self.expect(np.array_equal(unit.codebook(matrix), codebook.view(np.uint16)), "codebooks differ")
        self.expect((stored == restored).all(), "decoded weights differ")
        self.check_frame(unit, again, told, size)

    def check_frame(self, unit, again, told, size):
        """Check the data that do not depend on the mode, and the size by its formula."""
        self.expect(np.array_equal(unit.balance(), again.d), "balance bytes differ")
        for matrix, exponent, marked in zip(unit.matrices, again.s, again.marked):
            self.expect(matrix["exponent"] == exponent, f"exponent is {exponent}, stored {matrix['exponent']}")
            self.expect(np.array_equal(unit.outlier_positions(matrix), np.flatnonzero(marked)), "outliers differ")
        self.expect(told["bytes"] == size, f"takes {size} bytes, info says {told['bytes']}")
        count = again.marked.sum()
        self.expect(told["outliers"] == count, f"has {count} outliers, info says {told['outliers']}")

    def check_choice(self, unit, again, told):
        floor = float(self.parameters["floors"][unit.class_])
        self.expect(abs(told["floor"] - floor) <= CLOSE, f"floor is {floor}, info says {told['floor']}")
        sizes = {}
        source_bytes = unit.source_bytes(self.checkpoint)
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
    bundle = read_bundle.Bundle(arguments.bundle)
    oracle = Oracle(bundle, Checkpoint(arguments.model), json.loads(reported.stdout))
    seen = set()
    for unit in (Unit(bundle, number) for number in range(len(bundle.units))):
        if arguments.all or (unit.class_, unit.mode) not in seen:
            seen.add((unit.class_, unit.mode))
            oracle.check(unit)
    print(f"{len(seen)} kinds of unit, {oracle.failures} wrong")
    sys.exit(4 if oracle.failures or not seen else 0)


if __name__ == "__main__":
    main()

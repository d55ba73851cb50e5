# SPDX-License-Identifier: Apache-2.0
"""Artifacts of inputs (schemas/inputs.h), and calibration.h5, as numpy arrays, read by tests/read-inputs."""
import os
import subprocess
import tempfile

import numpy as np

NO_EXPERT, STACK = 2 ** 32 - 1, 2 ** 32 - 2


def from_bf16(values):
    return (values.astype("<u4") << 16).view("<f4")


def to_bf16(x):
    """Bits of bf16, rounded to nearest even."""
    bits = np.ascontiguousarray(x, "<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def read(path, folder):
    """Rows of the tables that tests/read-inputs prints, and files in the folder."""
    tool = os.path.join(os.environ["XFP_TEST_TOOLS"], "read-inputs")
    text = subprocess.run([tool, path, folder], check=True, capture_output=True, text=True).stdout
    return [line.split(" ") for line in text.splitlines()]


def calibration_ids(work):
    """Token ids [windows, length] of a work folder."""
    with tempfile.TemporaryDirectory() as folder:
        rows = dict(read(work, folder))
        return np.fromfile(f"{folder}/ids", "<u4").reshape(int(rows["windows"]), int(rows["length"]))


class Inputs:
    """`values` of each input [rows, cols] as bits of bf16, `stream` [tokens, hidden], `experts` [tokens, k], `tensors`
    {name: (input, expert)}, `sources` {name: digest}."""

    def __init__(self, path):
        with tempfile.TemporaryDirectory() as folder:
            rows = read(path, folder)
            for row in rows:
                if len(row) == 2:
                    setattr(self, row[0], int(row[1]))
            self.tensors = {row[1]: (row[2], int(row[3])) for row in rows if row[0] == "tensor"}
            self.sources = {row[1]: row[2] for row in rows if row[0] == "source"}
            self.values = {row[1]: np.fromfile(f"{folder}/{row[1]}.values", "<u2").reshape(int(row[2]), int(row[3]))
                           for row in rows if row[0] == "input"}
            self.experts = np.fromfile(f"{folder}/experts", "<u4").reshape(self.tokens, self.experts_per_token)
            self.stream = None
            if self.has_stream:
                self.stream = np.fromfile(f"{folder}/stream", "<f4").reshape(self.tokens, self.hidden)

    def rows_of(self, tensor, matrix=0):
        """Tokens and values that a matrix multiplies."""
        name, expert = self.tensors[tensor]
        values, tokens = self.values[name], np.arange(self.tokens)
        if expert == NO_EXPERT:
            return tokens, values
        tokens, place = np.nonzero(self.experts == (matrix if expert == STACK else expert))
        if len(values) == self.tokens:
            return tokens, values[tokens]
        return tokens, values[tokens * self.experts_per_token + place]


def stamped(work, layer, cache="xfp-cache"):
    """The inputs that the stamp of a layer names."""
    with open(f"{work}/l{layer:06}-inputs", encoding="ascii") as stamp:
        key = stamp.read()[:32]
    return Inputs(f"{cache}/artifacts/{key[:2]}/{key}.h5")

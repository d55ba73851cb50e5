#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Processor time of a call of torch.ops.xfp.linear on top of the product that it calls.

    torch_call.py BUNDLE [TENSOR]

Multiplies one token by TENSOR (default: the first unit) with one thread, 80 interleaved rounds of 50 calls, and prints
the least of each. Goal: 25 us. Needs torch, and XFP_LIBRARY or a package with its own libxfp.
"""
import ctypes
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import xfp  # noqa: E402
from xfp import abi, ops  # noqa: E402

CALLS = 50


def cost(function, *arguments):
    begin = time.process_time()
    for _ in range(CALLS):
        function(*arguments)
    return (time.process_time() - begin) / CALLS * 1e6


def main(path, tensor=None):
    torch.set_num_threads(1)
    opened = xfp.Bundle(path)
    linear = opened.linear(tensor or opened.units[0].name)
    numbers, rows, operator = ops.register(linear), linear.shape[0], torch.ops.xfp.linear
    x, out, pairs = torch.ones(1, linear.shape[1]), torch.empty(1, rows), []
    with torch.no_grad():
        operator(x, numbers, rows)
        inputs, outputs = (kind(data.data_ptr(), abi.FLOAT["FLOAT32"], 1, data.shape[1])
                           for kind, data in ((abi.Input, x), (abi.Output, out)))
        pointers = None, linear.handle.pointer, 0, 1, *map(ctypes.byref, (inputs, outputs, abi.Error()))
        for _ in range(80):
            alone = cost(ops._library.xfp_multiply, *pointers)
            pairs.append((alone, cost(operator, x, numbers, rows)))
    alone, whole = (min(column) for column in zip(*pairs))
    print(f"{linear.shape[0]} x {linear.shape[1]}: product {alone:.1f} us, operator {whole:.1f} us, "
          f"{whole - alone:.1f} us on top")


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""Shared by tests that run their own kernels in the emulator."""
import numpy as np

import snippets

TESTS = []
ALL = "0xffffffff"


def test(name):
    def register(function):
        TESTS.append((name, function))
        return function
    return register


def different(what, got, wanted):
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape == wanted.shape and (got == wanted).all():
        return None
    at = np.flatnonzero(got.reshape(-1) != wanted.reshape(-1))[0] if got.shape == wanted.shape else "shape"
    return f"{what}: {got.reshape(-1)[at] if at != 'shape' else got.shape} at {at}, not " \
           f"{wanted.reshape(-1)[at] if at != 'shape' else wanted.shape}"


def lanes(tap, body, inputs, ins, outs, **options):
    """Results of a snippet, for each thread."""
    text = snippets.kernel(body, ins.split(), outs.split(), options.pop("declarations", ""))
    tap.note(text)
    return snippets.run(text, inputs, outs.split(), **options)[0]


def numbers(seed, dtype=np.uint32, count=128):
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, count, dtype=dtype, endpoint=True)

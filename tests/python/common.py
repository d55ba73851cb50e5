# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of python/xfp. tests/python/make-bundles makes the bundles, in $XFP_TEST_BUNDLES."""
import os
import signal
import subprocess
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # read_bundle, check_products

import xfp  # noqa: E402

Q = "model.layers.0.self_attn.q_proj.weight"
GATE = "model.layers.0.mlp.experts.*.gate_proj.weight"
DOWN = "model.layers.0.mlp.experts.*.down_proj.weight"
HEAD = "lm_head.weight"
WORDS = "model.embed_tokens.weight"


def path_of(name):
    return os.path.join(os.environ["XFP_TEST_BUNDLES"], name)


def bundle(name="auto.xfp"):
    return xfp.Bundle(path_of(name))


def random(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def to_bf16(array):
    """f32 as uint16, rounded to nearest, ties to even."""
    bits = array.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(array):
    return (array.astype(np.uint32) << 16).view(np.float32)


def run(program, **environment):
    """Standard output and error of a Python program, and its status."""
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={key: value for key, value in (os.environ | environment).items() if value is not None})
    return done.returncode, done.stdout


class Case(unittest.TestCase):
    def raise_on_interrupt(self):
        """Raise KeyboardInterrupt at SIGINT until the test ends. A shell's background commands ignore the signal."""
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))

    def refused(self, pattern, function, *arguments, kind=xfp.UsageError, **named):
        """Check that a call raises `kind`, with a message that matches."""
        with self.assertRaisesRegex(kind, pattern):
            function(*arguments, **named)

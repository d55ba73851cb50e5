#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Models of xfp.load, against transformers on the unpacked copy, in f32.

tests/cli/python.bats makes NAME.xfp and NAME, its copy, for each of NAMES; tests/models/check_python.py compares all
families.
"""
import os
import unittest

import torch
import transformers
from common import Case, path_of

import xfp

NAMES = os.environ.get("XFP_TEST_MODELS", "").split()
MOST = 1e-3  # of the standard deviation of the logits
EAGER = {"attn_implementation": "eager"}
STEPS = 32

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def load(path, **options):
    return xfp.load(path, dtype=torch.float32, **EAGER, **options)[0]


def load_copy(model, folder):
    return type(model).from_pretrained(folder, dtype=torch.float32, experts_implementation="eager", **EAGER)


def ids_of(model, rows, length):
    vocabulary = model.config.get_text_config().vocab_size
    return (torch.arange(rows * length) ** 2 * 7 % (vocabulary - 3) + 3).reshape(rows, length)


def off(model, copy, **inputs):
    """Largest difference of logits, of the standard deviation of all."""
    with torch.no_grad():
        a, b = model(**inputs).logits, copy(**inputs).logits
    return float((a - b).abs().max() / b.std())


def greedy(model, ids, steps):
    return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=steps, min_new_tokens=steps,
                          do_sample=False, pad_token_id=0)


def same_text(model, copy, ids, steps=STEPS):
    """Number of greedy tokens that are the same, up to a near tie. Raises AssertionError if another one differs."""
    a, b = greedy(model, ids, steps)[0], greedy(copy, ids, steps)[0]
    different = (a != b).nonzero()
    if not len(different):
        return steps
    first = int(different[0])
    with torch.no_grad():
        logits = copy(b[None, :first]).logits[0, -1]
    best = logits.topk(2).values
    assert best[0] - best[1] < MOST * logits.std(), f"token {first} differs"
    return first - ids.shape[1]


def dense_parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


class Models(Case):
    def test_logits_and_text(self):
        for name in NAMES:
            with self.subTest(name):
                model = load(path_of(name + ".xfp"))
                copy = load_copy(model, path_of(name))
                self.assertLess(off(model, copy, input_ids=ids_of(model, 2, 21)), MOST)
                same_text(model, copy, ids_of(model, 1, 5))

    def test_padded_batches(self):
        model = load(path_of("llama-tied.xfp"))
        ids = ids_of(model, 2, 9)
        mask = torch.ones_like(ids)
        mask[0, :4] = 0
        both = model.generate(ids, attention_mask=mask, max_new_tokens=8, min_new_tokens=8, do_sample=False,
                              pad_token_id=0)
        self.assertEqual(both[0, 9:].tolist(), greedy(model, ids[:1, 4:], 8)[0, 5:].tolist())

    def test_sampling_and_beams(self):
        model = load(path_of("llama-tied.xfp"))
        copy = load_copy(model, path_of("llama-tied"))
        ids = ids_of(model, 1, 5)
        for options in ({"do_sample": True, "temperature": 0.1}, {"num_beams": 3}):
            made = []
            for one in (model, copy):
                torch.manual_seed(3)
                made.append(one.generate(ids, max_new_tokens=8, min_new_tokens=8, pad_token_id=0, **options).tolist())
            self.assertEqual(*made)

    def test_dense_parameters(self):
        """Only vectors and routers are in memory."""
        # 2 layers of two norms of 64 elements and two of 16, 2 routers of 4 experts, and the last norm
        self.assertEqual(dense_parameters(load(path_of("qwen3_moe.xfp"))), 2 * (2 * 64 + 2 * 16 + 4 * 64) + 64)
        self.assertEqual(dense_parameters(load(path_of("llama-tied.xfp"))), 2 * 2 * 64 + 64)


if __name__ == "__main__":
    unittest.main()

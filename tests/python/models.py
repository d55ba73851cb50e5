#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Models of xfp.load, against transformers on the unpacked copy, in f32.

tests/cli/python.bats makes NAME.xfp and NAME, its copy, for each of NAMES; tests/models/check_python.py compares all
families.
"""
import dataclasses
import importlib.util
import os
import signal
import threading
import time
import unittest

import numpy as np
import torch
import transformers
from common import Case, path_of

import xfp
from xfp.model import class_of, to_torch
from xfp.placing import Names, Placer
from xfp.quantizer import XfpConfig, XfpQuantizer

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


def padded(model, copy):
    """The largest difference of logits of a batch whose first sequence is padded on the left."""
    ids = ids_of(model, 2, 21)
    mask = torch.ones_like(ids)
    mask[0, :8] = 0
    with torch.no_grad():
        a, b = (one(input_ids=ids, attention_mask=mask).logits[mask.bool()] for one in (model, copy))
    return float((a - b).abs().max() / b.std())


def same_choices(model, copy, steps=8):
    """Raises AssertionError if samples with the same seed, or scores of beams, differ."""
    ids = ids_of(model, 2, 5)
    options = {"attention_mask": torch.ones_like(ids), "max_new_tokens": steps, "min_new_tokens": steps,
               "pad_token_id": 0, "return_dict_in_generate": True, "output_scores": True}
    same, found = [], []
    for seed in range(3):  # one of three may have a near tie
        for one in (model, copy):
            torch.manual_seed(seed)
            found.append(one.generate(ids, do_sample=True, top_k=0, **options).sequences)
        same.append(torch.equal(*found[-2:]))
    assert sum(same) >= 2, "samples differ"
    a, b = (one.generate(ids, num_beams=3, do_sample=False, **options).sequences_scores for one in (model, copy))
    assert (a - b).abs().max() < MOST * max(1, float(b.abs().max())), "scores of beams differ"


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

    def test_embeddings(self):
        model = xfp.load(path_of("bert.xfp"), dtype=torch.float32)[0]
        copy = type(model).from_pretrained(path_of("bert"), dtype=torch.float32)
        ids = ids_of(model, 2, 9)
        with torch.no_grad():
            a, b = (one(ids).last_hidden_state for one in (model, copy))
        self.assertLess(float((a - b).abs().max()), 1e-4)

    def test_types(self):
        model, tokenizer = xfp.load(path_of("qwen3_moe.xfp"))
        self.assertIsNone(tokenizer)
        ids = ids_of(model, 1, 9)
        with torch.no_grad():
            self.assertEqual((model.dtype, model(ids).logits.dtype), (torch.bfloat16, torch.bfloat16))
            exact = load(path_of("qwen3_moe.xfp"))(ids).logits
            self.assertTrue(torch.allclose(model.to(torch.float32)(ids).logits, exact, atol=0.1 * float(exact.std())))

    def test_interrupted(self):
        """Ctrl-C stops a long prompt before its end, and the model computes the same afterwards."""
        self.raise_on_interrupt()
        model = load(path_of("qwen3_moe.xfp"))
        ids, begin = ids_of(model, 1, 1200), time.monotonic()
        with torch.no_grad():
            logits = model(ids).logits
            whole = time.monotonic() - begin
            for part in (0.2, 0.5):
                sent = []

                def interrupt():
                    sent.append(time.monotonic())
                    os.kill(os.getpid(), signal.SIGINT)

                timer = threading.Timer(part * whole, interrupt)
                with self.assertRaises(KeyboardInterrupt):
                    timer.start()
                    for _ in range(20):  # more than one, since the first was slower
                        model(ids)
                self.assertLess(time.monotonic() - sent[0], max(whole, 1))
            self.assertTrue(torch.equal(model(ids).logits, logits))


class OwnLinear(torch.nn.Linear):
    def forward(self, x):
        return x @ self.weight.T


class Refused(Case):
    def placer(self, name, change=None, **config):
        """A Placer of a model without weights."""
        path = path_of(name + ".xfp")
        found = transformers.AutoConfig.from_pretrained(path_of(name), **config)
        with torch.device("meta"):
            model = class_of(found)(found)
        if change:
            change(model)
        opened = xfp.Bundle(path)
        self.addCleanup(opened.close)
        return Placer(model, opened, path, torch.float32)

    def test_parameter_without_weights(self):
        self.refused(r"llama-tied.xfp: model.layers.2.self_attn.q_proj.weight: LlamaForCausalLM has this parameter, but "
                     "the bundle has no weights", self.placer("llama-tied", num_hidden_layers=3).place)

    def test_buffer_without_weights(self):
        """A router's correction bias, for example, which zeros would change."""
        def change(model):
            model.model.layers[1].mlp.register_buffer("bias", torch.zeros(4))
            model.model.layers[1].mlp.register_buffer("computed", torch.zeros(4), persistent=False)

        self.refused("llama-tied.xfp: model.layers.1.mlp.bias: LlamaForCausalLM has this buffer, but the bundle has no "
                     "weights for it", self.placer("llama-tied", change).place)

    def test_unit_without_parameter(self):
        self.refused(r"llama-tied.xfp: model.layers.1.self_attn.q_proj.weight: LlamaForCausalLM has no parameter model",
                     self.placer("llama-tied", num_hidden_layers=1).place)

    def test_module_that_reads_its_weight(self):
        def change(model):
            model.model.layers[1].mlp.up_proj.__class__ = OwnLinear

        self.refused(r"layers.1.mlp.up_proj.weight: OwnLinear reads its parameter .* itself, so it cannot be packed; "
                     "convert again with --format 'dense_mlp=keep'", self.placer("llama-tied", change).place)

    def test_shapes(self):
        self.refused(r"layers.0.mlp.gate_proj.weight: its matrices are not rows of model.layers.0.mlp.gate_proj.weight "
                     r"\[80, 64\]", self.placer("llama-tied", intermediate_size=80).place)
        self.refused(r"experts.\*.gate_proj.weight: 4 matrices \[96, 64\] do not fit .*gate_up_proj \[4, 160, 64\]",
                     self.placer("qwen3_moe", moe_intermediate_size=80).place)

    def test_conversions(self):
        class Permute:
            operations = [transformers.core_model_loading.PermuteForRope()]

        placer = self.placer("llama-tied")
        find = placer.names.find

        def permuted(name):
            key, converter, pattern = find(name)
            return (key, Permute, "") if name.endswith("q_proj.weight") else (key, converter, pattern)

        placer.names.find = permuted
        self.refused(r"q_proj.weight: transformers changes the order of its weights \(PermuteForRope\), so it cannot be "
                     "packed; use xfp unpack", placer.place)

    def test_names(self):
        names = Names(self.placer("qwen3_moe").model)
        key, converter, pattern = names.find("model.layers.1.mlp.experts.0.up_proj.weight")
        self.assertEqual((key, pattern), ("model.layers.1.mlp.experts.gate_up_proj", "mlp.experts.*.up_proj.weight"))
        self.assertIn(pattern, converter.source_patterns)
        self.assertEqual(names.find("layers.1.self_attn.k_norm.weight")[0], "model.layers.1.self_attn.k_norm.weight")

    def test_options(self):
        for option in ("load_in_4bit", "load_in_8bit", "quantization_config", "config", "state_dict"):
            self.refused(f"{option} does not apply: .* leave it out", xfp.load, path_of("llama-tied.xfp"),
                         **{option: True})
        for option in "tp_plan", "tp_size", "device_mesh", "distributed_config":
            self.refused(f"{option} does not apply: xfp multiplies on one device", xfp.load, path_of("llama-tied.xfp"),
                         **{option: "auto"})
        self.refused("torch_dtype does not apply: its name is dtype", xfp.load, path_of("llama-tied.xfp"),
                     torch_dtype=torch.float32)
        self.refused("output_loading_info does not apply", xfp.load, path_of("llama-tied.xfp"),
                     output_loading_info=True)
        model = xfp.load(os.fsencode(path_of("llama-tied.xfp")), trust_remote_code=True,
                         model_class=transformers.LlamaForCausalLM)[0]
        self.assertEqual(model.config.model_type, "llama")
        for bad in transformers.AutoModelForCausalLM, "LlamaForCausalLM":
            self.refused("model_class is .*, but must be the class of a model", xfp.load, path_of("llama-tied.xfp"),
                         model_class=bad)
        self.refused("model_class is BertModel, which needs a BertConfig, but the bundle has a LlamaConfig", xfp.load,
                     path_of("llama-tied.xfp"), model_class=transformers.BertModel)
        self.refused("dtype is torch.float64", xfp.load, path_of("llama-tied.xfp"), dtype=torch.float64)
        self.refused("is a folder; name the bundle in it, or open it with from_pretrained", xfp.load, path_of("qwen2"))

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "accelerate, which device_map needs, is not installed")
    def test_device_map(self):
        for bad in ({"": "disk"}, {"model": "cpu", "lm_head": "disk"}, {"": "mps"}):
            self.refused('the device is .*, but xfp multiplies on the CPU or on one CUDA device; pass "cpu"', xfp.load,
                         path_of("llama-tied.xfp"), device_map=bad, offload_folder="none")

    def test_distributed(self):
        model = self.placer("llama-tied").model
        model.config.distributed_config = object()
        self.refused("xfp multiplies on one device; leave out tp_plan",
                     XfpQuantizer(XfpConfig("a.xfp"))._process_model_before_weight_loading, model)

    def test_types_of_kept_tensors(self):
        data = np.arange(4, dtype=np.uint8)
        kept = dataclasses.replace(xfp.Bundle(path_of("llama-tied.xfp")).tensors[0], dtype="F8_E8M0", data=data)
        self.assertEqual(to_torch(kept).dtype, getattr(torch, "float8_e8m0fnu", torch.uint8))

    def test_experts_of_transformers(self):
        """They read weights, which are packed."""
        model = load(path_of("qwen3_moe.xfp"))
        ids = ids_of(model, 1, 3)
        logits = model(ids).logits
        model.set_experts_implementation("eager")
        with self.assertRaisesRegex(AttributeError, "layers.0.mlp.experts.gate_up_proj is packed .* of xfp"):
            model(ids)
        model.set_experts_implementation("xfp")
        self.assertTrue(torch.equal(model(ids).logits, logits))

    def test_inputs(self):
        model = load(path_of("llama-tied.xfp"))
        self.refused("embed_tokens.weight: row 128 does not exist; there are 128", model, torch.tensor([[5, 128]]))
        self.refused("ids contains a number outside", model, torch.tensor([[5, -1]]))
        self.refused("ids has dtype torch.float32; it must contain integers", model, torch.tensor([[5.0]]))
        self.refused("does not multiply torch.float64; use torch.float32", model.to(torch.float64), torch.tensor([[5]]))
        with self.assertRaisesRegex(AttributeError, "embed_tokens.weight is packed and cannot be read"):
            model.resize_token_embeddings(200)
        self.refused("none.xfp", xfp.load, "none.xfp", kind=xfp.BadInputError)


if __name__ == "__main__":
    unittest.main()

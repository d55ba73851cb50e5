#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Folders for transformers, which python -m xfp folder writes. Bundles are those of models.py."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import torch
from common import Case, path_of, run
from models import ids_of, load
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

import xfp
from xfp.__main__ import main
from xfp.folder import has_chat_template
from xfp.quantizer import XfpConfig, XfpQuantizer

WITHOUT = "from transformers import AutoModelForCausalLM\nAutoModelForCausalLM.from_pretrained({!r})"


class Folders(Case):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = os.path.join(temporary.name, "folder")

    def opened(self, **options):
        return AutoModelForCausalLM.from_pretrained(self.folder, attn_implementation="eager", **options)

    def test_same_as_load(self):
        for name in ("qwen3_moe", "llama-tied"):
            bundle = path_of(name + ".xfp")
            main(["folder", bundle, self.folder])
            self.assertEqual(os.readlink(os.path.join(self.folder, name + ".xfp")), bundle)
            model = self.opened(dtype=torch.float32)
            ids = ids_of(model, 1, 9)
            with torch.no_grad():
                self.assertTrue(torch.equal(model(ids).logits, load(bundle)(ids).logits))
            self.assertEqual({p.dtype for p in self.opened().parameters()}, {torch.bfloat16})
            with open(os.path.join(self.folder, "model.safetensors"), "rb") as file:
                names = json.loads(file.read()[8:].split(b"}}")[0] + b"}}")
            self.assertEqual({name.split(".")[-2] for name in names if name != "__metadata__"} - {"norm", "gate"},
                             {"input_layernorm", "post_attention_layernorm"} |
                             ({"q_norm", "k_norm"} if name == "qwen3_moe" else set()))
            with self.assertRaisesRegex(ValueError, "quantized with xfp and is not serializable"):
                model.save_pretrained(self.folder + "2")
            self.refused("is not empty; name a new folder", main, ["folder", bundle, self.folder])
            shutil.rmtree(self.folder)

    def test_chat_template(self):
        """A folder without one is complete, with a warning; templates may be in several places."""
        bundle = path_of("llama-tied.xfp")
        status, output = run(f"from xfp.__main__ import main\nmain(['folder', {bundle!r}, {self.folder!r}])")
        self.assertEqual(status, 0, output)
        self.assertIn("warning: " + self.folder + ": the tokenizer has no chat template, which chat needs\n", output)
        self.assertFalse(has_chat_template(self.folder))
        for name, text in (("tokenizer_config.json", '{"chat_template": "{{ a }}"}'), ("chat_template.jinja", "{{ a }}")):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            self.assertTrue(has_chat_template(self.folder))
            os.unlink(path)

    def test_other_names(self):
        """The name of a bundle need not end in .xfp."""
        bundle = os.path.join(os.path.dirname(self.folder), "model.bundle")
        os.symlink(path_of("llama-tied.xfp"), bundle)
        main(["folder", bundle, self.folder])
        self.assertEqual(self.opened().config.model_type, "llama")
        for name in "config.json", "model.safetensors":
            bundle = os.path.join(os.path.dirname(self.folder), name)
            os.symlink(path_of("llama-tied.xfp"), bundle)
            self.refused("another file of that name; rename the bundle", main, ["folder", bundle, self.folder + "2"])

    def test_without_the_package(self):
        main(["folder", "--copy", path_of("llama-tied.xfp"), self.folder])
        self.assertFalse(os.path.islink(os.path.join(self.folder, "llama-tied.xfp")))
        status, output = run(WITHOUT.format(self.folder))
        self.assertEqual(status, 1)
        self.assertRegex(output, r"neither a safetensors file .*: llama-tied.xfp")
        status, output = run("import xfp\n" + WITHOUT.format(self.folder))
        self.assertEqual(status, 0, output)

    def test_refused(self):
        main(["folder", path_of("llama-tied.xfp"), self.folder])
        self.refused("dtype is torch.float64; use torch.float32", self.opened, dtype=torch.float64)
        # of transformers, which does not pass the first one on
        for kind, pattern, options in (
                (TypeError, "load_in_4bit", {"load_in_4bit": True}),
                (ValueError, "quantized with XfpConfig", {"quantization_config": BitsAndBytesConfig(load_in_4bit=True)})):
            self.refused(pattern, self.opened, kind=kind, **options)
        bundle = os.path.join(self.folder, "llama-tied.xfp")
        with open(bundle, "rb") as file:
            data = file.read()
        os.unlink(bundle)
        self.refused("llama-tied.xfp: the bundle of this folder is missing; put it back", self.opened,
                     kind=xfp.BadInputError)
        with open(bundle, "wb") as file:
            file.write(data[:len(data) // 2])
        self.refused("llama-tied.xfp: truncated: the weights from model.* on are missing", self.opened,
                     kind=xfp.BadInputError)
        quantizer = XfpQuantizer(XfpConfig("a.xfp"))
        for bad in ({"": "disk"}, {"": "mps"}, "balanced"):
            self.refused('the device is .*, but xfp multiplies on the CPU or on one CUDA device; pass "cpu"',
                         quantizer.validate_environment, device_map=bad)
        quantizer.validate_environment(device_map={"": torch.device("cpu")})
        self.refused("missing.xfp", main, ["folder", "missing.xfp", self.folder + "2"], kind=xfp.BadInputError)
        self.assertFalse(os.path.exists(self.folder + "2"))

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "accelerate, which device_map needs, is not installed")
    def test_device_map(self):
        main(["folder", path_of("llama-tied.xfp"), self.folder])
        self.refused("the device is 'disk'", self.opened, device_map={"": "disk"}, offload_folder="none")

    def test_command(self):
        done = subprocess.run([sys.executable, "-m", "xfp", "folder", "none.xfp", self.folder], text=True,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^python -m xfp: none.xfp: .*\n$")


if __name__ == "__main__":
    unittest.main()

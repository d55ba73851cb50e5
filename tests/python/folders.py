#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Folders for transformers, which python -m xfp folder writes, and its server. Bundles are those of models.py."""
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import torch
from common import Case, path_of, run
from models import ids_of, load
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

import xfp
from xfp.__main__ import main
from xfp.quantizer import XfpConfig, XfpQuantizer

WITHOUT = "from transformers import AutoModelForCausalLM\nAutoModelForCausalLM.from_pretrained({!r})"
NEEDED = "fastapi", "uvicorn", "openai", "pydantic", "accelerate"


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
                (ValueError, "quantized with XfpConfig", {"quantization_config": BitsAndBytesConfig(load_in_4bit=True)}),
                (xfp.UsageError, "device_map contains 'disk'", {"device_map": {"": "disk"}, "offload_folder": "none"})):
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

    def test_command(self):
        done = subprocess.run([sys.executable, "-m", "xfp", "folder", "none.xfp", self.folder], text=True,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^python -m xfp: none.xfp: .*\n$")

    @unittest.skipUnless(all(map(importlib.util.find_spec, NEEDED)), f"needs {' '.join(NEEDED)}")
    def test_serve(self):
        main(["folder", path_of("qwen3_moe.xfp"), self.folder])
        words = {f"w{i}": i for i in range(128)}
        with open(os.path.join(self.folder, "tokenizer.json"), "w", encoding="ascii") as file:
            json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                       "post_processor": None, "decoder": None,
                       "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
                       "pre_tokenizer": {"type": "Whitespace"}}, file)
        with open(os.path.join(self.folder, "tokenizer_config.json"), "w", encoding="ascii") as file:
            json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "w0",
                       "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"}, file)
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        server = subprocess.Popen([sys.executable, "-m", "xfp", "serve", self.folder, "--port", str(port)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        body = {"model": self.folder, "messages": [{"role": "user", "content": "w3 w5"}], "max_tokens": 4}
        request = urllib.request.Request(f"http://localhost:{port}/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        found = None
        while found is None and server.poll() is None:
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    found = json.load(answer)
            except urllib.error.URLError:
                time.sleep(0.5)
        server.terminate()
        errors = server.communicate()[1]
        self.assertIsNotNone(found, errors)
        self.assertEqual(found["usage"]["completion_tokens"], 4, errors)


if __name__ == "__main__":
    unittest.main()

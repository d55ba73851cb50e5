#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Are the inputs that xfp-calibrate stores those of the modules of Hugging Face transformers, within one bf16 ulp?

    layer_inputs.py [FAMILY...]

Runs the models of check_families.py in f64 with eager attention, and with f64 where transformers asks for f32, records
the input of every module of a layer (forward_pre_hook), and compares it with the rows of the module's tensors, for
every tensor and expert. Values below a 32nd of their vector's RMS are compared with the ulp of that. Needs the
XFP_TEST_TOOLS of a build, and xfp on PATH. Prints SKIP and the reason if transformers is not installed.
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from check_families import CASES, EAGER, MORE, kind_of, make  # noqa: E402
from inputs_file import from_bf16, stamped  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoConfig  # noqa: E402


def ulps(rows, x):
    """Largest distance in ulps of bf16."""
    x = x.astype(np.float64).reshape(rows.shape)
    floor = np.sqrt((x ** 2).mean(-1, keepdims=True)) / 32
    ulp = 2.0 ** (np.floor(np.log2(np.maximum(np.maximum(np.abs(x), floor), 1e-30))) - 7)
    return float((np.abs(from_bf16(rows) - x) / ulp).max())


class Recorder:
    """Inputs of modules by layer and name within the layer, and arguments of experts."""

    def __init__(self, model):
        self.inputs, self.modules = {}, {}
        for name, module in model.named_modules():
            match = re.fullmatch(r"(?!.*(?:vision|visual)).*\blayers\.(\d+)\.(.+)", name)
            key = (int(match[1]), match[2]) if match else (-1, name) if name == "lm_head" else None
            if key:
                self.modules[key] = module
                module.register_forward_pre_hook(self.hook(key), with_kwargs=True)

    def hook(self, key):
        def record(_module, args, kwargs):
            self.inputs[key] = [*args, *kwargs.values()]
        return record

    def vectors(self, layer, name):
        x = self.inputs[layer, name][0]
        return x.reshape(-1, x.shape[-1]).numpy()

    def experts(self, layer):
        """Tokens, selected experts, and for each expert the inputs of its down projection."""
        name = next(n for (at, n) in self.inputs if at == layer and n.endswith(".experts"))
        module, given = self.modules[layer, name], self.inputs[layer, name]
        x = given[0].reshape(-1, given[0].shape[-1])
        if len(given) == 1:
            return self.scaled_experts(layer, name, x)
        chosen = next(g for g in given[1:] if not g.is_floating_point())
        inner = []
        for expert in range(len(module.gate_up_proj)):
            own = x[(chosen == expert).any(-1)]
            if hasattr(module, "gate_up_proj_bias"):  # gpt_oss, whose stacks are transposed
                both = own @ module.gate_up_proj[expert] + module.gate_up_proj_bias[expert]
                inner.append(module._apply_gate(both).numpy())
                continue
            gate, up = torch.nn.functional.linear(own, module.gate_up_proj[expert]).chunk(2, -1)
            inner.append((module.act_fn(gate) * up).numpy())
        return x.numpy(), np.sort(chosen.numpy(), -1), inner


    def scaled_experts(self, layer, name, x):
        """Llama 4: all tokens for each expert, times their scores, which are 0 unless it is selected. xfp stores the
        inputs without scores, since gate and up are linear."""
        module = self.modules[layer, name]
        scaled = x.reshape(len(module.gate_up_proj), -1, x.shape[-1])
        selected = (scaled != 0).any(-1)
        inner = []
        for expert, own in enumerate(selected):
            gate, up = (scaled[expert][own] @ module.gate_up_proj[expert]).chunk(2, -1)
            inner.append((module.act_fn(gate) * up).numpy())
        chosen = np.array([np.nonzero(one)[0] for one in selected.numpy().T])
        return self.vectors(layer, name.replace("experts", "router")), chosen, inner


class Double:
    """torch, for models that convert to f32."""

    def __getattr__(self, name):
        return getattr(torch, "float64" if name == "float32" else name)


def use_double():
    for name, module in list(sys.modules.items()):
        if name.startswith("transformers.models.") and vars(module).get("torch") is torch:
            module.torch = Double()


def compare_layer(inputs, recorder, layer, seen):
    worst = 0
    for tensor, (_, kind) in sorted(inputs.tensors.items()):
        name = re.sub(r"\.weight$", "", re.search(r"layers\.\d+\.(.*)", tensor)[1]).replace("block_sparse_moe", "mlp")
        expert = re.fullmatch(r"(.*\.experts)(?:\.(\d+))?\.(.*)", name)
        if not expert:
            tokens, rows = inputs.rows_of(tensor)
            assert len(tokens) == inputs.tokens, tensor
            worst = max(worst, ulps(rows, recorder.vectors(layer, name)))
            seen.add((layer, name))
            continue
        x, chosen, inner = recorder.experts(layer)
        assert (chosen == inputs.experts).all(), tensor
        down = expert[3] in ("down_proj", "w2")
        for number in [int(expert[2])] if expert[2] else range(len(inner)):
            tokens, rows = inputs.rows_of(tensor, number)
            assert (tokens == np.nonzero((chosen == number).any(-1))[0]).all(), (tensor, number)
            if len(rows):
                worst = max(worst, ulps(rows, inner[number] if down else x[tokens]))
        seen.add((layer, expert[1]))
    return worst


def missing(recorder, layers, seen):
    """Modules with matrices whose inputs are not stored."""
    return [key for key, module in recorder.modules.items()
            if 0 <= key[0] < layers and key not in seen and key in recorder.inputs and
            any(w.dim() in (2, 3) for n, w in module.named_parameters(recurse=False))
            and not re.search("conv1d|moe_statics", key[1])]


def judge(case, folder):
    plain, work, tokens = (os.path.join(folder, name) for name in ("plain", "out.work", "tokens.npy"))
    text = case.get("text_config", case)
    length = 21 if text["max_position_embeddings"] < 200 else 150
    ids = (np.arange(4 * length) ** 2 * 7 % text["vocab_size"]).reshape(4, length)
    np.save(tokens, ids)
    make(case, plain)
    cache = os.path.join(folder, "cache")
    os.environ.update(XFP_WORK=work, XFP_CACHE=cache)
    subprocess.run(["xfp", "prepare", plain, "-o", os.path.join(folder, "out"), "--work", work, "--cache", cache],
                   check=True, capture_output=True)
    subprocess.run(["xfp-calibrate", "--begin", "--tokens", tokens, plain], check=True, stdout=subprocess.DEVNULL)
    config = AutoConfig.from_pretrained(plain)
    config.pad_token_id = None
    model = kind_of(config).from_pretrained(plain, config=config, dtype=torch.float64, **EAGER).eval()
    recorder = Recorder(model)
    use_double()
    with torch.no_grad():
        model(input_ids=torch.tensor(ids))
        layers, worst, seen = text["num_hidden_layers"], 0, set()
        for layer in range(layers + 1):
            subprocess.run(["xfp-calibrate", f"l{layer}"], check=True)
        for layer in range(layers):
            worst = max(worst, compare_layer(stamped(work, layer, cache), recorder, layer, seen))
        head = stamped(work, layers, cache)
        assert len(head.tensors) == (not config.get_text_config().tie_word_embeddings), head.tensors
        worst = max(worst, ulps(head.values["head"], recorder.vectors(-1, "lm_head")))
    return worst, missing(recorder, layers, seen)


def main(families):
    failed = 0
    for number, case in enumerate(CASES + MORE):
        if families and case["model_type"] not in families:
            continue
        with tempfile.TemporaryDirectory() as folder:
            worst, left = judge(case, folder)
        failed += not worst <= 1 or bool(left)
        print(f"{case['model_type'] + ' ' + str(number):24} off by {worst:.3f} ulp{f', without {left}' if left else ''}",
              flush=True)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write headers of large models in their published sizes and forms, as sparse files; the weights are zeros.

    published.py list
    published.py [--layers N] [--dense N] [--random ROWS] MODEL FOLDER
    published.py --estimates FOLDER
    published.py --selected FOLDER

--layers and --dense replace the number of layers, and of those before the first layer with experts. --random fills
norms, routers and the first ROWS rows of the word embedding with random numbers, so that tokens below ROWS select many
experts; it also writes tokens.npy, 512 of them.

--estimates writes each model with all its layers, and prints what `xfp eval` needs at least, in reproducible and in
fast arithmetic, for 512 tokens.

--selected prints how many experts the tokens of a model of one layer select, whose attention is zero: that of
--random with --layers 1 --dense 0.

Names, shapes and packed forms are those of tests/families_published.py; layers and other numbers are in this table.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import families
from packed_numbers import bf16

YARN = {"beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
LATENT = {"num_experts_per_tok": 8, "norm_topk_prob": True, "scoring_func": "sigmoid", "topk_method": "noaux_tc"}
# the model of families_published.py, layers, dense layers before the first with experts, other sizes, config
MODELS = {
    "deepseek-v3": ("deepseek_v3-fp8", 61, 3, {}, {
        **LATENT, "n_group": 8, "topk_group": 4, "routed_scaling_factor": 2.5, "max_position_embeddings": 163840,
        "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, **YARN}}),
    "kimi-k2": ("kimi_k2-fp8", 61, 1, {}, {
        **LATENT, "routed_scaling_factor": 2.827, "rope_theta": 50000.0, "max_position_embeddings": 131072,
        "rope_scaling": {"type": "yarn", "factor": 32, "original_max_position_embeddings": 4096, **YARN}}),
    "gpt-oss-120b": ("gpt_oss-mxfp4", 36, 0, {"E": 128}, {
        "num_local_experts": 128, "sliding_window": 128, "max_position_embeddings": 131072,
        "layer_types": ["sliding_attention", "full_attention"] * 18}),
    "glm-4.5": ("glm4_moe-fp8", 92, 3, {}, {
        "num_experts_per_tok": 8, "routed_scaling_factor": 2.5, "norm_topk_prob": True,
        "max_position_embeddings": 131072}),
    "minimax-m2": ("minimax_m2-fp8", 62, 0, {}, {
        "num_experts_per_tok": 8, "rotary_dim": 64, "max_position_embeddings": 196608}),
    "llama-4-maverick": ("llama4-fp8", 48, 0, {}, {"num_experts_per_tok": 1, "max_position_embeddings": 1048576}),
}
TOKENS = 512


def layer_numbers(layers, dense, alternate):
    """Numbers that layers 0, 1 and 2 of the two-layer tables stand for."""
    experts = [i for i in range(layers) if (i % 2 if alternate else i >= dense)]
    return {"{0-1}": range(layers), "0": [i for i in range(layers) if i not in experts], "1": experts, "2": [layers]}


def deepen(table, numbers):
    lines = []
    for line in table.splitlines():
        layer = re.search(r"(?<=[ .]layers\.)(\{0-1\}|[012])(?=\.)", line)
        if not layer or line.split()[0] == "vision":
            lines.append(line)
            continue
        lines += [line[:layer.start()] + str(number) + line[layer.end():] for number in numbers[layer[0]]]
    return "\n".join(lines) + "\n"


def with_keys(config, keys):
    if "text_config" in config:
        return {**config, "text_config": with_keys(config["text_config"], keys)}
    return {**config, **keys}


def register(name, layers=None, dense=None):
    """Add the model to those of families.py."""
    base, all_layers, all_dense, more, keys = MODELS[name]
    layers, dense = layers or all_layers, all_dense if dense is None else dense
    family, sizes, config, table, publish = families.MODELS[base + "-real"]
    numbers = layer_numbers(layers, dense, "llama4" in base)
    table = table.replace(f"{{*0-{sizes['E'] - 1}}}", f"{{*0-{more.get('E', sizes['E']) - 1}}}")
    keys = {**keys, "num_hidden_layers": layers, "first_k_dense_replace": dense}
    if "layer_types" in keys:
        keys["layer_types"] = keys["layer_types"][:layers]
    families.model(name, family, {**sizes, **more}, with_keys(config, keys), deepen(table, numbers), publish)


class Random(families.families_published.Hole):
    """Random content for the first `rows` of a tensor; the rest is a hole."""

    def __init__(self, tensor, rows):
        super().__init__(tensor.dtype, tensor.shape)
        self.tensor, self.rows = tensor, rows

    def write(self, file):
        end, shape = file.tell() + self.size, self.tensor.shape
        values = np.random.default_rng(self.size).standard_normal([min(self.rows, shape[0])] + shape[1:], "f4")
        values = 1 + values / 4 if self.tensor.class_ == "norm" else values * np.float32(shape[-1] ** -0.5)
        file.write(values.astype("<f4").tobytes() if self.tensor.dtype == "F32" else bf16(values).tobytes())
        file.seek(end)


def fill(rows):
    """Let families.py write random norms, routers and embedding rows."""
    plain = families.content

    def content(tensor):
        if tensor.class_ in ("norm", "router", "embedding"):
            return Random(tensor, rows if tensor.class_ == "embedding" else tensor.shape[0])
        return plain(tensor)
    families.content = content


def estimates(folder):
    tokens = os.path.join(folder, "tokens.npy")
    os.makedirs(folder)
    np.save(tokens, np.zeros((1, TOKENS), "u4"))
    print("| model | layers | reproducible | `--fast` |\n|---|---|---|---|")
    for name in MODELS:
        model = os.path.join(folder, name)
        register(name)
        families.make(name, model)
        needs = []
        for options in [], ["--fast"]:
            said = subprocess.run(["xfp", "eval", "--memory", "1MB", "--tokens", tokens, *options, model],
                                  stderr=subprocess.PIPE, text=True, check=False).stderr
            need = re.search(r" need (.*?);", said)
            if not need:
                sys.exit(f"{name}: {said}")
            needs.append(need[1])
        shutil.rmtree(model)
        print(f"| {name} | {MODELS[name][1]} | {' | '.join(needs)} |", flush=True)


def selected(folder):
    """By DeepSeek-V3's router: sigmoids, of which the best two score a group."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.tell()

    def read(name):
        tensor = header[name]
        dtype = {"BF16": "<u2", "F32": "<f4"}[tensor["dtype"]]
        w = np.memmap(os.path.join(folder, "model.safetensors"), dtype, "r", data + tensor["data_offsets"][0],
                      tuple(tensor["shape"]))
        return w if dtype == "<f4" else w[:1 << 13].astype("<u4") << 16

    ids = np.load(os.path.join(folder, "tokens.npy")).ravel()
    x = read("model.embed_tokens.weight")[ids].view("<f4").astype(float)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"])
    x *= read("model.layers.0.post_attention_layernorm.weight").view("<f4")
    scores = 1 / (1 + np.exp(-x @ read("model.layers.0.mlp.gate.weight").view("<f4").T.astype(float)))
    scores += np.asarray(read("model.layers.0.mlp.gate.e_score_correction_bias"))
    groups = scores.reshape(len(ids), config["n_group"], -1)
    best = np.sort(groups, -1)[..., -2:].sum(-1).argsort(-1)[:, -config["topk_group"]:]
    kept = np.full_like(groups, -np.inf)
    np.put_along_axis(kept, best[..., None], np.take_along_axis(groups, best[..., None], 1), 1)
    experts = kept.reshape(scores.shape).argsort(-1)[:, -config["num_experts_per_tok"]:]
    print(f"{len(np.unique(experts))} of {scores.shape[1]} experts, {np.bincount(experts.ravel()).max()} tokens at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--dense", type=int)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--estimates", action="store_true")
    parser.add_argument("--selected", action="store_true")
    parser.add_argument("model", nargs="?")
    parser.add_argument("folder", nargs="?")
    arguments = parser.parse_args()
    if arguments.estimates and arguments.model and not arguments.folder:
        estimates(arguments.model)
    elif arguments.selected and arguments.model and not arguments.folder:
        selected(arguments.model)
    elif arguments.model == "list":
        print("\n".join(MODELS))
    elif arguments.model in MODELS and arguments.folder:
        register(arguments.model, arguments.layers, arguments.dense)
        if arguments.random:
            fill(arguments.random)
        families.make(arguments.model, arguments.folder)
        if arguments.random:
            np.save(os.path.join(arguments.folder, "tokens.npy"),
                    np.random.default_rng(1).permutation(arguments.random)[:TOKENS].astype("u4").reshape(1, -1))
    else:
        parser.error("expected a model of `published.py list` and a folder")


if __name__ == "__main__":
    main()

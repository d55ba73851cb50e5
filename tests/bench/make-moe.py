#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a mixture of experts (qwen3_moe) with random bf16 weights, in little time: all layers have the same ones.

    make-moe.py [--layers N] [--experts N] FOLDER

By default 13 layers of 64 experts, 4 billion weights, in shards of a layer each. A conversion whose cache is not empty
then fits one layer and finds the others. tests/measure-peak tells what `xfp eval` takes of memory.
"""
import argparse
import json
import os
import struct

import numpy as np

HIDDEN, EXPERT, HEADS, KV_HEADS, HEAD, VOCABULARY = 2048, 768, 16, 4, 128, 32000


def layer(experts):
    yield "input_layernorm.weight", [HIDDEN]
    for name, rows in (("q", HEADS * HEAD), ("k", KV_HEADS * HEAD), ("v", KV_HEADS * HEAD)):
        yield f"self_attn.{name}_proj.weight", [rows, HIDDEN]
    for name in "qk":
        yield f"self_attn.{name}_norm.weight", [HEAD]
    yield "self_attn.o_proj.weight", [HIDDEN, HEADS * HEAD]
    yield "post_attention_layernorm.weight", [HIDDEN]
    yield "mlp.gate.weight", [experts, HIDDEN]
    for expert in range(experts):
        yield f"mlp.experts.{expert}.gate_proj.weight", [EXPERT, HIDDEN]
        yield f"mlp.experts.{expert}.up_proj.weight", [EXPERT, HIDDEN]
        yield f"mlp.experts.{expert}.down_proj.weight", [HIDDEN, EXPERT]


def weights(random, name, shape):
    """bf16: 1 for norms, otherwise normal, of a width that preserves the size of activations."""
    values = np.ones(shape, "f4") if "norm" in name else random.standard_normal(shape, "f4")
    if len(shape) == 2 and name != "model.embed_tokens.weight":
        values *= np.float32(shape[1] ** -0.5)
    return (values.view("u4") >> 16).astype("<u2").tobytes()


def write(path, tensors):
    header, at = {}, 0
    for name, shape, _ in tensors:
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors:
            file.write(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=13)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("folder")
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    os.makedirs(arguments.folder)
    shards = arguments.layers + 1
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    one = [(name, shape, weights(random, name, shape)) for name, shape in layer(arguments.experts)]
    index = {}
    for number in range(arguments.layers):
        tensors = [(f"model.layers.{number}.{name}", shape, data) for name, shape, data in one]
        write(os.path.join(arguments.folder, names[number]), tensors)
        index.update({name: names[number] for name, _, _ in tensors})
    ends = [("model.embed_tokens.weight", [VOCABULARY, HIDDEN]), ("model.norm.weight", [HIDDEN]),
            ("lm_head.weight", [VOCABULARY, HIDDEN])]
    write(os.path.join(arguments.folder, names[-1]), [(n, s, weights(random, n, s)) for n, s in ends])
    index.update({name: names[-1] for name, _ in ends})
    with open(os.path.join(arguments.folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": index}, file)
    config = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": HIDDEN,
              "num_hidden_layers": arguments.layers, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
              "head_dim": HEAD, "intermediate_size": 4 * EXPERT, "moe_intermediate_size": EXPERT,
              "num_experts": arguments.experts, "num_experts_per_tok": 8, "norm_topk_prob": True,
              "vocab_size": VOCABULARY, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
              "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16"}
    with open(os.path.join(arguments.folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a mixture of experts (qwen3_moe) with random bf16 weights, in little time: all layers have the same ones.

    make-moe.py [--layers N] [--experts N] [--small] [--distinct] [--ids N] FOLDER

By default 13 layers of 64 experts, 4 billion weights, in shards of a layer each. A conversion whose cache is not empty
then fits one layer and finds the others. tests/measure-peak tells what `xfp eval` takes of memory.

--distinct gives each layer its own weights, with rows and columns of different sizes, so that routers prefer some
experts. --small has a quarter of the hidden size and of the vocabulary. --ids writes so many token ids to ids.npy,
in sequences of 512, for `xfp convert --calibrate-ids`.
"""
import argparse
import json
import os
import struct

import numpy as np

HEAD = 128


class Sizes:
    def __init__(self, small):
        part = 4 if small else 1
        self.hidden, self.expert, self.heads, self.kv_heads, self.vocabulary = (
            2048 // part, 768 // part, 16 // part, 4 // part, 32000 // part)


def layer(sizes, experts):
    yield "input_layernorm.weight", [sizes.hidden]
    for name, rows in (("q", sizes.heads * HEAD), ("k", sizes.kv_heads * HEAD), ("v", sizes.kv_heads * HEAD)):
        yield f"self_attn.{name}_proj.weight", [rows, sizes.hidden]
    for name in "qk":
        yield f"self_attn.{name}_norm.weight", [HEAD]
    yield "self_attn.o_proj.weight", [sizes.hidden, sizes.heads * HEAD]
    yield "post_attention_layernorm.weight", [sizes.hidden]
    yield "mlp.gate.weight", [experts, sizes.hidden]
    for expert in range(experts):
        yield f"mlp.experts.{expert}.gate_proj.weight", [sizes.expert, sizes.hidden]
        yield f"mlp.experts.{expert}.up_proj.weight", [sizes.expert, sizes.hidden]
        yield f"mlp.experts.{expert}.down_proj.weight", [sizes.hidden, sizes.expert]


def weights(random, name, shape, distinct=False):
    """bf16: 1 for norms, otherwise normal, of a width that preserves the size of activations."""
    values = np.ones(shape, "f4") if "norm" in name else random.standard_normal(shape, "f4")
    if len(shape) == 2 and name != "model.embed_tokens.weight":
        values *= np.float32(shape[1] ** -0.5)
        if distinct:
            values *= np.exp(random.standard_normal((shape[0], 1), "f4") * np.float32(.3))
            values *= np.exp(random.standard_normal((1, shape[1]), "f4") * np.float32(.3))
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
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--ids", type=int, default=0)
    parser.add_argument("folder")
    arguments = parser.parse_args()
    sizes = Sizes(arguments.small)
    random = np.random.default_rng(1)
    os.makedirs(arguments.folder)
    shards = arguments.layers + 1
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    one, index = None, {}
    for number in range(arguments.layers):
        if not one or arguments.distinct:
            one = [(name, shape, weights(random, name, shape, arguments.distinct))
                   for name, shape in layer(sizes, arguments.experts)]
        tensors = [(f"model.layers.{number}.{name}", shape, data) for name, shape, data in one]
        write(os.path.join(arguments.folder, names[number]), tensors)
        index.update({name: names[number] for name, _, _ in tensors})
    ends = [("model.embed_tokens.weight", [sizes.vocabulary, sizes.hidden]), ("model.norm.weight", [sizes.hidden]),
            ("lm_head.weight", [sizes.vocabulary, sizes.hidden])]
    write(os.path.join(arguments.folder, names[-1]), [(n, s, weights(random, n, s)) for n, s in ends])
    index.update({name: names[-1] for name, _ in ends})
    with open(os.path.join(arguments.folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": index}, file)
    config = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": sizes.hidden,
              "num_hidden_layers": arguments.layers, "num_attention_heads": sizes.heads, "num_key_value_heads": sizes.kv_heads,
              "head_dim": HEAD, "intermediate_size": 4 * sizes.expert, "moe_intermediate_size": sizes.expert,
              "num_experts": arguments.experts, "num_experts_per_tok": 8, "norm_topk_prob": True,
              "vocab_size": sizes.vocabulary, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
              "tie_word_embeddings": False, "hidden_act": "silu", "torch_dtype": "bfloat16"}
    with open(os.path.join(arguments.folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)
    if arguments.ids:
        # Frequencies as those of words: half of the tokens are a few hundred different ones.
        ids = (sizes.vocabulary * random.random((-(-arguments.ids // 512), 512)) ** 4).astype("u4")
        np.save(os.path.join(arguments.folder, "ids.npy"), ids)


if __name__ == "__main__":
    main()

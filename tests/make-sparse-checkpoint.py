#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a checkpoint with real headers in sparse files: for `xfp plan`, which reads only headers.

usage: make-sparse-checkpoint.py [MODEL] FOLDER

MODEL is 397b, the default, or 35b: mixtures of experts with linear attention (qwen3_5_moe), in the published shapes;
or 30b and 235b-fp8: mixtures of experts (qwen3_moe), with a file per layer, the latter in 8-bit floats with a scale
per block. Without sparse files these would need hundreds of GB.
"""
import json
import os
import struct
import sys

SHAPES = {
    "397b": dict(layers=60, hidden=4096, experts=512, expert=1024, shared=1024, heads=32, linear_v_heads=64, vocab=248320),
    "35b": dict(layers=40, hidden=2048, experts=256, expert=512, shared=512, heads=16, linear_v_heads=32, vocab=248320),
}
KV_HEADS, HEAD, LINEAR_K_HEADS, LINEAR_HEAD, KERNEL, SHARD = 2, 256, 16, 128, 4, 8 << 30


def mixture(prefix, s):
    yield prefix + "mlp.gate.weight", [s["experts"], s["hidden"]]
    yield prefix + "mlp.experts.gate_up_proj", [s["experts"], 2 * s["expert"], s["hidden"]]
    yield prefix + "mlp.experts.down_proj", [s["experts"], s["hidden"], s["expert"]]
    for name in ("gate", "up"):
        yield prefix + f"mlp.shared_expert.{name}_proj.weight", [s["shared"], s["hidden"]]
    yield prefix + "mlp.shared_expert.down_proj.weight", [s["hidden"], s["shared"]]
    yield prefix + "mlp.shared_expert_gate.weight", [1, s["hidden"]]
    for name in ("input_layernorm", "post_attention_layernorm"):
        yield prefix + name + ".weight", [s["hidden"]]


def full_attention(prefix, s):
    yield prefix + "self_attn.q_proj.weight", [2 * s["heads"] * HEAD, s["hidden"]]
    yield prefix + "self_attn.k_proj.weight", [KV_HEADS * HEAD, s["hidden"]]
    yield prefix + "self_attn.v_proj.weight", [KV_HEADS * HEAD, s["hidden"]]
    yield prefix + "self_attn.o_proj.weight", [s["hidden"], s["heads"] * HEAD]
    yield prefix + "self_attn.q_norm.weight", [HEAD]
    yield prefix + "self_attn.k_norm.weight", [HEAD]


def linear_attention(prefix, s):
    keys, values = LINEAR_K_HEADS * LINEAR_HEAD, s["linear_v_heads"] * LINEAR_HEAD
    yield prefix + "linear_attn.in_proj_qkv.weight", [2 * keys + values, s["hidden"]]
    yield prefix + "linear_attn.in_proj_z.weight", [values, s["hidden"]]
    yield prefix + "linear_attn.in_proj_b.weight", [s["linear_v_heads"], s["hidden"]]
    yield prefix + "linear_attn.in_proj_a.weight", [s["linear_v_heads"], s["hidden"]]
    yield prefix + "linear_attn.out_proj.weight", [s["hidden"], values]
    yield prefix + "linear_attn.conv1d.weight", [2 * keys + values, 1, KERNEL]
    yield prefix + "linear_attn.A_log", [s["linear_v_heads"]]
    yield prefix + "linear_attn.dt_bias", [s["linear_v_heads"]]
    yield prefix + "linear_attn.norm.weight", [LINEAR_HEAD]


def tensors(s):
    top = "model.language_model."
    yield top + "embed_tokens.weight", [s["vocab"], s["hidden"]]
    for layer in range(s["layers"]):
        prefix = f"{top}layers.{layer}."
        yield from (full_attention if layer % 4 == 3 else linear_attention)(prefix, s)
        yield from mixture(prefix, s)
    yield top + "norm.weight", [s["hidden"]]
    yield "lm_head.weight", [s["vocab"], s["hidden"]]


def size(shape):
    count = 2
    for n in shape:
        count *= n
    return count


def write_shard(path, part):
    header, offset = {}, 0
    for name, shape, *dtype in part:
        end = offset + size(shape) // (2 if dtype else 1)
        header[name] = {"dtype": dtype[0] if dtype else "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    return offset


QWEN3_MOE = {
    "30b": dict(layers=48, hidden=2048, experts=128, expert=768, mlp=6144, heads=32, head=128, vocab=151936, fp8=False),
    "235b-fp8": dict(layers=94, hidden=4096, experts=128, expert=1536, mlp=12288, heads=64, head=128, vocab=151936, fp8=True),
}


def projection(name, rows, cols, fp8):
    if not fp8:
        yield name, [rows, cols]
        return
    yield name, [rows, cols], "F8_E4M3"
    yield name + "_scale_inv", [-(-rows // 128), -(-cols // 128)]


def qwen3_moe_layer(layer, s):
    prefix, hidden, heads = f"model.layers.{layer}.", s["hidden"], s["heads"] * s["head"]
    for name in ("input_layernorm", "post_attention_layernorm"):
        yield prefix + name + ".weight", [hidden]
    for name in ("q_norm", "k_norm"):
        yield prefix + f"self_attn.{name}.weight", [s["head"]]
    for name, rows, cols in (("q", heads, hidden), ("k", 512, hidden), ("v", 512, hidden), ("o", hidden, heads)):
        yield from projection(prefix + f"self_attn.{name}_proj.weight", rows, cols, s["fp8"])
    yield prefix + "mlp.gate.weight", [s["experts"], hidden]
    for expert in range(s["experts"]):
        for name in ("gate", "up", "down"):
            shape = [hidden, s["expert"]] if name == "down" else [s["expert"], hidden]
            yield from projection(prefix + f"mlp.experts.{expert}.{name}_proj.weight", *shape, s["fp8"])


def qwen3_moe(folder, s):
    shards = [list(qwen3_moe_layer(layer, s)) for layer in range(s["layers"])]
    shards[0].append(("model.embed_tokens.weight", [s["vocab"], s["hidden"]]))
    shards[-1] += [("model.norm.weight", [s["hidden"]]), ("lm_head.weight", [s["vocab"], s["hidden"]])]
    packing = dict(quantization_config=dict(activation_scheme="dynamic", fmt="e4m3", quant_method="fp8",
                                            weight_block_size=[128, 128])) if s["fp8"] else {}
    write(folder, shards, dict(
        model_type="qwen3_moe", architectures=["Qwen3MoeForCausalLM"], hidden_size=s["hidden"],
        num_hidden_layers=s["layers"], num_attention_heads=s["heads"], num_key_value_heads=4, head_dim=s["head"],
        intermediate_size=s["mlp"], moe_intermediate_size=s["expert"], num_experts=s["experts"], num_experts_per_tok=8,
        vocab_size=s["vocab"], torch_dtype="bfloat16", tie_word_embeddings=False, **packing))


def write(folder, shards, config):
    os.mkdir(folder)
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    total = sum(write_shard(f"{folder}/{n}", part) for n, part in zip(names, shards))
    where = {t[0]: n for n, part in zip(names, shards) for t in part}
    with open(f"{folder}/model.safetensors.index.json", "w") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": where}, file)
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file, indent=1)


def main():
    if len(sys.argv) not in (2, 3) or (len(sys.argv) == 3 and sys.argv[1] not in (*SHAPES, "235b-fp8")):
        sys.exit(__doc__)
    name, folder = sys.argv[1:] if len(sys.argv) == 3 else ("397b", *sys.argv[1:])
    if name in QWEN3_MOE:
        qwen3_moe(folder, QWEN3_MOE[name])
        return
    s = SHAPES[name]
    shards, filled = [[]], 0
    for tensor in tensors(s):
        if shards[-1] and filled + size(tensor[1]) > SHARD:
            shards.append([])
            filled = 0
        shards[-1].append(tensor)
        filled += size(tensor[1])
    text = dict(model_type="qwen3_5_moe_text", hidden_size=s["hidden"], num_hidden_layers=s["layers"],
                num_experts=s["experts"], moe_intermediate_size=s["expert"],
                shared_expert_intermediate_size=s["shared"], num_attention_heads=s["heads"],
                num_key_value_heads=KV_HEADS, head_dim=HEAD, linear_num_key_heads=LINEAR_K_HEADS,
                linear_num_value_heads=s["linear_v_heads"], linear_key_head_dim=LINEAR_HEAD,
                linear_value_head_dim=LINEAR_HEAD, linear_conv_kernel_dim=KERNEL, vocab_size=s["vocab"],
                layer_types=["full_attention" if i % 4 == 3 else "linear_attention" for i in range(s["layers"])])
    write(folder, shards, dict(model_type="qwen3_5_moe", architectures=["Qwen3_5MoeForConditionalGeneration"],
                               torch_dtype="bfloat16", tie_word_embeddings=False, text_config=text))


if __name__ == "__main__":
    main()

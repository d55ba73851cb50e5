# SPDX-License-Identifier: Apache-2.0
"""The matrices of a generated checkpoint as a GGUF file that llama.cpp's quantizer takes (GGUF version 3)."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from safetensors_io import read_header  # noqa: E402

ALIGN = 32
F32, BF16 = 0, 30  # tensor types
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(config):
    heads = config["num_attention_heads"]
    numbers = {
        "llama.block_count": config["num_hidden_layers"], "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"], "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": heads, "llama.rope.dimension_count": config["head_dim"],
        "llama.vocab_size": config["vocab_size"], "general.file_type": 32,
    }
    pairs = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    pairs += [text(key) + struct.pack("<II", 4, value) for key, value in numbers.items()]
    pairs.append(text("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, config["rms_norm_eps"]))
    return pairs


def rename(name):
    name = name.removesuffix(".weight")
    if name.startswith("model.layers."):
        layer, part = name.removeprefix("model.layers.").split(".", 1)
        return f"blk.{layer}.{NAMES[part]}.weight"
    return {"model.embed_tokens": "token_embd.weight", "model.norm": "output_norm.weight"}[name]


def write(folder, path):
    """Dense checkpoints of one file alone. Norms become f32, as llama.cpp's own converter has them."""
    source = os.path.join(folder, "model.safetensors")
    header, start = read_header(source)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        pairs = metadata(json.load(file))
    entries, offset, sizes = b"", 0, []
    for name, entry in header.items():
        shape = entry["shape"][::-1]
        wide = len(shape) == 1
        size = (entry["data_offsets"][1] - entry["data_offsets"][0]) * (2 if wide else 1)
        entries += text(rename(name)) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        entries += struct.pack("<IQ", F32 if wide else BF16, offset)
        sizes.append(size)
        offset += -(-size // ALIGN) * ALIGN
    with open(source, "rb") as from_, open(path, "wb") as to:
        to.write(b"GGUF" + struct.pack("<IQQ", 3, len(header), len(pairs)) + b"".join(pairs) + entries)
        to.write(bytes(-to.tell() % ALIGN))
        for entry, size in zip(header.values(), sizes):
            from_.seek(start + entry["data_offsets"][0])
            data = from_.read(entry["data_offsets"][1] - entry["data_offsets"][0])
            if len(entry["shape"]) == 1:
                data = b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))
            assert len(data) == size
            to.write(data + bytes(-size % ALIGN))

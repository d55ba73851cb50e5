# SPDX-License-Identifier: Apache-2.0
"""Write the matrices of a generated checkpoint as a GGUF file for llama.cpp's quantizer (GGUF version 3), and a large
sparse file with only a header."""
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
    """Dense checkpoints of a single file only. Norms become f32, as in llama.cpp's own converter."""
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


# ---- a header ------------------------------------------------------------------------------------------

Q4_K = 12


def texts(key, values):
    return text(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))


def vocabulary(count):
    """Tokens of single bytes, of each of those followed by a byte, and so on, with the merges that make them."""
    # GPT-2's mapping of bytes to characters: printable ones to themselves, others beyond Latin-1.
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    tokens = [chr(b) for b in seen] + [chr(256 + k) for k in range(256 - len(seen))]
    pairs = []
    for k in range(count - 256):
        pairs.append((tokens[k // 256], tokens[k % 256]))
        tokens.append("".join(pairs[-1]))
    return tokens, [" ".join(pair) for pair in pairs]


def write_header(path, layers=32, tokens=128256, hidden=4096, ff=14336, kv=1024):
    """Llama 3 with 8 billion weights in Q4_K, as a sparse file. Returns its tensors."""
    pairs = metadata({"num_hidden_layers": layers, "max_position_embeddings": 8192, "hidden_size": hidden,
                      "head_dim": 128, "intermediate_size": ff, "num_attention_heads": 32, "vocab_size": tokens,
                      "rms_norm_eps": 1e-5})
    names, merges = vocabulary(tokens)
    pairs += [text("llama.attention.head_count_kv") + struct.pack("<II", 4, kv // 128),
              *(text("tokenizer.ggml." + key) + struct.pack("<I", 8) + text(value)
                for key, value in [("model", "gpt2"), ("pre", "llama-bpe")]),
              texts("tokenizer.ggml.tokens", names), texts("tokenizer.ggml.merges", merges),
              text("tokenizer.ggml.token_type") + struct.pack("<IIQ", 9, 5, tokens) + struct.pack("<i", 1) * tokens]
    shapes = {"token_embd": (tokens, hidden), "output": (tokens, hidden), "output_norm": (hidden,)}
    for layer in range(layers):
        shapes.update({f"blk.{layer}.{name}": shape for name, shape in [
            ("attn_norm", (hidden,)), ("attn_q", (hidden, hidden)), ("attn_k", (kv, hidden)), ("attn_v", (kv, hidden)),
            ("attn_output", (hidden, hidden)), ("ffn_norm", (hidden,)), ("ffn_gate", (ff, hidden)),
            ("ffn_up", (ff, hidden)), ("ffn_down", (hidden, ff))]})
    entries, offset = b"", 0
    for name, shape in shapes.items():
        size = shape[0] * 4 if len(shape) == 1 else shape[0] * shape[1] // 256 * 144
        entries += text(name + ".weight") + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        entries += struct.pack("<IQ", F32 if len(shape) == 1 else Q4_K, offset)
        offset += -(-size // ALIGN) * ALIGN
    with open(path, "wb") as to:
        to.write(b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(pairs)) + b"".join(pairs) + entries)
        to.truncate(-(-to.tell() // ALIGN) * ALIGN + offset)
    return len(shapes)

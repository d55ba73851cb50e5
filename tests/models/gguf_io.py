# SPDX-License-Identifier: Apache-2.0
"""Reads GGUF files of BERT and Qwen3-MoE models with numpy; tensors have their names in safetensors.

A GGUF file is a header, key-value pairs, a table of tensors, and the tensors' bytes. All numbers are little-endian, a
string is its length and its bytes, and dimensions begin with the columns.
"""
import os
import re
import struct

import numpy as np

from safetensors_io import widen_bf16

KINDS = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")
STRING, ARRAY = 8, 9
PLAIN = {0: np.float32, 1: np.float16, 30: np.uint16}  # GGML_TYPE_F32, _F16, _BF16
BFLOAT16 = 30

LAYERS = {
    "bert": {
        "attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value",
        "attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm",
        "ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm",
    },
    "qwen3_moe": {
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "ffn_gate_inp": "mlp.gate",
        "ffn_gate_exps": "mlp.experts.*.gate_proj", "ffn_up_exps": "mlp.experts.*.up_proj",
        "ffn_down_exps": "mlp.experts.*.down_proj",
    },
}
OTHERS = {
    "bert": {
        "token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings",
        "token_types": "embeddings.token_type_embeddings", "token_embd_norm": "embeddings.LayerNorm",
    },
    "qwen3_moe": {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"},
}
LAYER_PREFIX = {"bert": "encoder.layer.", "qwen3_moe": "model.layers."}


def name_of(name, model_type):
    """The safetensors name of a tensor of a GGUF file; in that of a stack of experts, * replaces the number."""
    stem, kind = name.rsplit(".", 1)
    layer = re.fullmatch(r"blk\.(\d+)\.(.*)", stem)
    if layer and layer[2] in LAYERS[model_type]:
        return f"{LAYER_PREFIX[model_type]}{layer[1]}.{LAYERS[model_type][layer[2]]}.{kind}"
    if stem in OTHERS[model_type]:
        return f"{OTHERS[model_type][stem]}.{kind}"
    raise SystemExit(f"{name}: not a tensor of a {model_type} that is known here")


class Gguf:
    """`tensors`: by name, (number of the type, shape, offset in the file)."""

    def __init__(self, path):
        self.path = path
        self.alignment = 32
        with open(path, "rb") as self.file:
            magic, version, tensors, pairs = self.take("4sIQQ")
            if magic != b"GGUF" or version not in (2, 3):
                raise SystemExit(f"{path}: not a GGUF file of version 2 or 3")
            for _ in range(pairs):
                key, kind = self.string(), self.take("I")[0]
                value = self.value(kind)
                if key == "general.alignment":
                    self.alignment = value
            table = []
            for _ in range(tensors):
                name, dimensions = self.string(), self.take("I")[0]
                shape = self.take(f"{dimensions}Q")[::-1]
                table.append((name, shape, *self.take("IQ")))
            start = -(-self.file.tell() // self.alignment) * self.alignment
        self.tensors = {name: (kind, shape, start + offset) for name, shape, kind, offset in table}

    def take(self, layout):
        return struct.unpack("<" + layout, self.file.read(struct.calcsize("<" + layout)))

    def string(self):
        return self.file.read(self.take("Q")[0]).decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.take("IQ")
            return [self.value(kind) for _ in range(count)]
        return self.take(KINDS[kind])[0]

    def bytes_of(self, name, ggml):
        kind, shape, _ = self.tensors[name]
        return ggml.bytes_of(kind, int(np.prod(shape)))

    def read(self, name, ggml):
        """One tensor in float32; types other than plain numbers are decoded by `ggml`."""
        kind, shape, offset = self.tensors[name]
        data = np.fromfile(self.path, np.uint8, self.bytes_of(name, ggml), offset=offset)
        if kind not in PLAIN:
            return ggml.decode(kind, data, int(np.prod(shape))).reshape(shape)
        plain = data.view(PLAIN[kind]).reshape(shape)
        return widen_bf16(plain) if kind == BFLOAT16 else plain.astype(np.float32)

    def checkpoint(self, model_type, ggml):
        """All tensors in float32 by their safetensors names, stacks split into experts."""
        result = {}
        for name in self.tensors:
            target, array = name_of(name, model_type), self.read(name, ggml)
            if "*" in target:
                result.update({target.replace("*", str(number)): expert for number, expert in enumerate(array)})
            else:
                result[target] = array
        return result

    def size(self, ggml):
        """(bytes of the file, bytes of the tensors alone, their elements)."""
        return (os.path.getsize(self.path), sum(self.bytes_of(name, ggml) for name in self.tensors),
                sum(int(np.prod(shape)) for _, shape, _ in self.tensors.values()))

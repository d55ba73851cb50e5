#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a small checkpoint with one defect or oddity: make-bad-checkpoint.py KIND FOLDER

Every kind is the same one-layer Llama of hidden size 32 but for what its name says; `good` has
nothing wrong. Some kinds are refused on opening, some only by a later stage, and some are fine.
Needs the standard library only. Run without arguments for the list of kinds.
"""
import json
import os
import struct
import sys

HIDDEN, INTERMEDIATE, HEADS, VOCAB = 32, 48, 4, 64
Q = "model.layers.0.self_attn.q_proj.weight"
DOWN = "model.layers.0.mlp.down_proj.weight"


class Random:
    """splitmix64; approximately normal values."""

    def __init__(self, seed):
        self.state = seed

    def normal(self):
        total = 0
        for _ in range(6):
            self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
            z = self.state
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
            total += (z ^ z >> 31) / 2**64
        return (total - 3) * 1.4142135623730951


def bf16(values):
    out = bytearray()
    for value in values:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        if bits & 0x7FFFFFFF < 0x7F800000:
            bits += 0x7FFF + (bits >> 16 & 1)
        out += struct.pack("<H", bits >> 16)
    return bytes(out)


class Tensor:
    def __init__(self, name, shape, values=None, dtype="BF16", data=None):
        self.name, self.shape, self.dtype = name, shape, dtype
        self.data = bf16(values) if data is None else data


def matrix(name, rows, cols, scale=0.02):
    random = Random(sum(name.encode()) * 65537 + rows)
    return Tensor(name, [rows, cols], [scale * random.normal() for _ in range(rows * cols)])


def norm(name, size):
    return Tensor(name, [size], [1.0] * size)


def model(hidden=HIDDEN, intermediate=INTERMEDIATE, head_dim=None, scale=0.02):
    """The tensors, and the matching config."""
    head_dim = head_dim or max(hidden // HEADS, 1)
    p = "model.layers.0."
    tensors = [
        matrix("model.embed_tokens.weight", VOCAB, hidden),
        norm(p + "input_layernorm.weight", hidden),
        matrix(Q, HEADS * head_dim, hidden, scale),
        matrix(p + "self_attn.k_proj.weight", HEADS * head_dim, hidden, scale),
        matrix(p + "self_attn.v_proj.weight", HEADS * head_dim, hidden, scale),
        matrix(p + "self_attn.o_proj.weight", hidden, HEADS * head_dim, scale),
        norm(p + "post_attention_layernorm.weight", hidden),
        matrix(p + "mlp.gate_proj.weight", intermediate, hidden, scale),
        matrix(p + "mlp.up_proj.weight", intermediate, hidden, scale),
        matrix(DOWN, hidden, intermediate, scale),
        norm("model.norm.weight", hidden),
        matrix("lm_head.weight", VOCAB, hidden),
    ]
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
        "intermediate_size": intermediate, "num_hidden_layers": 1, "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS, "head_dim": head_dim, "vocab_size": VOCAB, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "hidden_act": "silu", "attention_bias": False,
        "mlp_bias": False, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }
    return tensors, config


def entry(tensor, begin, end):
    value = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [begin, end]}
    return json.dumps(tensor.name) + ":" + json.dumps(value)


def header_of(tensors):
    """List of header entries as JSON text, and the data."""
    entries, data = ['"__metadata__":{"format":"pt"}'], b""
    for tensor in tensors:
        entries.append(entry(tensor, len(data), len(data) + len(tensor.data)))
        data += tensor.data
    return entries, data


def assemble(entries, data, claimed=None):
    text = ("{" + ",".join(entries) + "}").encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text) if claimed is None else claimed) + text + data


def shard(tensors):
    return assemble(*header_of(tensors))


def replace(tensors, name, values):
    for tensor in tensors:
        if tensor.name == name:
            tensor.data = bf16(values(len(tensor.data) // 2))


def spoil(tensors, name, value):
    """Replace an element in the middle by `value`."""
    for tensor in tensors:
        if tensor.name == name:
            middle = len(tensor.data) // 4 * 2
            tensor.data = tensor.data[:middle] + bf16([value]) + tensor.data[middle + 2:]


def sharded(tensors):
    """Two shards and the weight map."""
    half = len(tensors) // 2
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    parts = [tensors[:half], tensors[half:]]
    weight_map = {t.name: names[i] for i in (0, 1) for t in parts[i]}
    return names, parts, weight_map


def index(weight_map):
    return json.dumps({"metadata": {"total_size": 0}, "weight_map": weight_map}, indent=1).encode()


INDEX = "model.safetensors.index.json"


def good(tensors):
    return {"model.safetensors": shard(tensors)}


def good_sharded(tensors):
    names, parts, weight_map = sharded(tensors)
    return {names[0]: shard(parts[0]), names[1]: shard(parts[1]), INDEX: index(weight_map)}


def missing_shard(tensors):
    files = good_sharded(tensors)
    del files["model-00002-of-00002.safetensors"]
    return files


def truncated_shard(tensors):
    files = good_sharded(tensors)
    files["model-00002-of-00002.safetensors"] = files["model-00002-of-00002.safetensors"][:-100]
    return files


def header_too_long(tensors):
    entries, data = header_of(tensors)
    return {"model.safetensors": assemble(entries, data, claimed=10**7)}


def header_not_json(tensors):
    entries, data = header_of(tensors)
    entries[1] = entries[1].replace(":", ";", 1)
    return {"model.safetensors": assemble(entries, data)}


def overlap(tensors):
    entries, data = header_of(tensors)
    begin = sum(len(t.data) for t in tensors[:-1])
    entries[-1] = entry(tensors[-1], begin - 2, begin - 2 + len(tensors[-1].data))
    return {"model.safetensors": assemble(entries, data[:-2])}


def hole(tensors):
    entries, data = header_of(tensors)
    begin = sum(len(t.data) for t in tensors[:-1])
    entries[-1] = entry(tensors[-1], begin + 2, begin + 2 + len(tensors[-1].data))
    return {"model.safetensors": assemble(entries, data + b"\0\0")}


def wrong_size(tensors):
    tensors[2].shape = [tensors[2].shape[0] + 1, tensors[2].shape[1]]
    return good(tensors)


def duplicate_name(tensors):
    # The same name and the same bytes: only the names show it.
    entries, data = header_of(tensors)
    return {"model.safetensors": assemble(entries + entries[-1:], data)}


def duplicate_across_shards(tensors):
    # In both shards, and the index does not say which to use.
    names, parts, weight_map = sharded(tensors)
    parts[0].append(parts[1][-1])
    del weight_map[parts[1][-1].name]
    return {names[0]: shard(parts[0]), names[1]: shard(parts[1]), INDEX: index(weight_map)}


def overlay(tensors):
    # In both shards, and the index says which to use: accepted, with a note. The other copy is garbage.
    names, parts, weight_map = sharded(tensors)
    other = parts[1][0]
    parts[0].append(Tensor(other.name, other.shape, data=b"\xff" * len(other.data)))
    return {names[0]: shard(parts[0]), names[1]: shard(parts[1]), INDEX: index(weight_map)}


def index_escape(tensors):
    files = good_sharded(tensors)
    weight_map = sharded(tensors)[2]
    weight_map[tensors[-1].name] = "../x.safetensors"
    files[INDEX] = index(weight_map)
    return files


def index_missing_tensor(tensors):
    # The index lists a tensor that its shard does not contain.
    files = good_sharded(tensors)
    weight_map = sharded(tensors)[2]
    weight_map["model.layers.1.mlp.up_proj.weight"] = "model-00002-of-00002.safetensors"
    files[INDEX] = index(weight_map)
    return files


def index_omits_tensor(tensors):
    # A shard contains one that the index does not list: accepted, with a note.
    files = good_sharded(tensors)
    weight_map = sharded(tensors)[2]
    del weight_map[DOWN]
    files[INDEX] = index(weight_map)
    return files


def no_index(tensors):
    files = good_sharded(tensors)
    del files[INDEX]
    return files


def nan(tensors):
    spoil(tensors, DOWN, float("nan"))
    return good(tensors)


def inf(tensors):
    spoil(tensors, DOWN, float("-inf"))
    return good(tensors)


def zero_rows(tensors):
    tensors[2].shape, tensors[2].data = [0, HIDDEN], b""
    return good(tensors)


def all_zero(tensors):
    replace(tensors, DOWN, lambda n: [0.0] * n)
    return good(tensors)


def constant(tensors):
    replace(tensors, DOWN, lambda n: [0.015625] * n)
    return good(tensors)


SHELL_NAMES = [
    "$(shell touch pwned)", "$(touch pwned)", "`touch pwned`", "a b  c", "it's \"quoted\"", "x; touch pwned;", "%.o: %.c",
    "a:b|c&d", "back\\slash", "new\nline", "tab\there", "\x1b[31mred\x1b[0m", "\u00fcmlaut \u6a21\u578b \U0001f600",
    "../../etc/passwd", "-rf", "#comment", "*", "~root", "!bang", "<in >out",
]


def shell_names(tensors):
    for name in SHELL_NAMES:
        tensors.append(Tensor(name, [2, 3], [0.5] * 6))
    # These look like projections, but their layer is not numeric: their fate must be printed.
    for layer in ("$(shell touch pwned)", "0 1", "%"):
        tensors.append(matrix("model.layers." + layer + ".mlp.up_proj.weight", 8, HIDDEN))
    return good(tensors)


# KIND: the function that makes the files, arguments of model().
KINDS = {
    "good": (good, {}),
    "good-sharded": (good_sharded, {}),
    "missing-shard": (missing_shard, {}),
    "truncated-shard": (truncated_shard, {}),
    "header-too-long": (header_too_long, {}),
    "header-not-json": (header_not_json, {}),
    "overlap": (overlap, {}),
    "hole": (hole, {}),
    "wrong-size": (wrong_size, {}),
    "duplicate-name": (duplicate_name, {}),
    "duplicate-across-shards": (duplicate_across_shards, {}),
    "overlay": (overlay, {}),
    "index-escape": (index_escape, {}),
    "index-missing-tensor": (index_missing_tensor, {}),
    "index-omits-tensor": (index_omits_tensor, {}),
    "no-index": (no_index, {}),
    "nan": (nan, {}),
    "inf": (inf, {}),
    "zero-rows": (zero_rows, {}),
    "all-zero": (all_zero, {}),
    "constant": (constant, {}),
    "tiny": (good, {"scale": 1e-38}),
    "huge": (good, {"scale": 5e37}),
    "k1": (good, {"hidden": 1}),
    "k-odd": (good, {"hidden": 37, "intermediate": 53, "head_dim": 9}),
    "shell-names": (shell_names, {}),
}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        print("Usage: make-bad-checkpoint.py KIND FOLDER\nKinds:", *KINDS, sep=" ", file=sys.stderr)
        return 2
    make, arguments = KINDS[sys.argv[1]]
    tensors, config = model(**arguments)
    files = make(tensors)
    files["config.json"] = (json.dumps(config, indent=2) + "\n").encode()
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, data in files.items():
        with open(os.path.join(sys.argv[2], name), "wb") as file:
            file.write(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a small model as GGUF and in Hugging Face format: make-gguf.py ARCHITECTURE GGUF PLAIN

GGUF is a file; with --parts N there are N of them, NAME-00001-of-0000N.gguf and so on. PLAIN is a folder of
safetensors with the same weights in Hugging Face's names, order and shapes, and with the config.json that the metadata
should give. Converters' changes to tensors are made here in numpy, from the descriptions of the formats. --type is
that of matrices; norms, biases, routers and the like are F32 in every GGUF, and in PLAIN. With --spoil KIND, GGUF has
one defect, and PLAIN does not match it. Run without arguments for the lists of architectures and kinds.
"""
import argparse
import json
import os
import struct
import zlib

import numpy as np

H, VOCAB, LAYERS, HEADS, KEYS, WIDTH, FF, EXPERTS, MOE = 64, 96, 2, 4, 2, 32, 48, 3, 40
TYPES = {"F32": (0, 4), "F16": (1, 2), "BF16": (30, 2)}


def stored(w, dtype):
    if dtype == "BF16":
        bits = np.ascontiguousarray(w, "<f4").view("<u4").astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype("<u2").tobytes()
    return np.ascontiguousarray(w, "<f4" if dtype == "F32" else "<f2").tobytes()


def weights(name, *shape):
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return (random.standard_normal(shape) * 0.05).astype(np.float32)


def small(name, *shape):
    """Numbers that survive the addition of 1: for norms, biases, routers."""
    return np.round(weights(name, *shape) * 8192).astype(np.float32) / 8192


# ---- GGUF -----------------------------------------------------------------------------------------------

U16, U32, I32, F32, BOOL, TEXT, ARRAY, U64 = 2, 4, 5, 6, 7, 8, 9, 10


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def value(v, kind=None):
    """A value's type and bytes."""
    if isinstance(v, tuple):
        return v[0], value(v[1], v[0])[1]
    if kind == U16 or kind == I32 or kind == U64:
        return kind, struct.pack({U16: "<H", I32: "<i", U64: "<Q"}[kind], v)
    if isinstance(v, bool):
        return BOOL, bytes([v])
    if isinstance(v, int):
        return U32, struct.pack("<I", v)
    if isinstance(v, float):
        return F32, struct.pack("<f", v)
    if isinstance(v, str):
        return TEXT, text(v)
    parts = [value(x) for x in v]
    return ARRAY, struct.pack("<IQ", parts[0][0] if parts else U32, len(parts)) + b"".join(b for _, b in parts)


def write_gguf(path, metadata, tensors, alignment=32, spoil=None):
    """`tensors`: name, dtype or (number, bytes) of a block type, array."""
    def pad(n):
        return -n % alignment

    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, v in metadata.items():
        kind, data = value(v)
        head += text(key) + struct.pack("<I", kind) + data
    data, infos = b"", b""
    for name, dtype, w in tensors:
        infos += text(name) + struct.pack("<I", w.ndim) + b"".join(struct.pack("<Q", n) for n in reversed(w.shape))
        number, one = dtype if isinstance(dtype, tuple) else (TYPES[dtype][0], stored(w, dtype))
        infos += struct.pack("<IQ", number, len(data))
        data += one + bytes(pad(len(one)))
    head += infos
    whole = head + bytes(pad(len(head))) + data
    if spoil:
        whole = spoil(whole)
    with open(path, "wb") as f:
        f.write(whole)


# ---- changes by converters -------------------------------------------------------------------------------


def turns(w, heads):
    """Interleave the rows of each head: one of its first half, one of its second, and so on."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)


class Model:
    """Add tensors to both sides; `big` ones have the requested type, others are F32."""

    def __init__(self, architecture, dtype):
        self.architecture, self.dtype = "llama" if architecture == "mixtral" else architecture, dtype
        self.theirs, self.ours, self.metadata, self.config = [], [], {}, {}

    def both(self, theirs, ours, w, changed=None, big=None):
        dtype = self.dtype if (w.ndim > 1 if big is None else big) else "F32"
        self.ours.append((ours, dtype, w))
        self.theirs.append((theirs, dtype, w if changed is None else changed))

    def linear(self, theirs, ours, n, k, change=None, bias=False):
        w = weights(ours, n, k)
        self.both(theirs + ".weight", ours + ".weight", w, change(w) if change else None)
        if bias:
            b = small(ours + ".bias", n)
            self.both(theirs + ".bias", ours + ".bias", b, change(b) if change else None)

    def norm(self, theirs, ours, n, shifted):
        w = small(ours, n)
        self.both(theirs + ".weight", ours + ".weight", w, w + np.float32(1) if shifted else None)

    def stack(self, theirs, names, n, k):
        """Experts, one by one in PLAIN and a stack in GGUF."""
        stack = np.stack([weights(name, n, k) for name in names])
        for name, w in zip(names, stack):
            self.ours.append((name, self.dtype, w))
        self.theirs.append((theirs, self.dtype, stack))

    def key(self, name, v):
        self.metadata[f"{self.architecture}.{name}"] = v


def attention(m, i, bias=False, normed=False, turned=False, shifted=False, width=WIDTH, gated=1):
    ours, theirs = f"model.layers.{i}.self_attn.", f"blk.{i}.attn_"
    q = (lambda w: turns(w, HEADS)) if turned else None
    k = (lambda w: turns(w, KEYS)) if turned else None
    m.linear(theirs + "q", ours + "q_proj", gated * HEADS * width, H, q, bias)
    m.linear(theirs + "k", ours + "k_proj", KEYS * width, H, k, bias)
    m.linear(theirs + "v", ours + "v_proj", KEYS * width, H, None, bias)
    m.linear(theirs + "output", ours + "o_proj", H, HEADS * width, None, bias and turned)
    if normed:
        m.norm(theirs + "q_norm", ours + "q_norm", width, shifted)
        m.norm(theirs + "k_norm", ours + "k_norm", width, shifted)


def mlp(m, i, size=FF, theirs="", ours="mlp."):
    for name in ("gate", "up"):
        m.linear(f"blk.{i}.ffn_{name}{theirs}", f"model.layers.{i}.{ours}{name}_proj", size, H)
    m.linear(f"blk.{i}.ffn_down{theirs}", f"model.layers.{i}.{ours}down_proj", H, size)


def experts(m, i, ours="mlp.experts.{}.{}_proj.weight", names=("gate", "up", "down"), router="mlp.gate"):
    w = small(f"router{i}", EXPERTS, H)
    m.both(f"blk.{i}.ffn_gate_inp.weight", f"model.layers.{i}.{router}.weight", w, big=False)
    for theirs, name in zip(("gate", "up", "down"), names):
        shape = (H, MOE) if theirs == "down" else (MOE, H)
        m.stack(f"blk.{i}.ffn_{theirs}_exps.weight",
                [f"model.layers.{i}." + ours.format(e, name) for e in range(EXPERTS)], *shape)


def norms(m, i, shifted=False, names=(("attn_norm", "input_layernorm"), ("ffn_norm", "post_attention_layernorm"))):
    for theirs, ours in names:
        m.norm(f"blk.{i}.{theirs}", f"model.layers.{i}.{ours}", H, shifted)


AFTER = (("attn_norm", "input_layernorm"), ("post_attention_norm", "post_attention_layernorm"))


def frame(m, model_type, name, tied=False, shifted=False, layers=LAYERS, ff=FF):
    """Tensors outside layers, and metadata of all architectures."""
    m.linear("token_embd", "model.embed_tokens", VOCAB, H)
    m.norm("output_norm", "model.norm", H, shifted)
    if not tied:
        m.linear("output", "lm_head", VOCAB, H)
    m.metadata["general.architecture"] = m.architecture
    m.metadata["general.name"] = "a model of numpy's"
    m.metadata["general.file_type"] = 1
    for key, v in [("block_count", layers), ("context_length", 256), ("embedding_length", H),
                   ("feed_forward_length", ff), ("attention.head_count", HEADS), ("attention.head_count_kv", KEYS),
                   ("attention.layer_norm_rms_epsilon", 1e-5), ("rope.freq_base", 500000.0)]:
        m.key(key, v)
    m.metadata["tokenizer.ggml.tokens"] = [f"token {i} ä" for i in range(VOCAB)]
    m.metadata["tokenizer.ggml.scores"] = [float(-i) for i in range(VOCAB)]
    m.metadata["tokenizer.ggml.eos_token_id"] = 2
    m.config = {"model_type": model_type, "architectures": [name], "vocab_size": VOCAB, "hidden_size": H,
                "num_hidden_layers": layers, "intermediate_size": ff, "num_attention_heads": HEADS,
                "num_key_value_heads": KEYS, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
                "rope_theta": 500000.0, "tie_word_embeddings": tied, "eos_token_id": 2,
                "torch_dtype": {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[m.dtype]}


def head_dim(m, width=WIDTH):
    m.key("attention.key_length", width)
    m.key("attention.value_length", width)
    m.config["head_dim"] = width


def expert_keys(m, count="num_experts", size="moe_intermediate_size"):
    m.key("expert_count", EXPERTS)
    m.key("expert_used_count", 2)
    m.config.update({count: EXPERTS, "num_experts_per_tok": 2})
    if size:
        m.key("expert_feed_forward_length", MOE)
        m.config[size] = MOE


def llama3_factors(width, theta, factor, low, high, original):
    """In single precision, like converters."""
    out = []
    for f in (1.0 / theta ** (np.arange(0, width, 2, dtype=np.float32) / np.float32(width))).astype(np.float32):
        wave = np.float32(2 * np.pi) / f
        smooth = (np.float32(original) / wave - np.float32(low)) / np.float32(high - low)
        out.append(1 if wave < original / high else factor if wave > original / low
                   else 1 / ((1 - smooth) / factor + smooth))
    return np.array(out, np.float32)


# ---- architectures --------------------------------------------------------------------------------------


def llama(m, scaled=True):
    frame(m, "llama", "LlamaForCausalLM", tied=True)
    width = H // HEADS
    for i in range(LAYERS):
        attention(m, i, bias=True, turned=True, width=width)
        mlp(m, i)
        norms(m, i)
    m.key("rope.dimension_count", width)
    m.config["attention_bias"] = True
    if scaled:
        m.theirs.insert(1, ("rope_freqs.weight", "F32", llama3_factors(width, 500000.0, 8, 1, 4, 8192)))
        m.config["rope_scaling"] = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                    "original_max_position_embeddings": 8192}


def mixtral(m):
    frame(m, "mixtral", "MixtralForCausalLM", ff=MOE)
    for i in range(LAYERS):
        attention(m, i, turned=True, width=H // HEADS)
        experts(m, i, "block_sparse_moe.experts.{}.{}.weight", ("w1", "w3", "w2"), "block_sparse_moe.gate")
        norms(m, i)
    expert_keys(m, "num_local_experts", None)


def qwen2(m):
    frame(m, "qwen2", "Qwen2ForCausalLM")
    for i in range(LAYERS):
        attention(m, i, bias=True, width=H // HEADS)
        mlp(m, i)
        norms(m, i)


def qwen3(m):
    frame(m, "qwen3", "Qwen3ForCausalLM", tied=True)
    for i in range(LAYERS):
        attention(m, i, normed=True)
        mlp(m, i)
        norms(m, i)
    head_dim(m)


def qwen3moe(m):
    frame(m, "qwen3_moe", "Qwen3MoeForCausalLM")
    for i in range(LAYERS):
        attention(m, i, normed=True)
        mlp(m, i) if i else experts(m, i)
        norms(m, i)
    head_dim(m)
    expert_keys(m)
    m.config.update({"mlp_only_layers": [1], "norm_topk_prob": True, "decoder_sparse_step": 1})


def gemma2(m, layers=LAYERS, name="Gemma2ForCausalLM", model_type="gemma2", normed=False):
    frame(m, model_type, name, tied=True, shifted=True, layers=layers)
    for i in range(layers):
        attention(m, i, normed=normed, shifted=True)
        mlp(m, i)
        norms(m, i, True, AFTER + (("ffn_norm", "pre_feedforward_layernorm"),
                                   ("post_ffw_norm", "post_feedforward_layernorm")))
    head_dim(m)
    m.key("attention.sliding_window", 8)
    m.config.update({"sliding_window": 8, "query_pre_attn_scalar": WIDTH, "hidden_activation": "gelu_pytorch_tanh"})
    if not normed:
        m.key("attn_logit_softcapping", 50.0)
        m.key("final_logit_softcapping", 30.0)
        m.config.update({"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                         "layer_types": ["sliding_attention", "full_attention"]})


def gemma3(m):
    gemma2(m, 7, "Gemma3ForCausalLM", "gemma3_text", normed=True)
    m.key("rope.scaling.type", "linear")
    m.key("rope.scaling.factor", 8.0)
    m.config["layer_types"] = ["full_attention" if i == 5 else "sliding_attention" for i in range(7)]
    m.config.update({"rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}})


def phi3(m):
    width = H // HEADS
    frame(m, "phi3", "Phi3ForCausalLM")
    for i in range(LAYERS):
        m.linear(f"blk.{i}.attn_qkv", f"model.layers.{i}.self_attn.qkv_proj", (HEADS + 2 * KEYS) * width, H)
        m.linear(f"blk.{i}.attn_output", f"model.layers.{i}.self_attn.o_proj", H, HEADS * width)
        m.linear(f"blk.{i}.ffn_up", f"model.layers.{i}.mlp.gate_up_proj", 2 * FF, H)
        m.linear(f"blk.{i}.ffn_down", f"model.layers.{i}.mlp.down_proj", H, FF)
        norms(m, i)
    short, long = [1.0, 1.1, 1.7, 3.1], [1.08, 2.0, 8.1, 32.9]
    m.theirs += [("rope_factors_long.weight", "F32", np.array(long, np.float32)),
                 ("rope_factors_short.weight", "F32", np.array(short, np.float32))]
    m.key("rope.dimension_count", width // 2)
    m.key("rope.scaling.original_context_length", 64)
    m.key("attention.sliding_window", 0)
    m.config.update({"partial_rotary_factor": 0.5, "original_max_position_embeddings": 64,
                     "rope_scaling": {"type": "longrope", "short_factor": short, "long_factor": long}})


def gpt_oss(m):
    frame(m, "gpt_oss", "GptOssForCausalLM", ff=MOE)
    for i in range(LAYERS):
        ours, theirs = f"model.layers.{i}.", f"blk.{i}."
        attention(m, i, bias=True)
        b = small(ours + "o", H)
        m.both(theirs + "attn_output.bias", ours + "self_attn.o_proj.bias", b)
        m.both(theirs + "attn_sinks.weight", ours + "self_attn.sinks", small(ours + "sinks", HEADS))
        norms(m, i, names=AFTER)
        m.both(theirs + "ffn_gate_inp.weight", ours + "mlp.router.weight", small(ours + "router", EXPERTS, H), big=False)
        m.both(theirs + "ffn_gate_inp.bias", ours + "mlp.router.bias", small(ours + "bias", EXPERTS))
        fused, down = weights(ours + "fused", EXPERTS, H, 2 * MOE), weights(ours + "down", EXPERTS, MOE, H)
        biases = small(ours + "biases", EXPERTS, 2 * MOE)
        m.ours += [(ours + "mlp.experts.gate_up_proj", m.dtype, fused), (ours + "mlp.experts.down_proj", m.dtype, down),
                   (ours + "mlp.experts.gate_up_proj_bias", "F32", biases)]
        for k, name in enumerate(("gate", "up")):
            m.theirs += [(f"{theirs}ffn_{name}_exps.weight", m.dtype, fused.swapaxes(1, 2)[:, k::2]),
                         (f"{theirs}ffn_{name}_exps.bias", "F32", biases[:, k::2])]
        m.theirs.append((theirs + "ffn_down_exps.weight", m.dtype, down.swapaxes(1, 2)))
        m.both(theirs + "ffn_down_exps.bias", ours + "mlp.experts.down_proj_bias", small(ours + "d", EXPERTS, H), big=False)
    head_dim(m)
    expert_keys(m, "num_local_experts", None)
    m.key("expert_feed_forward_length", MOE)
    m.key("attention.sliding_window", 8)
    for key, v in [("type", "yarn"), ("factor", 32.0), ("original_context_length", 4096), ("yarn_beta_fast", 32.0),
                   ("yarn_beta_slow", 1.0)]:
        m.key("rope.scaling." + key, v)
    m.config.update({"attention_bias": True, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"],
                     "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096,
                                      "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}})


def qwen3next(m):
    heads, values, key, each, kernel = 2, 4, 16, 24, 4
    frame(m, "qwen3_next", "Qwen3NextForCausalLM", shifted=True, layers=LAYERS)
    m.key("block_count", LAYERS + 1)
    m.key("nextn_predict_layers", 1)
    for i in range(LAYERS + 1):
        ours, theirs = f"model.layers.{i}.linear_attn.", f"blk.{i}."
        if i % 2 or i == LAYERS:
            attention(m, i, normed=True, shifted=True, gated=2)
        else:
            share = values // heads * each
            qkvz = weights(ours, heads * (2 * key + 2 * share), H)
            q, k, v, z = np.split(qkvz.reshape(heads, -1, H), [key, 2 * key, 2 * key + share], axis=1)
            m.ours.append((ours + "in_proj_qkvz.weight", m.dtype, qkvz))
            m.theirs += [(theirs + "attn_qkv.weight", m.dtype, np.concatenate([x.reshape(-1, H) for x in (q, k, v)])),
                         (theirs + "attn_gate.weight", m.dtype, z.reshape(-1, H))]
            m.linear(theirs + "ssm_ba", ours + "in_proj_ba", 2 * values, H)
            m.linear(theirs + "ssm_out", ours + "out_proj", H, values * each)
            conv = small(ours + "conv", 2 * heads * key + values * each, 1, kernel)
            m.both(theirs + "ssm_conv1d.weight", ours + "conv1d.weight", conv, conv[:, 0], big=False)
            m.both(theirs + "ssm_dt.bias", ours + "dt_bias", small(ours + "dt", values))
            decay = -np.exp(weights(ours + "decay", values) * 20)
            m.both(theirs + "ssm_a", ours + "A_log", np.log(-decay.astype(np.float64)).astype(np.float32), decay)
            m.both(theirs + "ssm_norm.weight", ours + "norm.weight", small(ours + "norm", each))
        experts(m, i)
        mlp(m, i, MOE, "_shexp", "mlp.shared_expert.")
        gate = small(f"gate{i}", 1, H)
        m.both(theirs + "ffn_gate_inp_shexp.weight", f"model.layers.{i}.mlp.shared_expert_gate.weight", gate, gate[0],
               big=False)
        norms(m, i, True, AFTER)
    m.ours = [(name.replace(f"model.layers.{LAYERS}.", "mtp.layers.0."), d, w) for name, d, w in m.ours]
    m.linear(f"blk.{LAYERS}.nextn.eh_proj", "mtp.fc", H, 2 * H)
    for name, its in [("enorm", "pre_fc_norm_embedding"), ("hnorm", "pre_fc_norm_hidden"), ("shared_head_norm", "norm")]:
        m.norm(f"blk.{LAYERS}.nextn.{name}", "mtp." + its, H, True)
    head_dim(m)
    expert_keys(m)
    m.key("expert_shared_feed_forward_length", MOE)
    m.key("rope.dimension_count", WIDTH // 4)
    for name, v, config in [("conv_kernel", kernel, "linear_conv_kernel_dim"), ("state_size", key, "linear_key_head_dim"),
                            ("group_count", heads, "linear_num_key_heads"),
                            ("time_step_rank", values, "linear_num_value_heads"), ("inner_size", values * each, None)]:
        m.key("ssm." + name, v)
        if config:
            m.config[config] = v
    m.config.update({"linear_value_head_dim": each, "layer_types": ["linear_attention", "full_attention"],
                     "partial_rotary_factor": 0.25, "shared_expert_intermediate_size": MOE, "norm_topk_prob": True})


def glm4moe(m):
    frame(m, "glm4_moe", "Glm4MoeForCausalLM", layers=2)
    m.key("block_count", 3)
    m.key("nextn_predict_layers", 1)
    for i in range(3):
        attention(m, i, bias=True, normed=True)
        if i:
            experts(m, i)
            m.both(f"blk.{i}.exp_probs_b.bias", f"model.layers.{i}.mlp.gate.e_score_correction_bias",
                   small(f"score{i}", EXPERTS))
            mlp(m, i, MOE, "_shexp", "mlp.shared_experts.")
        else:
            mlp(m, i)
        norms(m, i, names=AFTER)
    m.linear("blk.2.nextn.eh_proj", "model.layers.2.eh_proj", H, 2 * H)
    for name, ours in [("enorm", "enorm"), ("hnorm", "hnorm"), ("shared_head_norm", "shared_head.norm")]:
        m.norm("blk.2.nextn." + name, "model.layers.2." + ours, H, False)
    head_dim(m)
    expert_keys(m, "n_routed_experts")
    for key, v, config in [("expert_shared_count", 1, "n_shared_experts"), ("leading_dense_block_count", 1,
                           "first_k_dense_replace"), ("expert_weights_scale", 1.5, "routed_scaling_factor"),
                           ("expert_weights_norm", True, "norm_topk_prob")]:
        m.key(key, v)
        m.config[config] = v
    m.key("rope.dimension_count", WIDTH // 2)
    m.config.update({"partial_rotary_factor": 0.5, "use_qk_norm": True, "attention_bias": True,
                     "num_nextn_predict_layers": 1})


ARCHITECTURES = {"llama": llama, "mixtral": mixtral, "qwen2": qwen2, "qwen3": qwen3, "qwen3moe": qwen3moe,
                 "gemma2": gemma2, "gemma3": gemma3, "phi3": phi3, "gpt-oss": gpt_oss, "qwen3next": qwen3next,
                 "glm4moe": glm4moe}

# ---- defects --------------------------------------------------------------------------------------------


def put(at, data):
    return lambda whole: whole[:at] + data + whole[at + len(data):]


def first_key(whole, data):
    """Overwrite the length of the first key, or what follows it."""
    return put(24, data)(whole)


def claim_array(whole):
    at = whole.index(b"tokenizer.ggml.tokens") + len("tokenizer.ggml.tokens") + 8
    return put(at, struct.pack("<Q", 10**18))(whole)


def bad_text(whole):
    return whole.replace("token 5 ä".encode(), b"token 5 \xff\xfe")


def in_info(name, behind, data):
    """Overwrite bytes of a tensor's entry, at an offset from its name."""
    def change(whole):
        at = whole.index(struct.pack("<Q", len(name)) + name.encode()) + 8 + len(name) + behind
        return put(at, data)(whole)
    return change


SPOILS = {
    "v1": put(4, struct.pack("<I", 1)),
    "v9": put(4, struct.pack("<I", 9)),
    "big-endian": put(4, struct.pack(">I", 3)),
    "keys": put(16, struct.pack("<Q", 1 << 62)),
    "tensors": put(8, struct.pack("<Q", (1 << 64) - 1)),
    "key": lambda whole: first_key(whole, struct.pack("<Q", 1 << 63)),
    "array": claim_array,
    "utf-8": bad_text,
    "cut": lambda whole: whole[:-40],
    "cut-header": lambda whole: whole[:1500],
    "rank": in_info("output_norm.weight", 0, struct.pack("<I", 5)),
    "size": in_info("token_embd.weight", 4, struct.pack("<Q", 1 << 62)),
    "bytes": in_info("output_norm.weight", 4, struct.pack("<Q", 1 << 61)),
    "type": in_info("token_embd.weight", 20, struct.pack("<I", 137)),
    "gone": in_info("token_embd.weight", 20, struct.pack("<I", 4)),
    "block": in_info("output_norm.weight", 12, struct.pack("<I", 12)),
    "offset": in_info("output_norm.weight", 16, struct.pack("<Q", 32)),
    "alignment": None, "alignment-kind": None, "twice": None, "key-twice": None, "heads": None, "layers": None,
    "nested": None, "norm-type": None, "adapter": None, "unknown": None, "listed": None, "factors": None,
    "companion": None, "mixed": None,
}


def spoil_model(m, kind):
    """Defects that are made before anything is written."""
    if kind == "alignment":
        m.metadata["general.alignment"] = 48
    elif kind == "alignment-kind":
        m.metadata["general.alignment"] = (U64, 32)
    elif kind == "twice":
        m.theirs.append(m.theirs[0])
    elif kind == "heads":
        m.key("attention.head_count", 5)
    elif kind == "layers":
        del m.metadata[m.architecture + ".block_count"]
    elif kind == "norm-type":
        m.theirs = [(n, "F16" if n == "output_norm.weight" else d, w) for n, d, w in m.theirs]
    elif kind == "adapter":
        m.metadata["general.type"] = "adapter"
    elif kind == "unknown":
        m.metadata["general.architecture"] = "mamba"
    elif kind == "factors":
        m.theirs = [(n, d, w * np.float32(1.01) if n == "rope_freqs.weight" else w) for n, d, w in m.theirs]
    elif kind == "companion":
        m.theirs = [t for t in m.theirs if t[0] != "blk.1.ffn_up_exps.weight"]
    elif kind == "mixed":
        blocks = {"token_embd.weight": (8, 34), "blk.0.ffn_up.weight": (2, 18)}  # Q8_0 and Q4_0, all 0
        m.theirs = [(n, (blocks[n][0], bytes(w.size // 32 * blocks[n][1])) if n in blocks else d, w) for n, d, w in m.theirs]
    elif kind == "listed":
        w = np.zeros((16, 256), np.float32)
        m.theirs.append(("blk.0.extra.weight", (16, w.tobytes()), w))


class Raw(dict):
    """A duplicate key, and an array of arrays."""
    def __init__(self, metadata, more):
        super().__init__(metadata)
        self.more = more

    def __len__(self):
        return super().__len__() + len(self.more)

    def items(self):
        return [*super().items(), *self.more]


def join(m):
    """Fuse stacks of gates and of "up": each expert has the rows of both."""
    for at, (name, dtype, gate) in reversed(list(enumerate(m.theirs))):
        if "_gate_exps" not in name:
            continue
        up = next(k for k, (other, _, _) in enumerate(m.theirs) if other == name.replace("gate", "up"))
        both = np.concatenate([gate, m.theirs[up][2]], axis=1)
        for k, (ours, _, v) in enumerate(m.ours):
            for stack, rows in ((gate, both[:, :MOE]), (m.theirs[up][2], both[:, MOE:])):
                if v.base is stack:
                    m.ours[k] = (ours, dtype, rows[(v.ctypes.data - stack.ctypes.data) // v.nbytes])
        m.theirs[at] = (name.replace("gate", "gate_up"), dtype, both)
        del m.theirs[up]


# ---- NVFP4 ----------------------------------------------------------------------------------------------


def pack(m):
    """Store matrices as NVFP4 if their rows allow it, with a scale per tensor or expert, which llama.cpp applies to
    outputs and others to weights; one of them also has an input scale."""
    random = np.random.default_rng(4)
    values = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    for at, (name, dtype, w) in list(enumerate(m.theirs)):
        if dtype != m.dtype or w.shape[-1] % 64 or not name.startswith("blk."):
            continue
        codes = random.integers(0, 16, (w.size // 16, 16), np.uint8)
        scales = random.integers(1, 127, (w.size // 16, 1), np.uint8)
        each = np.where(scales < 8, scales * 2.0 ** -9, (1 + scales % 8 / 8) * 2.0 ** (scales // 8 - 7.0)).astype(np.float32)
        nibbles = codes[:, :8] | codes[:, 8:] << 4
        blocks = np.concatenate([scales.reshape(-1, 4), nibbles.reshape(-1, 32)], axis=1)
        outer = random.uniform(1e-4, 1e-3, w.shape[0] if w.ndim == 3 else 1).astype(np.float32)
        unpacked = (values[codes] * each).reshape(w.shape) * outer.reshape(-1, *[1] * (w.ndim - 1))
        m.theirs[at] = (name, (40, blocks.tobytes()), w)
        m.theirs.append((name.replace(".weight", ".scale"), "F32", outer))
        for k, (ours, _, v) in enumerate(m.ours):
            if v is w or v.base is w:  # experts of a stack, and projections of these, keep their places
                first = (v.ctypes.data - w.ctypes.data) // w.itemsize
                m.ours[k] = (ours, "BF16", unpacked.reshape(-1)[first:first + v.size].reshape(v.shape))
    m.theirs.append(("blk.0.attn_q.input_scale", "F32", np.ones(1, np.float32)))


# ---- both -----------------------------------------------------------------------------------------------


def write_plain(folder, tensors, config):
    os.makedirs(folder)
    header, data = {}, b""
    for name, dtype, w in tensors:
        one = stored(w, dtype)
        header[name] = {"dtype": dtype, "shape": list(w.shape), "data_offsets": [len(data), len(data) + len(one)]}
        data += one
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + data)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2)


def make(args, kind, path):
    """Write a GGUF, and to PLAIN the expected model."""
    m = Model(args.architecture, args.type)
    ARCHITECTURES[args.architecture](m)
    if args.joined:
        join(m)
    if args.nvfp4:
        pack(m)
    if args.alignment != 32:
        m.metadata["general.alignment"] = args.alignment
    if kind:
        spoil_model(m, kind)
    if kind == "key-twice":
        m.metadata = Raw(m.metadata, [("general.name", "another")])
    if kind == "nested":
        m.metadata = Raw(m.metadata, [("x.nested", [[1, 2], [3]])])
    if args.parts == 1:
        write_gguf(path, m.metadata, m.theirs, args.alignment, SPOILS.get(kind))
    for part in range(args.parts if args.parts > 1 else 0):
        keys = {"split.no": (U16, part), "split.count": (U16, args.parts), "split.tensors.count": (I32, len(m.theirs))}
        name = f"{path.removesuffix('.gguf')}-{part + 1:05}-of-{args.parts:05}.gguf"
        write_gguf(name, {**m.metadata, **keys} if not part else keys, m.theirs[part::args.parts], 32)
    return m.ours, m.config


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("architecture", nargs="?", choices=sorted(ARCHITECTURES))
    parser.add_argument("gguf", nargs="?")
    parser.add_argument("plain", nargs="?")
    parser.add_argument("--type", default="F16", choices=sorted(TYPES))
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--alignment", type=int, default=32)
    parser.add_argument("--nvfp4", action="store_true")
    parser.add_argument("--joined", action="store_true", help="gates and \"up\" of experts are one stack")
    parser.add_argument("--spoil", choices=[*sorted(SPOILS), "each"], help="each: all, GGUF/KIND/model.gguf, and no PLAIN")
    args = parser.parse_args()
    if not args.plain:
        print("architectures:", *sorted(ARCHITECTURES), "\nkinds:", *sorted(SPOILS))
        return
    if args.spoil == "each":
        for kind in SPOILS:
            os.makedirs(f"{args.gguf}/{kind}")
            make(args, kind, f"{args.gguf}/{kind}/model.gguf")
    else:
        write_plain(args.plain, *make(args, args.spoil, args.gguf))


if __name__ == "__main__":
    main()

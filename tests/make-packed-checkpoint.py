#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a small packed checkpoint and its unpacked form: make-packed-checkpoint.py FORM PACKED PLAIN

PACKED has the published form; PLAIN has the same tensors as bf16 or f16, unpacked in numpy by the formulas of the
formats. Otherwise both are the same: names, shapes and config.json except quantization_config. With --shards N the
packed tensors are distributed to N files with an index, so that scales and codes are in different files. With --spoil
KIND, PACKED has one defect. Run without arguments for the lists of forms and kinds.
"""
import argparse
import json
import os
import struct
import sys
import zlib

import numpy as np

import packed_compressed
import packed_exl2
import packed_grouped as grouped
from packed_numbers import E2M1, E4M3, bf16, fp8, in_blocks, mxfp4, nearest

# ---- tensors -----------------------------------------------------------------------------------------


def weights(name, *shape):
    random = np.random.default_rng(zlib.crc32(name.encode()))
    w = random.standard_normal(shape) * 0.02 * np.exp(random.standard_normal((*shape[:-1], 1)) * .5)
    return w.astype(np.float32)


class Tensor:
    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.data = dtype, list(shape), np.ascontiguousarray(data).tobytes()


def plain(w):
    return Tensor("BF16", w.shape, bf16(w))


# ---- models ------------------------------------------------------------------------------------------


class Model:
    def __init__(self, config, quantization):
        self.config, self.quantization = config, quantization
        self.packed, self.plain = {}, {}
        self.beside = None  # the file with `quantization`, if config.json has none
        self.files = {}  # other files beside config.json

    def both(self, name, *shape, one=False):
        w = np.ones(shape, np.float32) if one else weights(name, *shape)
        self.packed[name] = self.plain[name] = plain(w)

    def fp8(self, name, *shape, blocks=(128, 128), scale="weight_scale_inv", dtype="F32", squeeze=None):
        """`squeeze`: the shape of the scales, if it is not that of a grid of blocks."""
        w = weights(name, *shape)
        rows, cols = (blocks[0] or shape[-2], blocks[1] or shape[-1])
        codes, scales, unpacked = fp8(w, rows, cols, dtype)
        ending = scale if name.endswith(".weight") else scale.replace("weight", "")
        self.packed[name] = Tensor("F8_E4M3", shape, codes)
        self.packed[name.removesuffix("weight") + ending] = Tensor(
            dtype, scales.shape if squeeze is None else squeeze, scales)
        self.plain[name] = plain(unpacked)

    def grouped(self, name, tensors, unpacked):
        for ending, (dtype, data) in tensors.items():
            self.packed[name.removesuffix("weight") + ending] = Tensor(dtype, data.shape, data)
        self.plain[name] = Tensor("F16", unpacked.shape, unpacked.astype("<f2"))

    def mxfp4(self, name, experts, out, cols):
        blocks, scales, unpacked = mxfp4(weights(name, experts, out, cols))
        self.packed[name + "_blocks"] = Tensor("U8", blocks.shape, blocks)
        self.packed[name + "_scales"] = Tensor("U8", scales.shape, scales)
        self.plain[name] = plain(unpacked.transpose(0, 2, 1))


def deepseek(scale_dtype="F32", quantization=None, pack=None, expert=136):
    """DeepSeek-V3 in its published form: a dense layer, one with experts; blocks truncated at the edges. Or packed
    differently, by `pack(model, name, rows, cols)`."""
    hidden, heads, q_rank, kv_rank, rope, nope, value, inner = 160, 2, 48, 32, 8, 16, 24, 192
    pack = pack or (lambda m, name, *shape: m.fp8(name, *shape, dtype=scale_dtype))
    m = Model({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "hidden_size": hidden,
               "num_hidden_layers": 2, "num_attention_heads": heads, "num_key_value_heads": heads, "q_lora_rank": q_rank,
               "kv_lora_rank": kv_rank, "qk_rope_head_dim": rope, "qk_nope_head_dim": nope, "v_head_dim": value,
               "intermediate_size": inner, "moe_intermediate_size": expert, "n_routed_experts": 3, "n_shared_experts": 1,
               "num_experts_per_tok": 2, "first_k_dense_replace": 1, "vocab_size": 96},
              quantization or {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                               "weight_block_size": [128, 128]})
    m.both("model.embed_tokens.weight", 96, hidden)
    for layer in range(2):
        p = f"model.layers.{layer}."
        m.both(p + "input_layernorm.weight", hidden, one=True)
        m.both(p + "post_attention_layernorm.weight", hidden, one=True)
        m.both(p + "self_attn.q_a_layernorm.weight", q_rank, one=True)
        m.both(p + "self_attn.kv_a_layernorm.weight", kv_rank, one=True)
        for name, *shape in (("q_a_proj", q_rank, hidden), ("q_b_proj", heads * (nope + rope), q_rank),
                             ("kv_a_proj_with_mqa", kv_rank + rope, hidden),
                             ("kv_b_proj", heads * (nope + value), kv_rank), ("o_proj", hidden, heads * value)):
            pack(m, p + f"self_attn.{name}.weight", *shape)
        where = [("mlp.", inner)] if layer == 0 else [("mlp.shared_experts.", expert)] + [
            (f"mlp.experts.{e}.", expert) for e in range(3)]
        for at, size in where:
            pack(m, p + at + "gate_proj.weight", size, hidden)
            pack(m, p + at + "up_proj.weight", size, hidden)
            pack(m, p + at + "down_proj.weight", hidden, size)
        if layer:
            m.both(p + "mlp.gate.weight", 3, hidden)
            m.both(p + "mlp.gate.e_score_correction_bias", 3)
    m.both("model.norm.weight", hidden, one=True)
    m.both("lm_head.weight", 96, hidden)
    return m


def qwen3(quantization, pack, experts=0, inner=144, fused=True, hidden=96, heads=4, size=24, vocab=80):
    """Qwen3; `pack(model, name, rows, cols)` packs its projections. Experts may be fused."""
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": hidden,
              "num_hidden_layers": 1, "num_attention_heads": heads, "num_key_value_heads": heads // 2, "head_dim": size,
              "intermediate_size": inner, "vocab_size": vocab}
    if experts:
        config.update(model_type="qwen3_moe", architectures=["Qwen3MoeForCausalLM"], num_experts=experts,
                      num_experts_per_tok=2, moe_intermediate_size=inner)
    m = Model(config, quantization)
    m.both("model.embed_tokens.weight", vocab, hidden)
    p = "model.layers.0."
    for name in ("input_layernorm", "post_attention_layernorm"):
        m.both(p + name + ".weight", hidden, one=True)
    for name in ("q_norm", "k_norm"):
        m.both(p + f"self_attn.{name}.weight", size, one=True)
    for name, *shape in (("q", heads * size, hidden), ("k", heads // 2 * size, hidden),
                         ("v", heads // 2 * size, hidden), ("o", hidden, heads * size)):
        pack(m, p + f"self_attn.{name}_proj.weight", *shape)
    if experts:
        m.both(p + "mlp.gate.weight", experts, hidden)
    if experts and fused:
        pack(m, p + "mlp.experts.gate_up_proj", experts, 2 * inner, hidden)
        pack(m, p + "mlp.experts.down_proj", experts, hidden, inner)
    else:
        for at in [f"mlp.experts.{e}." for e in range(experts)] or ["mlp."]:
            for name, *shape in (("gate", inner, hidden), ("up", inner, hidden), ("down", hidden, inner)):
                pack(m, p + f"{at}{name}_proj.weight", *shape)
    m.both("model.norm.weight", hidden, one=True)
    m.both("lm_head.weight", vocab, hidden)
    return m


def small(quantization, pack):
    """The smallest sizes that kernels accept, with separate experts, for tests that convert it often."""
    return qwen3(quantization, pack, experts=2, inner=16, fused=False, hidden=32, heads=2, size=16, vocab=16)


def qwen3_blocks():
    """Qwen3-...-FP8: scales in bf16."""
    return qwen3({"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]},
                 lambda m, name, *shape: m.fp8(name, *shape, dtype="BF16"))


def qwen3_channel():
    """fbgemm: a scale per row, and a bound of activations, which xfp ignores."""
    def pack(m, name, *shape):
        m.fp8(name, *shape, blocks=(1, 0), scale="weight_scale")
        m.packed[name.replace(".weight", ".input_scale_ub")] = Tensor("F32", [1], np.float32([1200]))

    return qwen3({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]}, pack)


def qwen3_tensor():
    """A scale for a whole matrix, beside those of activations and of the cache."""
    def pack(m, name, *shape):
        m.fp8(name, *shape, blocks=(0, 0), scale="weight_scale", squeeze=[])
        m.packed[name.replace(".weight", ".input_scale")] = Tensor("F32", [], np.float32(.5))
        if "k_proj" in name or "v_proj" in name:
            which = name.split("_proj")[0][-1]
            m.packed[name.replace(".weight", f".{which}_scale")] = Tensor("F32", [], np.float32(1))

    return qwen3({"quant_method": "fp8", "activation_scheme": "static"}, pack)


def qwen3_moe():
    """Fused experts: gate_up in blocks, down with a scale per expert."""
    def pack(m, name, *shape):
        if name.endswith("down_proj"):
            m.fp8(name, *shape, blocks=(0, 0), squeeze=shape[:1])
        else:
            m.fp8(name, *shape)

    return qwen3({"activation_scheme": "dynamic", "quant_method": "fp8", "weight_block_size": [128, 128]}, pack, 3)


def gpt_oss():
    hidden, heads, size, inner, experts = 64, 4, 16, 96, 3
    m = Model({"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_size": hidden,
               "num_hidden_layers": 1, "num_attention_heads": heads, "num_key_value_heads": 2, "head_dim": size,
               "intermediate_size": inner, "num_local_experts": experts, "num_experts_per_tok": 2, "vocab_size": 96},
              {"quant_method": "mxfp4", "modules_to_not_convert": [
                  "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]})
    p = "model.layers.0."
    m.both("model.embed_tokens.weight", 96, hidden)
    m.both("lm_head.weight", 96, hidden)
    m.both("model.norm.weight", hidden, one=True)
    for name in ("input_layernorm", "post_attention_layernorm"):
        m.both(p + name + ".weight", hidden, one=True)
    for name, rows, cols in (("q", heads * size, hidden), ("k", 2 * size, hidden), ("v", 2 * size, hidden),
                             ("o", hidden, heads * size)):
        m.both(p + f"self_attn.{name}_proj.weight", rows, cols)
        m.both(p + f"self_attn.{name}_proj.bias", rows)
    m.both(p + "self_attn.sinks", heads)
    m.both(p + "mlp.router.weight", experts, hidden)
    m.both(p + "mlp.router.bias", experts)
    m.mxfp4(p + "mlp.experts.gate_up_proj", experts, 2 * inner, hidden)
    m.mxfp4(p + "mlp.experts.down_proj", experts, hidden, inner)
    m.both(p + "mlp.experts.gate_up_proj_bias", experts, 2 * inner)
    m.both(p + "mlp.experts.down_proj_bias", experts, hidden)
    return m


def llama(quantization, pack, beside=None):
    """Llama; `pack(w)` packs its projections, whose sizes every kernel accepts."""
    hidden, heads, size, inner = 128, 4, 32, 192
    m = Model({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": hidden,
               "num_hidden_layers": 1, "num_attention_heads": heads, "num_key_value_heads": 2,
               "intermediate_size": inner, "vocab_size": 80}, quantization)
    m.beside = beside
    m.both("model.embed_tokens.weight", 80, hidden)
    p = "model.layers.0."
    for name in ("input_layernorm", "post_attention_layernorm"):
        m.both(p + name + ".weight", hidden, one=True)
    for name, rows, cols in (("self_attn.q", heads * size, hidden), ("self_attn.k", 2 * size, hidden),
                             ("self_attn.v", 2 * size, hidden), ("self_attn.o", hidden, heads * size),
                             ("mlp.gate", inner, hidden), ("mlp.up", inner, hidden), ("mlp.down", hidden, inner)):
        name = p + name + "_proj.weight"
        if pack:
            m.grouped(name, *pack(weights(name, rows, cols)))
        else:
            m.both(name, rows, cols)
    m.both("model.norm.weight", hidden, one=True)
    m.both("lm_head.weight", 80, hidden)
    return m


def awq(version, pack):
    return lambda: llama({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": version,
                          "modules_to_not_convert": None}, lambda w: pack(w, 64))


def awq_old():
    return llama({"zero_point": True, "q_group_size": 64, "w_bit": 4, "version": "GEMM"},
                 lambda w: grouped.awq_gemm(w, 64), "quant_config.json")


def gptq(bits, group, checkpoint_format="gptq", act=False, index=True, beside=None):
    """GPTQ; with `act` its inputs were sorted, and the last group, which may be smaller, has any of them."""
    pack, config = gptq_parts(bits, group, checkpoint_format, act, index, beside)
    return llama(config, pack, beside)


def gptq_parts(bits, group, checkpoint_format="gptq", act=False, index=True, beside=None):
    def pack(w):
        order = np.random.default_rng(w.shape[1]).permutation(w.shape[1]) if act else None
        return grouped.gptq(w, bits, group if group > 0 else w.shape[1], checkpoint_format == "gptq", order, index)

    config = {"bits": bits, "group_size": group, "damp_percent": 0.01, "desc_act": act, "sym": False}
    if not beside:
        config.update(quant_method="gptq", checkpoint_format=checkpoint_format)
    return pack, config


def gptq_small():
    pack, config = gptq_parts(4, 12, act=True)
    return small(config, lambda m, name, *shape: m.grouped(name, *pack(weights(name, *shape))))


FORMS = {"deepseek": deepseek, "deepseek-e8m0": lambda: deepseek("F8_E8M0"), "qwen3-blocks": qwen3_blocks,
         "qwen3-channel": qwen3_channel, "qwen3-tensor": qwen3_tensor, "qwen3-moe": qwen3_moe, "gpt_oss": gpt_oss,
         "awq-gemm": awq("GEMM", grouped.awq_gemm), "awq-gemv": awq("gemv", grouped.awq_gemv),
         "awq-gemv-fast": awq("Gemv_Fast", grouped.awq_gemv_fast), "awq-old": awq_old,
         "gptq": lambda: gptq(4, 64), "gptq-act": lambda: gptq(4, 80, act=True), "gptq-small": gptq_small,
         "gptq-v2": lambda: gptq(3, -1, "gptq_v2"), "gptq-2bit": lambda: gptq(2, 32, index=False),
         "gptq-old": lambda: gptq(8, 64, beside="quantize_config.json")}
for more in (packed_compressed, packed_exl2):
    FORMS.update(more.forms(sys.modules[__name__]))


# ---- defects -----------------------------------------------------------------------------------------


def some(m, ending):
    """The first packed tensor whose name has this suffix."""
    return next(name for name in sorted(m.packed) if name.endswith(ending))


def ending_of_scales(m):
    return next(e for e in ("_scale_inv", "_scales", "weight_scale", ".scales") if any(n.endswith(e) for n in m.packed))


def missing(m):
    del m.packed[some(m, ending_of_scales(m))]


def shape(m):
    t = m.packed[some(m, ending_of_scales(m))]
    t.shape = t.shape[:-1] + [t.shape[-1] * 2]
    t.data *= 2


def left_over(m):
    name = some(m, ending_of_scales(m))
    m.packed["model.stray." + name.rsplit(".", 1)[1]] = m.packed[name]


def unpacked(m):
    m.packed = dict(m.plain)


def both(m):
    name = next(n for n in sorted(m.plain) if n not in m.packed)
    m.packed[name] = m.plain[name]


NOT_NUMBERS = {"F32": b"\0\0\xc0\x7f", "BF16": b"\xc0\x7f", "F16": b"\0\x7e"}  # for other types, all bits set
INFINITIES = {"F32": b"\0\0\x80\x7f", "BF16": b"\x80\x7f", "F16": b"\0\x7c"}


def scales(m):
    return m.packed[some(m, ending_of_scales(m))]


def replace(t, number, count=None):
    """Replace the first `count` elements, or all."""
    all_of_them = len(t.data) // len(number)
    count = all_of_them if count is None else count
    t.data = number * count + t.data[len(number) * count:]


def nan(m):
    replace(scales(m), NOT_NUMBERS.get(scales(m).dtype, b"\xff"))


def one_nan(m):
    replace(scales(m), NOT_NUMBERS.get(scales(m).dtype, b"\xff"), 1)


def one_infinite(m):
    replace(scales(m), INFINITIES[scales(m).dtype], 1)


def one_zero(m):
    replace(scales(m), bytes({"F32": 4, "BF16": 2, "F16": 2}.get(scales(m).dtype, 1)), 1)


def global_nan(m):
    replace(m.packed[some(m, ending_of_second(m))], NOT_NUMBERS["F32"])


def ending_of_second(m):
    return ".weight_scale_2" if any(n.endswith(".weight_scale_2") for n in m.packed) else ".weight_global_scale"


def code_nan(m):
    """Replace the first 8-bit float."""
    replace(next(m.packed[n] for n in sorted(m.packed) if m.packed[n].dtype == "F8_E4M3"), b"\x7f", 1)


def zero(m):
    """Scales of 0, so that the weights are 0, too."""
    name = some(m, ending_of_scales(m))
    t = m.packed[name]
    t.data = bytes(len(t.data))
    m.plain[name.removesuffix("_scale_inv")].data = bytes(len(m.plain[name.removesuffix("_scale_inv")].data))


def block_size(m):
    m.quantization["weight_block_size"] = [64, 128]


def also_blocks(m):
    """Scales per row, although the config says blocks."""
    m.quantization["weight_block_size"] = [32, 32]


def no_block_size(m):
    del m.quantization["weight_block_size"]


def bad_block_size(m):
    m.quantization["weight_block_size"] = [128, 0]


def fmt(m):
    m.quantization["fmt"] = "e5m2"


def fnuz(m):
    m.quantization["fmt"] = "float8_e4m3fnuz"


def scale_dtype(m):
    t = m.packed[some(m, ending_of_scales(m))]
    t.dtype = "I32"


def bits(m):
    m.quantization["bits"] = 8


def odd_bits(m):
    m.quantization["bits"] = 5


def bad_bits(m):
    m.quantization["bits"] = "four"


def group_size(m):
    m.quantization["group_size"] = 48


def bad_group_size(m):
    m.quantization["group_size"] = 0


def version(m):
    m.quantization["version"] = "Marlin"


def exllama(m):
    m.quantization["version"] = "exllama"


def checkpoint_format(m):
    m.quantization["checkpoint_format"] = "marlin"


def no_zeros(m):
    del m.packed[some(m, ".qzeros")]


def activation(m):
    m.packed["model.layers.0.mlp.act_fn.scales"] = Tensor("F16", [192], np.ones(192, "<f2"))


def no_index(m):
    for name in [n for n in m.packed if n.endswith(".g_idx")]:
        del m.packed[name]


def index_dtype(m):
    m.packed[some(m, ".g_idx")].dtype = "F32"


def index_range(m):
    t = m.packed[some(m, ".g_idx")]
    t.data = t.data[:8] + struct.pack("<i", 77) + t.data[12:]


def index_uneven(m):
    t = m.packed[some(m, ".g_idx")]
    t.data = bytes(len(t.data))


def scales_of_integers(m):
    m.packed[some(m, ".scales")].dtype = "I16"


def silent(m):
    m.quantization = None


def forgotten(m):
    """A file of an older tool that describes nothing: the weights are not packed."""
    m.packed, m.beside = dict(m.plain), "quantize_config.json"


SPOILS = {f.__name__.replace("_", "-"): f for f in (missing, shape, left_over, unpacked, both, nan, one_nan, one_infinite,
                                                    one_zero, global_nan, code_nan, zero, block_size, no_block_size,
                                                    also_blocks, bad_block_size, fmt, fnuz, scale_dtype, bits, odd_bits,
                                                    bad_bits, group_size, bad_group_size, version, exllama, checkpoint_format, no_zeros,
                                                    activation, no_index, index_dtype, index_range, index_uneven,
                                                    scales_of_integers, silent, forgotten)}
for more in (packed_compressed, packed_exl2):
    assert not SPOILS.keys() & more.SPOILS.keys()
    SPOILS.update(more.SPOILS)


# ---- writing -----------------------------------------------------------------------------------------


def write_file(path, tensors):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, at + len(t.data)]}
        at += len(t.data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(t.data for t in tensors.values()))


def write(folder, tensors, config, shards):
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
    if shards == 1:
        write_file(os.path.join(folder, "model.safetensors"), tensors)
        return
    names = sorted(tensors)
    files = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    for i, file in enumerate(files):
        write_file(os.path.join(folder, file), {name: tensors[name] for name in names[i::shards]})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"metadata": {}, "weight_map": {name: files[i % shards] for i, name in enumerate(names)}}, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("packed")
    parser.add_argument("plain")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--spoil", choices=SPOILS)
    options = parser.parse_args()
    m = FORMS[options.form]()
    if options.spoil:
        SPOILS[options.spoil](m)
    inside = m.quantization and not m.beside
    write(options.packed, m.packed, {**m.config, "quantization_config": m.quantization} if inside else m.config,
          options.shards)
    for name, content in {**m.files, **({m.beside: m.quantization} if m.beside else {})}.items():
        with open(os.path.join(options.packed, name), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
    write(options.plain, m.plain, m.config, 1)


if __name__ == "__main__":
    main()

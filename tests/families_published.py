# SPDX-License-Identifier: Apache-2.0
"""Models for families.py in their published forms: names, config.json, packed and plain tensors.

Each model exists twice: tiny, with weights, and as NAME-real in the published sizes, with one layer of each kind, as
sparse files with only headers. Names and shapes are those that the transformers package (5.23) reads, whose own names
for fused experts are in families.py; what is packed, and how config.json describes it, are facts about the published
files, which were not at hand.
"""
import re

import numpy as np

from packed_compressed import words
from packed_numbers import bf16, fp8, mxfp4
from safetensors_io import widen_bf16

# Set by add(): what families.py provides for all models.
base = None

BYTES = {"F8_E4M3": 1, "U8": 1, "BF16": 2, "F32": 4, "I32": 4, "I64": 8}


class Hole:
    """The bytes of a tensor, which are never written."""

    def __init__(self, dtype, shape):
        self.size = BYTES[dtype] * int(np.prod(shape, dtype=np.int64))

    def __len__(self):
        return self.size

    def write(self, file):
        file.seek(self.size, 1)


# ---- forms ---------------------------------------------------------------------------------------------

def ceil(n, block):
    return -(-n // block)


class Form:
    """The stored tensors of a tensor X or X.weight of this shape: {suffix: (dtype, shape)}; pack() returns the bytes of
    each, and the unpacked weights."""

    def __init__(self, pattern, scales="BF16"):
        self.pattern, self.scales = re.compile(pattern), scales

    def __call__(self, made):
        packed = {}
        for name, (dtype, shape, piece) in list(made.items()):
            if not self.pattern.search(name):
                packed[name] = made[name]
                continue
            parts = self.parts(shape)
            if isinstance(piece, Hole):
                data = {ending: Hole(*part) for ending, part in parts.items()}
            else:
                w = widen_bf16(np.frombuffer(piece, "<u2").reshape(shape))
                data, unpacked = self.pack(w)
                made[name] = (dtype, shape, bf16(unpacked).tobytes())
            data.update(self.always(shape))
            for ending, part in parts.items():
                assert len(data[ending]) == len(Hole(*part)), (name, ending)
                packed[name + ending] = (*part, data[ending])
        return packed

    def always(self, _):
        return {}


class Blocks(Form):
    """8-bit floats with a scale per 128 rows and columns."""

    def parts(self, shape):
        return {"": ("F8_E4M3", shape), "_scale_inv": (self.scales, [ceil(n, 128) for n in shape])}

    def pack(self, w):
        codes, scales, unpacked = fp8(w, 128, 128, self.scales)
        return {"": codes.tobytes(), "_scale_inv": scales.tobytes()}, unpacked


class Channels(Form):
    """8-bit floats of compressed-tensors, with a scale per row."""

    def parts(self, shape):
        return {"": ("F8_E4M3", shape), "_scale": (self.scales, [shape[0], 1])}

    def pack(self, w):
        codes, scales, unpacked = fp8(w, 1, w.shape[1], self.scales)
        return {"": codes.tobytes(), "_scale": scales.tobytes()}, unpacked


class Words(Form):
    """4-bit integers of compressed-tensors, with a scale per 32 columns."""

    def parts(self, shape):
        return {"_packed": ("I32", [shape[0], shape[1] // 8]), "_scale": (self.scales, [shape[0], shape[1] // 32]),
                "_shape": ("I32", [2])}

    def always(self, shape):
        return {"_shape": np.array(shape, "<i4").tobytes()}

    def pack(self, w):
        groups = w.reshape(w.shape[0], -1, 32)
        stored = bf16(np.abs(groups).max(-1) / np.float32(7))
        scale = widen_bf16(stored)[..., None]
        codes = np.clip(np.round(groups / scale), -8, 7).astype(np.int64)  # which have no -0
        data = words(codes.reshape(w.shape) + 8, 4, True)
        unpacked = (codes.astype(np.float32) * scale).reshape(w.shape)
        return {"_packed": data.tobytes(), "_scale": stored.tobytes()}, unpacked


class Mxfp4(Form):
    """4-bit floats of stacks [experts, inputs, outputs], stored transposed."""

    def parts(self, shape):
        return {"_blocks": ("U8", [shape[0], shape[2], shape[1] // 32, 16]),
                "_scales": ("U8", [shape[0], shape[2], shape[1] // 32])}

    def pack(self, w):
        blocks, scales, unpacked = mxfp4(w.swapaxes(1, 2))
        return {"_blocks": blocks.tobytes(), "_scales": scales.tobytes()}, unpacked.swapaxes(1, 2)


def fine_grained(fmt="e4m3", **more):
    return {"activation_scheme": "dynamic", "fmt": fmt, "quant_method": "fp8", "weight_block_size": [128, 128], **more}


def compressed(fmt, ignore, inputs, **weights):
    weights = {"actorder": None, "block_structure": None, "dynamic": False, "observer": "minmax", "observer_kwargs": {},
               "group_size": None, "symmetric": True, **weights}
    group = {"input_activations": inputs, "output_activations": None, "targets": ["Linear"], "weights": weights}
    return {"config_groups": {"group_0": group}, "format": fmt, "ignore": ignore, "kv_cache_scheme": None,
            "quant_method": "compressed-tensors", "quantization_status": "compressed"}


def channels(ignore):
    inputs = {"dynamic": True, "num_bits": 8, "strategy": "token", "symmetric": True, "type": "float"}
    return compressed("float-quantized", ignore, inputs, num_bits=8, strategy="channel", type="float")


def unpacked(config):
    """The config.json of the same model in 16 bits; models with vision have quantization_config in text_config."""
    return {key: unpacked(value) if key == "text_config" else value for key, value in config.items()
            if key != "quantization_config"}


# ---- models --------------------------------------------------------------------------------------------

# Sizes that are not multiples of 128, but of 32.
TINY = {"H": 160, "Q": 64, "KV": 32, "D": 16, "I": 192, "DI": 224, "V": 128, "E": 4}


def both(name, family, real, config, table, publish=None, tiny=None):
    """The model, tiny and real. `config` depends on the sizes; EXPERTS in the table means all."""
    for name, s in (name, {**TINY, **(tiny or {})}), (name + "-real", {**real, "REAL": 1}):
        base.model(name, family, s, config(s), table.replace("EXPERTS", f"{{*0-{s['E'] - 1}}}"), publish)


def sizes(s, **more):
    """Keys of every config.json."""
    return {"hidden_size": s["H"], "num_attention_heads": s["Q"] // s["D"], "num_key_value_heads": s["KV"] // s["D"],
            "head_dim": s["D"], "intermediate_size": s["I"], "num_hidden_layers": 2, "vocab_size": s["V"],
            "max_position_embeddings": 4096, "rms_norm_eps": 1e-06, "hidden_act": "silu", "torch_dtype": "bfloat16",
            "tie_word_embeddings": False,
            **more}


def named(model_type, architecture, s, **more):
    return {"model_type": model_type, "architectures": [architecture], **sizes(s, **more)}


def symbolic(text, **numbers):
    """Replace numbers in a table of families.py, whole dimensions or factors, by names of sizes."""
    for name, number in numbers.items():
        text = re.sub(rf"(?<=[ ,]){re.escape(number)}(?=$|[ ,])", name, text, flags=re.M)
    return text.replace("{*0-3}", "EXPERTS")


def qwen3():
    norms = symbolic(base.QK_NORMS, D="16")
    common = base.ATTENTION + norms + base.ENDS + base.HEAD
    real = {"H": 4096, "Q": 4096, "KV": 1024, "D": 128, "I": 12288, "V": 151936, "E": 1}
    both("qwen3-fp8", "qwen3", real,
         lambda s: {**named("qwen3", "Qwen3ForCausalLM", s), "quantization_config": fine_grained()},
         base.at("model", common, base.MLP), Blocks(r"_proj\.weight$"))
    real = {"H": 4096, "Q": 8192, "KV": 512, "D": 128, "I": 1536, "V": 151936, "E": 128}
    both("qwen3_moe-fp8", "qwen3_moe", real,
         lambda s: {**named("qwen3_moe", "Qwen3MoeForCausalLM", s, num_experts=s["E"], num_experts_per_tok=2,
                            moe_intermediate_size=s["I"]),
                    "quantization_config": fine_grained(modules_to_not_convert=["lm_head"] + [
                        f"model.layers.{i}.{name}" for i in range(2)
                        for name in ("input_layernorm", "mlp.gate", "post_attention_layernorm")])},
         base.at("model", common, symbolic(base.SPLIT_EXPERTS), base.ROUTER), Blocks(r"_proj\.weight$"))


def qwen3_next():
    """Linear attention's in_proj_ba, too small for blocks, is not packed, nor are the gates and mtp.fc."""
    table = base.at("model", base.GATED, base.DELTA_NEXT, base.SPLIT_EXPERTS, base.SHARED, base.ROUTER, base.ENDS,
                    base.HEAD) + base.MTP + base.MTP_SHARED + base.MTP_MLP.replace(
                        "PREFIX", "mtp.layers.0.mlp.experts.{*0-3}.")
    table = re.sub(r"(linear_attn\.norm\.weight +)16", r"\1LD", table)
    table = re.sub(r"(A_log|dt_bias)( +)4", r"\1\2NV", table).replace(" 8,H", " 2*NV,H")
    real = {"H": 2048, "Q": 4096, "KV": 512, "D": 256, "I": 512, "V": 151936, "E": 512, "KD": 2048, "VD": 4096,
            "LD": 128, "NV": 32}
    both("qwen3_next-fp8", "qwen3_next", real, lambda s: {
        **named("qwen3_next", "Qwen3NextForCausalLM", s, num_experts=s["E"], num_experts_per_tok=2,
                moe_intermediate_size=s["I"], shared_expert_intermediate_size=s["I"],
                linear_num_key_heads=s["KD"] // s["LD"], linear_num_value_heads=s["NV"],
                linear_key_head_dim=s["LD"], linear_value_head_dim=s["LD"],
                linear_conv_kernel_dim=4, full_attention_interval=2),
        "quantization_config": fine_grained(modules_to_not_convert=[
            "lm_head", "model.embed_tokens", "mtp.fc", "model.layers.0.linear_attn.conv1d",
            "model.layers.0.linear_attn.in_proj_ba"] + [
                f"model.layers.{i}.mlp.{name}" for i in range(2) for name in ("gate", "shared_expert_gate")])},
         symbolic(table, D="16"), Blocks(r"(_proj|in_proj_qkvz)\.weight$"),
         {"KD": 32, "VD": 64, "LD": 16, "NV": 4})


# A dense layer, one with experts, and a last one that predicts a further token.
LAST = """
    mtp        -          P.layers.2.embed_tokens.weight      V,H
    mtp        -          P.layers.2.enorm.weight             H
    mtp        -          P.layers.2.hnorm.weight             H
    mtp        -          P.layers.2.eh_proj.weight           H,2*H
    mtp        -          P.layers.2.shared_head.norm.weight  H
    mtp        lm_head    P.layers.2.shared_head.head.weight  V,H
"""
FIRST = """
    dense_mlp  gate       P.layers.0.mlp.gate_proj.weight     DI,H
    dense_mlp  up         P.layers.0.mlp.up_proj.weight       DI,H
    dense_mlp  down       P.layers.0.mlp.down_proj.weight     H,DI
    norm       -          P.norm.weight                       H
    embedding  embedding  P.embed_tokens.weight               V,H
"""


def with_experts(attention, moe, prefix, last=True):
    moe = symbolic(moe)
    text = base.layers(attention, "P.layers.{0-1}", **base.NAMED) + base.layers(moe, "P.layers.1", **base.NAMED) + FIRST
    if last:
        text += base.layers(attention + moe, "P.layers.2", all="mtp") + LAST
    return base.at(prefix, text)


def deepseek():
    attention = base.MLA_ATTENTION
    for number, name in ("4*24", "QB"), ("4*32", "KVB"), ("KVR+8", "KVR+D"), ("H,64", "H,O"):
        attention = attention.replace(number, name)
    tiny = {"QR": 48, "KVR": 32, "D": 8, "QB": 96, "KVB": 128, "O": 64, "Q": 32, "KV": 32, "ND": 16}
    v3 = {"H": 7168, "Q": 8192, "KV": 8192, "D": 64, "I": 2048, "DI": 18432, "V": 129280, "E": 256, "QR": 1536,
          "KVR": 512, "QB": 24576, "KVB": 32768, "O": 16384, "ND": 128}
    k2 = {**v3, "Q": 4096, "KV": 4096, "V": 163840, "E": 384, "QB": 12288, "KVB": 16384, "O": 8192}

    def config(model_type, quantization, architecture="DeepseekV3ForCausalLM", last=1):
        def of(s):
            text = named(model_type, architecture, s, intermediate_size=s["DI"], moe_intermediate_size=s["I"],
                         q_lora_rank=s["QR"], kv_lora_rank=s["KVR"], qk_rope_head_dim=s["D"], qk_nope_head_dim=s["ND"],
                         v_head_dim=s["ND"], n_routed_experts=s["E"], num_experts_per_tok=2, n_group=1, topk_group=1,
                         n_shared_experts=1, first_k_dense_replace=1, num_nextn_predict_layers=last)
            text["quantization_config"] = quantization
            return {key: value for key, value in text.items() if key != "head_dim"}
        return of

    packed = r"(proj|with_mqa)\.weight$(?<!eh_proj\.weight)"
    both("deepseek_v3-fp8", "deepseek", v3, config("deepseek_v3", fine_grained()),
         with_experts(attention, base.MLA_MOE, "model") + base.HEAD, Blocks(packed, "F32"), tiny)
    without = with_experts(attention, base.MLA_MOE, "model", False) + base.HEAD
    both("kimi_k2-fp8", "deepseek", k2, config("kimi_k2", fine_grained(), last=0), without, Blocks(packed, "F32"), tiny)
    ignore = ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]
    int4 = compressed("pack-quantized", ignore, None, num_bits=4, group_size=32, strategy="group", type="int")
    routed = Words(r"mlp\.experts\.[0-9]+\.[a-z]+_proj\.weight$")
    both("kimi_k2-int4", "deepseek", k2, config("kimi_k2", int4, last=0), without, routed, tiny)

    def k25(s):
        text = config("kimi_k2", int4, last=0)(s)
        return {"model_type": "kimi_k25", "architectures": ["KimiK25ForConditionalGeneration"], "text_config": text,
                "vision_config": {"model_type": "kimi_k25", "vt_hidden_size": 1152}, "tie_word_embeddings": False}

    both("kimi_k25-int4", "deepseek", k2, k25,
         with_experts(attention, base.MLA_MOE, "language_model.model", False) + """
    lm_head  lm_head  language_model.lm_head.weight                 V,H
    vision   -        vision_tower.patch_embed.proj.weight          32,3,14,14
    vision   -        vision_tower.encoder.blocks.{0-1}.wqkv.weight 96,32
    vision   -        vision_tower.encoder.blocks.{0-1}.wo.weight   32,32
    vision   -        mm_projector.pre_norm.weight                  32
    vision   -        mm_projector.proj.0.weight                    128,128
    vision   -        mm_projector.proj.2.weight                    H,128
""", routed, tiny)


def gpt_oss():
    """Sizes of 20b: hidden_size and the experts' size are equal."""
    real = {"H": 2880, "Q": 4096, "KV": 512, "D": 64, "I": 2880, "V": 201088, "E": 32}
    both("gpt_oss-mxfp4", "gpt_oss", real, lambda s: {
        **named("gpt_oss", "GptOssForCausalLM", s, num_local_experts=s["E"], num_experts_per_tok=4,
                attention_bias=True, rope_scaling={"rope_type": "yarn", "factor": 32.0, "truncate": False,
                                                   "original_max_position_embeddings": 4096}),
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}},
         base.at("model", re.sub(r"(sinks +)4", r"\1Q//D", base.OSS_REST), """
    routed_expert  gate=w[:,:,0::2].swapaxes(1,2);up=w[:,:,1::2].swapaxes(1,2)  P.layers.{0-1}.mlp.experts.gate_up_proj  E,H,2*I
    routed_expert  down=w.swapaxes(1,2)                                         P.layers.{0-1}.mlp.experts.down_proj     E,I,H
"""), Mxfp4(r"experts\.(gate_up|down)_proj$"), {"I": 160})


def minimax():
    """Norms of q and k span all heads; the router is in f32."""
    config = lambda s: named("minimax_m2", "MiniMaxM2ForCausalLM", s, num_local_experts=s["E"], num_experts_per_tok=2,
                             use_qk_norm=True, use_routing_bias=True, use_mtp=True, num_mtp_modules=3)
    rest = base.ATTENTION + base.ENDS + base.HEAD + """
    norm    -  P.layers.{0-1}.self_attn.q_norm.weight  Q
    norm    -  P.layers.{0-1}.self_attn.k_norm.weight  KV
"""
    real = {"H": 3072, "Q": 6144, "KV": 1024, "D": 128, "I": 1536, "V": 200064, "E": 256}
    both("minimax_m2-fp8", "minimax_m2", real,
         lambda s: {**config(s), "quantization_config": fine_grained(
             "float8_e4m3fn", modules_to_not_convert=["gate", "e_score_correction_bias", "lm_head"])},
         base.at("model", rest, """
    router         -     P.layers.{0-1}.block_sparse_moe.gate.weight               E,H  F32
    router         -     P.layers.{0-1}.block_sparse_moe.e_score_correction_bias   E    F32
    routed_expert  gate  P.layers.{0-1}.block_sparse_moe.experts.EXPERTS.w1.weight  I,H
    routed_expert  down  P.layers.{0-1}.block_sparse_moe.experts.EXPERTS.w2.weight  H,I
    routed_expert  up    P.layers.{0-1}.block_sparse_moe.experts.EXPERTS.w3.weight  I,H
"""), Blocks(r"(_proj|\.w[123])\.weight$", "F32"))
    bias = """
    router         -     P.layers.{0-1}.mlp.e_score_correction_bias                E    F32
"""
    base.model("minimax_m2-fused", "minimax_m2", TINY, config(TINY),
               base.at("model", rest, base.FUSED_EXPERTS, base.ROUTER, bias))


def glm4_moe():
    """GLM-4.5; Air has no norms of q and k."""
    attention = """
    ATTENTION  q  L.self_attn.q_proj.weight            Q,H
    ATTENTION  k  L.self_attn.k_proj.weight            KV,H
    ATTENTION  v  L.self_attn.v_proj.weight            KV,H
    ATTENTION  o  L.self_attn.o_proj.weight            H,Q
    ATTENTION  -  L.self_attn.q_proj.bias              Q
    ATTENTION  -  L.self_attn.k_proj.bias              KV
    ATTENTION  -  L.self_attn.v_proj.bias              KV
    NORM       -  L.input_layernorm.weight             H
    NORM       -  L.post_attention_layernorm.weight    H
"""
    norms = """
    NORM       -  L.self_attn.q_norm.weight            D
    NORM       -  L.self_attn.k_norm.weight            D
"""
    real = {"H": 5120, "Q": 12288, "KV": 1024, "D": 128, "I": 1536, "DI": 12288, "V": 151552, "E": 160}
    air = {**real, "H": 4096, "I": 1408, "DI": 10944, "E": 128}

    def config(s, normed=True):
        return named("glm4_moe", "Glm4MoeForCausalLM", s, intermediate_size=s["DI"], moe_intermediate_size=s["I"],
                     n_routed_experts=s["E"], num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1,
                     num_nextn_predict_layers=1, attention_bias=True, use_qk_norm=normed, partial_rotary_factor=0.5)

    both("glm4_moe-air", "glm4_moe", air, lambda s: config(s, False),
         with_experts(attention, base.MLA_MOE, "model") + base.HEAD)
    ignore = ["lm_head", "model.layers.1.mlp.gate", "model.layers.2.mlp.gate", "model.layers.2.eh_proj",
              "model.layers.2.shared_head.head"]
    both("glm4_moe-fp8", "glm4_moe", real, lambda s: {**config(s), "quantization_config": channels(ignore)},
         with_experts(attention + norms, base.MLA_MOE, "model") + base.HEAD,
         Channels(r"(?<!eh)_proj\.weight$"))


def llama4():
    """Maverick, whose every second layer has experts; the FP8 release packs only these, one by one."""
    rest = base.ATTENTION + base.ENDS + """
    dense_mlp      gate  P.layers.0.feed_forward.gate_proj.weight                DI,H
    dense_mlp      up    P.layers.0.feed_forward.up_proj.weight                  DI,H
    dense_mlp      down  P.layers.0.feed_forward.down_proj.weight                H,DI
    router         -     P.layers.1.feed_forward.router.weight                   E,H
    shared_expert  gate  P.layers.1.feed_forward.shared_expert.gate_proj.weight  I,H
    shared_expert  up    P.layers.1.feed_forward.shared_expert.up_proj.weight    I,H
    shared_expert  down  P.layers.1.feed_forward.shared_expert.down_proj.weight  H,I
    lm_head   lm_head    language_model.lm_head.weight                           V,H
    vision         -     vision_model.class_embedding                            32
    vision         -     vision_model.positional_embedding_vlm                   577,32
    vision         -     vision_model.patch_embedding.linear.weight              32,588
    vision         -     vision_model.layernorm_pre.bias                         32
    vision         -     vision_model.model.layers.{0-1}.self_attn.q_proj.weight 32,32
    vision         -     vision_model.model.layers.{0-1}.self_attn.q_proj.bias   32
    vision         -     vision_model.model.layers.{0-1}.mlp.fc1.weight          64,32
    vision         -     vision_model.model.layers.{0-1}.input_layernorm.weight  32
    vision         -     vision_model.vision_adapter.mlp.fc1.weight              64,64
    vision         -     multi_modal_projector.linear_1.weight                   H,64
"""
    fused = """
    routed_expert  gate=w[:,:,:I].swapaxes(1,2);up=w[:,:,I:].swapaxes(1,2)  P.layers.1.feed_forward.experts.gate_up_proj  E,H,2*I
    routed_expert  down=w.swapaxes(1,2)                                     P.layers.1.feed_forward.experts.down_proj     E,I,H
"""
    single = """
    routed_expert  gate  P.layers.1.feed_forward.experts.EXPERTS.gate_proj.weight  I,H
    routed_expert  up    P.layers.1.feed_forward.experts.EXPERTS.up_proj.weight    I,H
    routed_expert  down  P.layers.1.feed_forward.experts.EXPERTS.down_proj.weight  H,I
"""
    real = {"H": 5120, "Q": 5120, "KV": 1024, "D": 128, "I": 8192, "DI": 16384, "V": 202048, "E": 128}

    def config(s):
        text = sizes(s, model_type="llama4_text", intermediate_size_mlp=s["DI"], num_local_experts=s["E"],
                     num_experts_per_tok=1, interleave_moe_layer_step=2, use_qk_norm=False)
        return {"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"], "text_config": text,
                "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 32}, "tie_word_embeddings": False}

    both("llama4", "llama4", real, config, base.at("language_model.model", rest, fused))
    ignore = ["re:.*lm_head", "re:.*self_attn", "re:.*router", "re:.*vision_model", "re:.*multi_modal_projector",
              "re:.*shared_expert", "re:.*feed_forward.gate_proj", "re:.*feed_forward.up_proj",
              "re:.*feed_forward.down_proj"]
    both("llama4-fp8", "llama4", real, lambda s: {**config(s), "quantization_config": channels(ignore)},
         base.at("language_model.model", rest, single), Channels(r"experts\.[0-9]+\.[a-z]+_proj\.weight$"))


def ernie():
    """ERNIE 4.5 21B-A3B: the head is tied, two shared experts are one matrix; and the dense 0.3B."""
    draft = "".join(f"    mtp  {role}  model.mtp_block.0.{name}.weight  {shape}\n" for role, name, shape in (
        ("q", "self_attn.q_proj", "Q,H"), ("k", "self_attn.k_proj", "KV,H"), ("v", "self_attn.v_proj", "KV,H"),
        ("o", "self_attn.o_proj", "H,Q"), ("gate", "mlp.gate_proj", "DI,H"), ("up", "mlp.up_proj", "DI,H"),
        ("down", "mlp.down_proj", "H,DI"), ("-", "input_layernorm", "H"), ("-", "post_attention_layernorm", "H")))
    real = {"H": 2560, "Q": 2560, "KV": 512, "D": 128, "I": 1536, "DI": 12288, "V": 103424, "E": 64}

    def config(s):
        of = named("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", s, intermediate_size=s["DI"],
                   moe_intermediate_size=s["I"], moe_num_experts=s["E"], moe_k=min(6, s["E"]),
                   moe_num_shared_experts=2, moe_layer_start_index=1, use_bias=False,
                   num_nextn_predict_layers=1, tie_word_embeddings=True)
        return {key: value for key, value in of.items() if key != "head_dim"}

    tied = base.TIED_ENDS
    experts = symbolic(base.SPLIT_EXPERTS).replace("{0-1}", "1")
    dense = FIRST.split("norm")[0]
    both("ernie4_5_moe", "ernie4_5", real, config, base.at("model", base.ATTENTION, tied, experts, dense, """
    router         -     P.layers.1.mlp.gate.weight                                E,H  F32
    router         -     P.layers.1.mlp.moe_statics.e_score_correction_bias        1,E  F32
    shared_expert  gate  P.layers.1.mlp.shared_experts.gate_proj.weight            2*I,H
    shared_expert  up    P.layers.1.mlp.shared_experts.up_proj.weight              2*I,H
    shared_expert  down  P.layers.1.mlp.shared_experts.down_proj.weight            H,2*I
    mtp            -     P.mtp_emb_norm.0.weight                                   H
    mtp            -     P.mtp_hidden_norm.0.weight                                H
    mtp            -     P.mtp_linear_proj.0.weight                                H,2*H
""") + draft, tiny={"Q": 160})
    base.model("ernie4_5", "ernie4_5", TINY, named("ernie4_5", "Ernie4_5ForCausalLM", TINY, tie_word_embeddings=True),
               base.at("model", base.ATTENTION, base.MLP, tied))


def add(families):
    global base
    base = families
    for model in qwen3, qwen3_next, deepseek, gpt_oss, minimax, glm4_moe, llama4, ernie:
        model()

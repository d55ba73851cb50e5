#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints of every model family, with the names, shapes and config.json of the real ones, and what
must become of each tensor.

    families.py list                        the models below
    families.py make MODEL FOLDER [PLAIN]   write the checkpoint, and what it unpacks to
    families.py inspected MODEL <JSON       is that what xfp-inspect --json said?
    families.py converted MODEL FOLDER BUNDLE COPY
                                            do bundle and unpacked copy hold the weights, each as what it is?

The tables say it a second time, independently of the rules in pipelines/families. A line is

    CLASS WHAT NAME SHAPE [DTYPE]

NAME stands for many: {0-3} counts layers, {*0-3} the experts of a stack. SHAPE is in the model's sizes. WHAT is
"-" for a tensor that is kept, "drop", "tied", or the projections in it: "q" where the tensor w is that matrix,
"tied=w" that of an embedding which is the head too, else "gate=w[:I];up=w[I:]", matrices of [outputs, inputs] as numpy cuts them out of it, stacks with the experts
first. DTYPE is BF16 where it is not said. families_published.py has models as they are published, packed or large.
"""
import itertools
import json
import os
import re
import struct
import sys
import zlib

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "models"))
import families_judge
import families_published

MODELS = {}


def model(name, family, sizes, config, table, publish=None):
    """`publish` maps all tensors, {name: (dtype, shape, data)}, to the published ones."""
    MODELS[name] = (family, sizes, config, table, publish)


# ---- the models ------------------------------------------------------------------------------------

# heads of 16: 4 of queries, 2 of keys and values
DENSE = {"H": 64, "Q": 64, "KV": 32, "I": 96, "V": 128, "E": 4}
PLAIN = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96,
    "num_hidden_layers": 2, "vocab_size": 128, "rms_norm_eps": 1e-06, "hidden_act": "silu", "torch_dtype": "bfloat16",
}
ATTENTION = """
    attention  q  P.layers.{0-1}.self_attn.q_proj.weight  Q,H
    attention  k  P.layers.{0-1}.self_attn.k_proj.weight  KV,H
    attention  v  P.layers.{0-1}.self_attn.v_proj.weight  KV,H
    attention  o  P.layers.{0-1}.self_attn.o_proj.weight  H,Q
"""
QK_NORMS = """
    norm  -  P.layers.{0-1}.self_attn.q_norm.weight  16
    norm  -  P.layers.{0-1}.self_attn.k_norm.weight  16
"""
MLP = """
    dense_mlp  gate  P.layers.{0-1}.mlp.gate_proj.weight  I,H
    dense_mlp  up    P.layers.{0-1}.mlp.up_proj.weight    I,H
    dense_mlp  down  P.layers.{0-1}.mlp.down_proj.weight  H,I
"""
ENDS = """
    norm       -  P.layers.{0-1}.input_layernorm.weight           H
    norm       -  P.layers.{0-1}.post_attention_layernorm.weight  H
    norm       -  P.norm.weight                                   H
    embedding  embedding  P.embed_tokens.weight                           V,H
"""
TIED_ENDS = ENDS.replace("embedding  embedding", "embedding  tied=w")
HEAD = "lm_head  lm_head  lm_head.weight  V,H\n"
SPLIT_EXPERTS = """
    routed_expert  gate  P.layers.{0-1}.mlp.experts.{*0-3}.gate_proj.weight  I,H
    routed_expert  up    P.layers.{0-1}.mlp.experts.{*0-3}.up_proj.weight    I,H
    routed_expert  down  P.layers.{0-1}.mlp.experts.{*0-3}.down_proj.weight  H,I
"""
FUSED_EXPERTS = """
    routed_expert  gate=w[:,:I];up=w[:,I:]  P.layers.{0-1}.mlp.experts.gate_up_proj  E,2*I,H
    routed_expert  down                     P.layers.{0-1}.mlp.experts.down_proj     E,H,I
"""
ROUTER = "router  -  P.layers.{0-1}.mlp.gate.weight  E,H\n"


def at(prefix, *tables):
    """The tables with their P."""
    return "".join(tables).replace(" P.", f" {prefix}." if prefix else " ")


model("llama", "llama", DENSE,
      {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **PLAIN, "tie_word_embeddings": False},
      at("model", ATTENTION, MLP, ENDS, HEAD))

model("llama-tied", "llama", DENSE,
      {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **PLAIN, "tie_word_embeddings": True},
      at("model", ATTENTION, MLP, TIED_ENDS, """
    lm_head  tied  lm_head.weight                                      V,H
    other    drop  model.layers.{0-1}.self_attn.rotary_emb.inv_freq    8     F32
"""))

model("mistral", "llama", DENSE,
      {"model_type": "mistral", "architectures": ["MistralForCausalLM"], **PLAIN, "sliding_window": None},
      at("model", ATTENTION, MLP, ENDS, HEAD))

model("mistral3", "llama", DENSE,
      {"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"],
       "text_config": {"model_type": "mistral", **PLAIN}, "vision_config": {"model_type": "pixtral", "hidden_size": 32}},
      at("language_model.model", ATTENTION, MLP, ENDS, """
    lm_head  lm_head  language_model.lm_head.weight                                  V,H
    vision   -        vision_tower.transformer.layers.{0-1}.attention.q_proj.weight  32,32
    vision   -        vision_tower.patch_conv.weight                                 32,3,4,4
    vision   -        multi_modal_projector.linear_1.weight                          H,32
"""))

MIXTRAL = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], **PLAIN, "num_local_experts": 4,
           "num_experts_per_tok": 2}
model("mixtral", "mixtral", DENSE, MIXTRAL, at("model", ATTENTION, ENDS, HEAD, """
    router         -     model.layers.{0-1}.block_sparse_moe.gate.weight            E,H
    routed_expert  gate  model.layers.{0-1}.block_sparse_moe.experts.{*0-3}.w1.weight  I,H
    routed_expert  down  model.layers.{0-1}.block_sparse_moe.experts.{*0-3}.w2.weight  H,I
    routed_expert  up    model.layers.{0-1}.block_sparse_moe.experts.{*0-3}.w3.weight  I,H
"""))
model("mixtral-fused", "mixtral", DENSE, MIXTRAL, at("model", ATTENTION, ENDS, HEAD, FUSED_EXPERTS, ROUTER))

model("qwen2", "qwen2", DENSE,
      {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], **PLAIN, "use_sliding_window": False},
      at("model", ATTENTION, MLP, ENDS, HEAD, """
    attention  -  model.layers.{0-1}.self_attn.q_proj.bias  Q
    attention  -  model.layers.{0-1}.self_attn.k_proj.bias  KV
    attention  -  model.layers.{0-1}.self_attn.v_proj.bias  KV
"""))

model("qwen3", "qwen3", DENSE,
      {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **PLAIN},
      at("model", ATTENTION, QK_NORMS, MLP, ENDS, HEAD))

QWEN3_MOE = {**PLAIN, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 96, "norm_topk_prob": True,
             "decoder_sparse_step": 1, "mlp_only_layers": []}
model("qwen3_moe", "qwen3_moe", DENSE,
      {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], **QWEN3_MOE},
      at("model", ATTENTION, QK_NORMS, SPLIT_EXPERTS, ROUTER, ENDS, HEAD))
model("qwen3_moe-fused", "qwen3_moe", DENSE,
      {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], **QWEN3_MOE},
      at("model", ATTENTION, QK_NORMS, FUSED_EXPERTS, ROUTER, ENDS, HEAD))

VISUAL = """
    vision  -  model.visual.patch_embed.proj.weight             32,3,2,4,4
    vision  -  model.visual.blocks.{0-1}.attn.qkv.weight        96,32
    vision  -  model.visual.blocks.{0-1}.attn.qkv.bias          96
    vision  -  model.visual.blocks.{0-1}.mlp.linear_fc1.weight  48,32
    vision  -  model.visual.merger.linear_fc2.weight            H,128
"""
model("qwen3_vl_moe", "qwen3_moe", DENSE,
      {"model_type": "qwen3_vl_moe", "architectures": ["Qwen3VLMoeForConditionalGeneration"],
       "text_config": {"model_type": "qwen3_vl_moe_text", **QWEN3_MOE},
       "vision_config": {"hidden_size": 32, "depth": 2}, "tie_word_embeddings": False},
      at("model.language_model", ATTENTION, QK_NORMS, ROUTER, ENDS, HEAD, VISUAL, """
    routed_expert  gate=w[:,:,:I].swapaxes(1,2);up=w[:,:,I:].swapaxes(1,2)  P.layers.{0-1}.mlp.experts.gate_up_proj  E,H,2*I
    routed_expert  down=w.swapaxes(1,2)                                     P.layers.{0-1}.mlp.experts.down_proj     E,I,H
"""))

# 2 heads of keys, 4 of values, of 16 each; layer 1 has full attention, with a gate in q_proj
HYBRID = {**DENSE, "KD": 32, "VD": 64}
HYBRID_CONFIG = {**PLAIN, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
                 "linear_value_head_dim": 16, "linear_conv_kernel_dim": 4, "full_attention_interval": 2,
                 "layer_types": ["linear_attention", "full_attention"], "attn_output_gate": True}
HYBRID_MOE = {**HYBRID_CONFIG, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 96,
              "shared_expert_intermediate_size": 96}
FULL_ATTENTION = """
    CLASS  q  P.self_attn.q_proj.weight  2*Q,H
    CLASS  k  P.self_attn.k_proj.weight  KV,H
    CLASS  v  P.self_attn.v_proj.weight  KV,H
    CLASS  o  P.self_attn.o_proj.weight  H,Q
"""
GATED = at("P.layers.1", FULL_ATTENTION.replace("CLASS", "attention")) + """
    norm  -  P.layers.1.self_attn.q_norm.weight  16
    norm  -  P.layers.1.self_attn.k_norm.weight  16
"""
DELTA = """
    linear_attention  o  P.layers.0.linear_attn.out_proj.weight  H,VD
    linear_attention  -  P.layers.0.linear_attn.conv1d.weight    2*KD+VD,1,4
    linear_attention  -  P.layers.0.linear_attn.A_log            4            F32
    linear_attention  -  P.layers.0.linear_attn.dt_bias          4
    norm              -  P.layers.0.linear_attn.norm.weight      16           F32
"""
DELTA_NEXT = DELTA + """
    linear_attention  in_proj_qkvz  P.layers.0.linear_attn.in_proj_qkvz.weight  2*KD+2*VD,H
    linear_attention  in_proj_ba    P.layers.0.linear_attn.in_proj_ba.weight    8,H
"""
DELTA_35 = DELTA + """
    linear_attention  q=w[:KD];k=w[KD:2*KD];v=w[2*KD:]  P.layers.0.linear_attn.in_proj_qkv.weight  2*KD+VD,H
    linear_attention  in_proj_z                         P.layers.0.linear_attn.in_proj_z.weight    VD,H
    linear_attention  in_proj_b                         P.layers.0.linear_attn.in_proj_b.weight    4,H
    linear_attention  in_proj_a                         P.layers.0.linear_attn.in_proj_a.weight    4,H
"""
SHARED = """
    router         -     P.layers.{0-1}.mlp.shared_expert_gate.weight       1,H
    shared_expert  gate  P.layers.{0-1}.mlp.shared_expert.gate_proj.weight  I,H
    shared_expert  up    P.layers.{0-1}.mlp.shared_expert.up_proj.weight    I,H
    shared_expert  down  P.layers.{0-1}.mlp.shared_expert.down_proj.weight  H,I
"""
MTP = at("mtp.layers.0", FULL_ATTENTION.replace("CLASS", "mtp")) + """
    mtp  -  mtp.fc.weight                                 H,2*H
    mtp  -  mtp.norm.weight                               H
    mtp  -  mtp.pre_fc_norm_embedding.weight              H
    mtp  -  mtp.pre_fc_norm_hidden.weight                 H
    mtp  -  mtp.layers.0.self_attn.q_norm.weight          16
    mtp  -  mtp.layers.0.self_attn.k_norm.weight          16
    mtp  -  mtp.layers.0.input_layernorm.weight           H
    mtp  -  mtp.layers.0.post_attention_layernorm.weight  H
"""
MTP_MLP = """
    mtp  gate  PREFIXgate_proj.weight  I,H
    mtp  up    PREFIXup_proj.weight    I,H
    mtp  down  PREFIXdown_proj.weight  H,I
"""
MTP_SHARED = MTP_MLP.replace("PREFIX", "mtp.layers.0.mlp.shared_expert.") + """
    mtp  -  mtp.layers.0.mlp.shared_expert_gate.weight  1,H
    mtp  -  mtp.layers.0.mlp.gate.weight                E,H
"""
model("qwen3_next", "qwen3_next", HYBRID,
      {"model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"], **HYBRID_MOE},
      at("model", GATED, DELTA_NEXT, SPLIT_EXPERTS, SHARED, ROUTER, ENDS, HEAD) + MTP + MTP_SHARED +
      MTP_MLP.replace("PREFIX", "mtp.layers.0.mlp.experts.{*0-3}."))
model("qwen3_5", "qwen3_5", HYBRID,
      {"model_type": "qwen3_5", "architectures": ["Qwen3_5ForConditionalGeneration"],
       "text_config": {"model_type": "qwen3_5_text", **HYBRID_CONFIG, "mtp_num_hidden_layers": 1},
       "vision_config": {"depth": 2, "hidden_size": 32}, "tie_word_embeddings": False},
      at("model.language_model", GATED, DELTA_35, MLP, ENDS, HEAD) + VISUAL + MTP +
      MTP_MLP.replace("PREFIX", "mtp.layers.0.mlp."))
model("qwen3_5_moe", "qwen3_5_moe", HYBRID,
      {"model_type": "qwen3_5_moe", "architectures": ["Qwen3_5MoeForConditionalGeneration"],
       "text_config": {"model_type": "qwen3_5_moe_text", **HYBRID_MOE, "mtp_num_hidden_layers": 1},
       "vision_config": {"depth": 2, "hidden_size": 32}, "tie_word_embeddings": False},
      at("model.language_model", GATED, DELTA_35, FUSED_EXPERTS, SHARED, ROUTER, ENDS, HEAD) + VISUAL + MTP +
      MTP_SHARED + """
    mtp  gate=w[:,:I];up=w[:,I:]  mtp.layers.0.mlp.experts.gate_up_proj  E,2*I,H
    mtp  down                     mtp.layers.0.mlp.experts.down_proj     E,H,I
""")

GEMMA = {**{key: value for key, value in PLAIN.items() if key != "hidden_act"}, "hidden_activation": "gelu_pytorch_tanh"}
FEEDFORWARD_NORMS = """
    norm  -  P.layers.{0-1}.pre_feedforward_layernorm.weight   H
    norm  -  P.layers.{0-1}.post_feedforward_layernorm.weight  H
"""
model("gemma2", "gemma", DENSE,
      {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], **GEMMA, "final_logit_softcapping": 30.0},
      at("model", ATTENTION, MLP, FEEDFORWARD_NORMS, TIED_ENDS))
model("gemma3_text", "gemma", DENSE,
      {"model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], **GEMMA, "sliding_window_pattern": 6},
      at("model", ATTENTION, QK_NORMS, MLP, FEEDFORWARD_NORMS, TIED_ENDS))
GEMMA3 = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
          "text_config": {"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96,
                          "num_hidden_layers": 2},
          "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 32}}
SIGLIP = """
    vision  -  P.vision_model.embeddings.patch_embedding.weight                  32,3,4,4
    vision  -  P.vision_model.encoder.layers.{0-1}.self_attn.q_proj.weight       32,32
    vision  -  P.vision_model.encoder.layers.{0-1}.mlp.fc1.weight                48,32
    vision  -  P.vision_model.post_layernorm.weight                              32
"""
PROJECTOR = """
    vision  -  P.mm_input_projection_weight   32,H
    vision  -  P.mm_soft_emb_norm.weight      32
"""
model("gemma3", "gemma", DENSE, GEMMA3,
      at("language_model.model", ATTENTION, QK_NORMS, MLP, FEEDFORWARD_NORMS, TIED_ENDS) + at("vision_tower", SIGLIP) +
      at("multi_modal_projector", PROJECTOR))
model("gemma3-resaved", "gemma", DENSE, GEMMA3,
      at("model.language_model", ATTENTION, QK_NORMS, MLP, FEEDFORWARD_NORMS, TIED_ENDS,
         "lm_head  tied  lm_head.weight  V,H\n") +
      at("model.vision_tower", SIGLIP) + at("model.multi_modal_projector", PROJECTOR))

model("phi3", "phi3", DENSE,
      {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"],
       **{key: value for key, value in PLAIN.items() if key != "head_dim"}},
      at("model", ENDS, HEAD, """
    attention  q=w[:Q];k=w[Q:Q+KV];v=w[Q+KV:]  P.layers.{0-1}.self_attn.qkv_proj.weight  Q+2*KV,H
    attention  o                               P.layers.{0-1}.self_attn.o_proj.weight    H,Q
    dense_mlp  gate=w[:I];up=w[I:]             P.layers.{0-1}.mlp.gate_up_proj.weight    2*I,H
    dense_mlp  down                            P.layers.{0-1}.mlp.down_proj.weight       H,I
"""))

# 4 heads of 16 + 8 for queries and keys, 16 for values; layer 0 dense, layer 2 is the next-token head
MLA = {**DENSE, "QR": 48, "KVR": 32}
MLA_CONFIG = {**{key: value for key, value in PLAIN.items() if key != "head_dim"}, "num_key_value_heads": 4,
              "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
              "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 96,
              "first_k_dense_replace": 1, "num_nextn_predict_layers": 1, "n_group": 1, "topk_group": 1,
              "routed_scaling_factor": 1.8}
MLA_ATTENTION = """
    ATTENTION  q_a   L.self_attn.q_a_proj.weight            QR,H
    ATTENTION  q_b   L.self_attn.q_b_proj.weight            4*24,QR
    ATTENTION  kv_a  L.self_attn.kv_a_proj_with_mqa.weight  KVR+8,H
    ATTENTION  kv_b  L.self_attn.kv_b_proj.weight           4*32,KVR
    ATTENTION  o     L.self_attn.o_proj.weight              H,64
    NORM       -     L.self_attn.q_a_layernorm.weight       QR
    NORM       -     L.self_attn.kv_a_layernorm.weight      KVR
    NORM       -     L.input_layernorm.weight               H
    NORM       -     L.post_attention_layernorm.weight      H
"""
MLA_MOE = """
    ROUTED  gate  L.mlp.experts.{*0-3}.gate_proj.weight  I,H
    ROUTED  up    L.mlp.experts.{*0-3}.up_proj.weight    I,H
    ROUTED  down  L.mlp.experts.{*0-3}.down_proj.weight  H,I
    SHARED  gate  L.mlp.shared_experts.gate_proj.weight  I,H
    SHARED  up    L.mlp.shared_experts.up_proj.weight    I,H
    SHARED  down  L.mlp.shared_experts.down_proj.weight  H,I
    ROUTER  -     L.mlp.gate.weight                      E,H
    ROUTER  -     L.mlp.gate.e_score_correction_bias     E    F32
"""


def layers(text, prefix, **classes):
    text = text.replace(" L.", f" {prefix}.")
    for name in ("attention", "norm", "routed", "shared", "router"):
        text = text.replace(f" {name.upper()} ", f" {classes.get(name, classes.get('all'))} ")
    return text


NAMED = {"attention": "attention", "norm": "norm", "routed": "routed_expert", "shared": "shared_expert", "router": "router"}
MLA_TABLE = (layers(MLA_ATTENTION, "model.layers.{0-1}", **NAMED) + layers(MLA_MOE, "model.layers.1", **NAMED) +
             layers(MLA_ATTENTION + MLA_MOE, "model.layers.2", all="mtp") + """
    dense_mlp  gate     model.layers.0.mlp.gate_proj.weight        I,H
    dense_mlp  up       model.layers.0.mlp.up_proj.weight          I,H
    dense_mlp  down     model.layers.0.mlp.down_proj.weight        H,I
    mtp        -        model.layers.2.embed_tokens.weight         V,H
    mtp        -        model.layers.2.enorm.weight                H
    mtp        -        model.layers.2.hnorm.weight                H
    mtp        -        model.layers.2.eh_proj.weight              H,2*H
    mtp        -        model.layers.2.shared_head.norm.weight     H
    mtp        lm_head  model.layers.2.shared_head.head.weight     V,H
    norm       -        model.norm.weight                          H
    embedding  embedding        model.embed_tokens.weight                  V,H
""" + HEAD)
model("glm4_moe_lite", "glm4_moe_lite", MLA,
      {"model_type": "glm4_moe_lite", "architectures": ["Glm4MoeLiteForCausalLM"], **MLA_CONFIG,
       "mlp_layer_types": ["dense", "sparse"]}, MLA_TABLE)
DEEPSEEK = {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], **MLA_CONFIG, "moe_layer_freq": 1,
            "scoring_func": "sigmoid", "topk_method": "noaux_tc"}
model("deepseek_v3", "deepseek", MLA, DEEPSEEK, MLA_TABLE)

# hidden_size and the experts' size are equal, as in the real one
OSS = {**DENSE, "I": 64}
OSS_CONFIG = {"model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], **PLAIN, "intermediate_size": 64,
              "num_local_experts": 4, "num_experts_per_tok": 2, "attention_bias": True, "sliding_window": 128,
              "layer_types": ["sliding_attention", "full_attention"], "rope_scaling": {
                  "rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 4096}}
OSS_REST = ATTENTION + ENDS + HEAD + """
    attention      -  P.layers.{0-1}.self_attn.q_proj.bias           Q
    attention      -  P.layers.{0-1}.self_attn.k_proj.bias           KV
    attention      -  P.layers.{0-1}.self_attn.v_proj.bias           KV
    attention      -  P.layers.{0-1}.self_attn.o_proj.bias           H
    attention      -  P.layers.{0-1}.self_attn.sinks                 4
    router         -  P.layers.{0-1}.mlp.router.weight               E,H
    router         -  P.layers.{0-1}.mlp.router.bias                 E
    routed_expert  -  P.layers.{0-1}.mlp.experts.gate_up_proj_bias   E,2*I
    routed_expert  -  P.layers.{0-1}.mlp.experts.down_proj_bias      E,H
"""
model("gpt_oss", "gpt_oss", OSS, OSS_CONFIG, at("model", OSS_REST, """
    routed_expert  gate=w[:,:,0::2].swapaxes(1,2);up=w[:,:,1::2].swapaxes(1,2)  P.layers.{0-1}.mlp.experts.gate_up_proj  E,H,2*I
    routed_expert  down=w.swapaxes(1,2)                                         P.layers.{0-1}.mlp.experts.down_proj     E,I,H
"""))

model("bert", "bert", {"H": 64, "I": 96, "V": 128},
      {"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 64, "num_attention_heads": 4,
       "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 128, "max_position_embeddings": 32,
       "type_vocab_size": 2, "torch_dtype": "float32"}, """
    attention  q     encoder.layer.{0-1}.attention.self.query.weight        H,H   F32
    attention  k     encoder.layer.{0-1}.attention.self.key.weight          H,H   F32
    attention  v     encoder.layer.{0-1}.attention.self.value.weight        H,H   F32
    attention  o     encoder.layer.{0-1}.attention.output.dense.weight      H,H   F32
    attention  -     encoder.layer.{0-1}.attention.self.query.bias          H     F32
    attention  -     encoder.layer.{0-1}.attention.self.key.bias            H     F32
    attention  -     encoder.layer.{0-1}.attention.self.value.bias          H     F32
    attention  -     encoder.layer.{0-1}.attention.output.dense.bias        H     F32
    norm       -     encoder.layer.{0-1}.attention.output.LayerNorm.weight  H     F32
    norm       -     encoder.layer.{0-1}.attention.output.LayerNorm.bias    H     F32
    dense_mlp  up    encoder.layer.{0-1}.intermediate.dense.weight          I,H   F32
    dense_mlp  -     encoder.layer.{0-1}.intermediate.dense.bias            I     F32
    dense_mlp  down  encoder.layer.{0-1}.output.dense.weight                H,I   F32
    dense_mlp  -     encoder.layer.{0-1}.output.dense.bias                  H     F32
    norm       -     encoder.layer.{0-1}.output.LayerNorm.weight            H     F32
    norm       -     encoder.layer.{0-1}.output.LayerNorm.bias              H     F32
    embedding  embedding     embeddings.word_embeddings.weight                      V,H   F32
    embedding  -     embeddings.position_embeddings.weight                  32,H  F32
    embedding  -     embeddings.token_type_embeddings.weight                2,H   F32
    norm       -     embeddings.LayerNorm.weight                            H     F32
    norm       -     embeddings.LayerNorm.bias                              H     F32
    other      -     embeddings.position_ids                                1,32  I64
    other      -     pooler.dense.weight                                    H,H   F32
    other      -     pooler.dense.bias                                      H     F32
""")

# An unknown model of familiar parts
model("unknown", "general", DENSE,
      {"model_type": "brand_new", "architectures": ["BrandNewForCausalLM"], **PLAIN, "num_experts": 4},
      at("model", ENDS, HEAD, FUSED_EXPERTS, ROUTER, """
    attention  q=w[:Q];k=w[Q:Q+KV];v=w[Q+KV:]  P.layers.{0-1}.self_attn.qkv_proj.weight  Q+2*KV,H
    attention  o                               P.layers.{0-1}.self_attn.o_proj.weight    H,Q
    attention  -                               P.layers.{0-1}.self_attn.qkv_proj.bias    Q+2*KV
    vision     -                               P.visual.blocks.0.attn.qkv.weight         96,32
    mtp        -                               mtp.layers.0.self_attn.q_proj.weight      Q,H
"""))

# Quantized by their makers in an unsupported form: generated, and refused
model("qwen3-round", None, DENSE,
      {"model_type": "qwen3", **PLAIN, "quantization_config": {"quant_method": "auto-round", "bits": 4}}, """
    attention  -  model.layers.0.self_attn.o_proj.qweight                                  Q//8,H  I32
    attention  -  model.layers.0.self_attn.o_proj.scales                                   Q//32,H
""")


families_published.add(sys.modules[__name__])


# ---- reading the tables ------------------------------------------------------------------------------

class Tensor:
    """One tensor that a line of a table describes."""

    def __init__(self, line, name, unit, sizes):
        fields = line.split()
        self.class_, self.what, self.dtype = fields[0], fields[1], (fields[4:] or ["BF16"])[0]
        self.name, self.unit, self.sizes = name, unit, sizes
        self.shape = list(eval(f"({fields[3]},)", {}, sizes))
        self.fate = {"-": "kept", "drop": "dropped", "tied": "tied"}.get(self.what, "quantized")

    def roles(self, w=None):
        """The matrices by role, sliced from w."""
        w = np.empty(self.shape, np.uint8) if w is None else w
        parts = [part.partition("=") for part in self.what.split(";")] if self.fate == "quantized" else []
        return {role: eval(cut or "w", {}, {"w": w, **self.sizes}) for role, _, cut in parts}

    def reason(self):
        return {"kept": f"{self.class_}: kept by rule", "dropped": "computed by every engine: dropped by rule",
                "tied": "tied to ", "quantized": f"{self.class_}: {', '.join(self.roles())}"}[self.fate]


def tensors(name):
    _, sizes, _, table, _ = MODELS[name]
    prefix = re.search(r"(\S+)\.embed_tokens\.weight", table)
    result = []
    for line in table.replace(" P.", f" {prefix and prefix[1]}.").splitlines():
        if not line.strip():
            continue
        pattern = line.split()[2]
        marks = re.findall(r"\{(\*?)(\d+)-(\d+)\}", pattern)
        for numbers in itertools.product(*(range(int(low), int(high) + 1) for _, low, high in marks)):
            full = unit = pattern
            for (star, low, high), number in zip(marks, numbers):
                mark = f"{{{star}{low}-{high}}}"
                full = full.replace(mark, str(number), 1)
                unit = unit.replace(mark, star or str(number), 1)
            result.append(Tensor(line, full, unit, sizes))
    return result


# ---- making ------------------------------------------------------------------------------------------

def content(tensor):
    """Bytes derived from the name only; a tied head has those of its embedding."""
    name = re.sub(r".*lm_head\.weight$", "embed_tokens.weight", tensor.name) if tensor.what == "tied" else tensor.name
    name = re.sub(r".*embed_tokens\.weight$", "embed_tokens.weight", name)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    count = int(np.prod(tensor.shape))
    if "REAL" in tensor.sizes:
        return families_published.Hole(tensor.dtype, tensor.shape)
    if tensor.dtype == "I32":
        return random.integers(0, 2**31, count, np.int32).tobytes()
    if tensor.dtype == "I64":
        return np.arange(count, dtype="<i8").tobytes()
    w = (random.standard_normal(count) * 0.02).astype("<f4")
    return w.tobytes() if tensor.dtype == "F32" else (w.view("<u4") >> 16).astype("<u2").tobytes()


def write(folder, made, config):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, piece) in made.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(piece)]}
        at += len(piece)
    text = json.dumps(header).encode()
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, piece in made.values():
            piece.write(file) if isinstance(piece, families_published.Hole) else file.write(piece)
        file.truncate(8 + len(text) + at)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=1)


def make(name, folder, plain=None):
    _, _, config, _, publish = MODELS[name]
    made = {tensor.name: (tensor.dtype, tensor.shape, content(tensor)) for tensor in tensors(name)}
    assert len(made) == len(tensors(name)), name
    write(folder, publish(made) if publish else made, config)  # which leaves the unpacked tensors in `made`
    if plain:
        write(plain, made, families_published.unpacked(config))


def main(arguments):
    if arguments == ["list"]:
        print("\n".join(MODELS))
    elif arguments[:1] == ["make"] and len(arguments) in (3, 4):
        make(*arguments[1:])
    elif arguments[:1] == ["inspected"] and len(arguments) == 2:
        name = arguments[1]
        sys.exit(4 if families_judge.inspected(MODELS[name][0], tensors(name), json.load(sys.stdin)) else 0)
    elif arguments[:1] == ["converted"] and len(arguments) == 5:
        sys.exit(4 if families_judge.converted(tensors(arguments[1]), *arguments[2:]) else 0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

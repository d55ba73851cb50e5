# SPDX-License-Identifier: Apache-2.0
"""Write tests/unit/forward_expected.h: logits of tiny models, as transformers computes them in f32 with eager attention.

    forward_expected.py | clang-format >tests/unit/forward_expected.h

Not part of the test suite: it needs torch and transformers. The weights are those of named_weights.py.
"""
import json
import os
import sys
import tempfile

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from named_weights import rewrite

SEQUENCES, LENGTH, VOCABULARY = 2, 21, 13

BASE = {"hidden_size": 30, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
        "intermediate_size": 22, "vocab_size": VOCABULARY, "max_position_embeddings": 32, "rms_norm_eps": 1e-05}
MOE = {**BASE, "num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 9}
ODD = {**BASE, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1}
PHI3 = {"model_type": "phi3", **ODD, "pad_token_id": 0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 8}
HYBRID = {"hidden_size": 20, "num_hidden_layers": 4, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 16,
          "vocab_size": VOCABULARY, "max_position_embeddings": 32, "rms_norm_eps": 1e-05}
DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_key_head_dim": 6, "linear_value_head_dim": 10,
         "linear_conv_kernel_dim": 4}
WIDE = {"linear_num_key_heads": 1, "linear_num_value_heads": 3, "linear_key_head_dim": 5, "linear_value_head_dim": 35,
        "linear_conv_kernel_dim": 3}
SHARED = {"num_experts": 5, "num_experts_per_tok": 3, "moe_intermediate_size": 9, "shared_expert_intermediate_size": 7}
GLM = {**BASE, "head_dim": 12, "num_hidden_layers": 2, "n_routed_experts": 8, "num_experts_per_tok": 3,
       "moe_intermediate_size": 9}
OSS = {"model_type": "gpt_oss", **ODD, "num_local_experts": 5, "sliding_window": 7}
LATENT = {**GLM, "num_attention_heads": 3, "num_key_value_heads": 3, "q_lora_rank": 7, "kv_lora_rank": 10,
          "qk_rope_head_dim": 6, "qk_nope_head_dim": 4, "v_head_dim": 9}
del LATENT["head_dim"]
ERNIE = {"model_type": "ernie4_5_moe", **BASE, "moe_num_experts": 7, "moe_k": 3, "moe_intermediate_size": 9}
LLAMA4 = {"model_type": "llama4_text", **BASE, "num_hidden_layers": 4, "intermediate_size_mlp": 17,
          "num_local_experts": 5, "num_experts_per_tok": 1, "attention_chunk_size": 8, "floor_scale": 3}
CASES = [
    {"model_type": "llama", **BASE},
    {"model_type": "llama", **BASE, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    {"model_type": "llama", **BASE, "rope_parameters": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 2.5}},
    {"model_type": "llama", **BASE, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16}},
    {"model_type": "llama", **BASE, "rope_parameters": YARN},
    {"model_type": "llama", **BASE, "rope_parameters": {
        **YARN, "mscale": 1.2, "mscale_all_dim": 0.8, "truncate": False, "beta_fast": 16.0, "beta_slow": 2.0}},
    {"model_type": "llama", **BASE, "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 8,
        "long_factor": [1.0, 1.5, 2.0, 2.5, 3.0], "short_factor": [1.0, 1.0, 1.25, 1.25, 1.5]}},
    {"model_type": "mistral", **BASE, "sliding_window": 7},
    {"model_type": "mixtral", **BASE, "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": None},
    {"model_type": "qwen2", **{**BASE, "num_attention_heads": 5, "num_key_value_heads": 5,
                               "hidden_size": 20, "head_dim": 4},
     "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    {"model_type": "qwen3", **BASE, "attention_bias": True, "rope_theta": 1000000.0},
    {"model_type": "qwen3_moe", **MOE, "norm_topk_prob": True, "decoder_sparse_step": 1},
    {"model_type": "qwen3_moe", **MOE, "decoder_sparse_step": 2, "mlp_only_layers": [],
     "use_sliding_window": True, "sliding_window": 7},
    {"model_type": "qwen3_moe", **MOE, "norm_topk_prob": True, "mlp_only_layers": [1], "tie_word_embeddings": True},
    {"model_type": "llama", **ODD, "hidden_act": "gelu"},
    {"model_type": "ministral", **ODD, "sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"]},
    {**PHI3, "sliding_window": 7, "partial_rotary_factor": 0.6},
    {**PHI3, "partial_rotary_factor": 0.8, "original_max_position_embeddings": 16,
     "rope_scaling": {"type": "longrope", "long_factor": [1.0, 1.5, 2.5, 3.0], "short_factor": [1.0, 1.0, 1.25, 1.5]}},
    {**PHI3, "original_max_position_embeddings": 24, "rope_parameters": {
        "rope_type": "longrope", "rope_theta": 20000.0, "partial_rotary_factor": 0.4,
        "long_factor": [1.0, 3.0], "short_factor": [1.0, 1.25]}},
    {"model_type": "gemma2", **ODD, "sliding_window": 7},
    {"model_type": "gemma2", **ODD, "sliding_window": 7, "layer_types": ["full_attention", "sliding_attention"],
     "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 7,
     "attention_bias": True, "tie_word_embeddings": False},
    {"model_type": "gemma3_text", **ODD, "num_hidden_layers": 3, "sliding_window": 7, "sliding_window_pattern": 3,
     "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "query_pre_attn_scalar": 12,
     "final_logit_softcapping": None},
    {"model_type": "gemma3_text", **ODD, "sliding_window": 9, "layer_types": ["full_attention", "sliding_attention"],
     "final_logit_softcapping": 4.0, "attention_bias": True, "rope_parameters": {
         "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 30000.0},
         "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}},
    {"model_type": "qwen3_next", **HYBRID, **DELTA, **SHARED, "intermediate_size": 22},
    {"model_type": "qwen3_next", **HYBRID, **WIDE, **SHARED, "intermediate_size": 22, "attention_bias": True,
     "norm_topk_prob": False, "mlp_only_layers": [1], "partial_rotary_factor": 0.5, "tie_word_embeddings": True,
     "layer_types": ["full_attention", "linear_attention", "full_attention", "linear_attention"]},
    {"model_type": "qwen3_5_text", **HYBRID, **WIDE, "intermediate_size": 22, "full_attention_interval": 2,
     "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25,
                         "mrope_section": [1, 1, 0], "mrope_interleaved": True}},
    {"model_type": "qwen3_5_moe_text", **HYBRID, **DELTA, **SHARED},
    {"model_type": "glm4_moe", **GLM, "use_qk_norm": True, "attention_bias": True},
    {"model_type": "glm4_moe", **GLM, "first_k_dense_replace": 0, "n_group": 4, "topk_group": 2, "n_shared_experts": 2,
     "norm_topk_prob": False, "routed_scaling_factor": 2.5, "partial_rotary_factor": 0.84},
    {"model_type": "minimax_m2", **BASE, "num_local_experts": 7, "num_experts_per_tok": 3, "rotary_dim": 6},
    {**OSS, "num_experts_per_tok": 2, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "truncate": False, "original_max_position_embeddings": 8}},
    {**OSS, "num_experts_per_tok": 3, "attention_bias": False, "swiglu_alpha": 1.2, "swiglu_limit": 0.4,
     "layer_types": ["full_attention", "sliding_attention"],
     "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}},
    {"model_type": "deepseek_v2", **LATENT, "q_lora_rank": None, "attention_bias": True, "first_k_dense_replace": 1},
    {"model_type": "deepseek_v2", **LATENT, "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2,
     "routed_scaling_factor": 4.0, "first_k_dense_replace": 1, "rope_scaling": {
         **YARN, "mscale": 0.707, "mscale_all_dim": 0.707}},
    {"model_type": "deepseek_v3", **LATENT, "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1,
     "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}},
    {"model_type": "deepseek_v3", **LATENT, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 0,
     "rope_interleave": False, "attention_bias": True, "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.5}},
    {"model_type": "glm4_moe_lite", **LATENT, "mlp_layer_types": ["sparse", "dense"]},
    {"model_type": "ernie4_5", **BASE, "use_bias": True, "rope_parameters": YARN},
    ERNIE,
    {**ERNIE, "moe_num_shared_experts": 0, "moe_layer_start_index": 0, "moe_layer_end_index": 1,
     "moe_layer_interval": 2, "moe_norm_min": 0.9, "tie_word_embeddings": False},
    {**LLAMA4, "interleave_moe_layer_step": 2},
    {**LLAMA4, "num_experts_per_tok": 2, "no_rope_layers": [0, 1, 0, 1], "use_qk_norm": False, "attention_bias": True,
     "layer_types": ["full_attention", "full_attention", "chunked_attention", "chunked_attention"],
     "moe_layers": [0, 3], "attn_scale": 0.7},
    {**LLAMA4, "attn_temperature_tuning": False, "num_hidden_layers": 3, "no_rope_layer_interval": 2,
     "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 16}},
    {"model_type": "qwen2_moe", **MOE, "shared_expert_intermediate_size": 7, "decoder_sparse_step": 2},
    {"model_type": "qwen2_moe", **MOE, "shared_expert_intermediate_size": 7, "qkv_bias": False, "norm_topk_prob": True,
     "mlp_only_layers": [1]},
    {"model_type": "gemma", **ODD, "attention_bias": True},
    {"model_type": "granite", **ODD, "embedding_multiplier": 3.0, "attention_multiplier": 0.2, "mlp_bias": True,
     "residual_multiplier": 0.3, "logits_scaling": 1.7},
    {"model_type": "smollm3", **{**BASE, "num_hidden_layers": 4, "hidden_size": 60}, "attention_bias": True,
     "no_rope_layers": [1, 0, 0, 1], "pad_token_id": 0},
    {"model_type": "seed_oss", **ODD},
    {"model_type": "seed_oss", **ODD, "attention_bias": False, "attention_out_bias": True, "mlp_bias": True},
    {"model_type": "olmo2", **{**BASE, "hidden_size": 60}},
]


def logits(case, ids):
    fields = {key: value for key, value in case.items() if key != "model_type"}
    config = AutoConfig.for_model(case["model_type"], **fields)
    how = {"attn_implementation": "eager", "experts_implementation": "eager"}
    with tempfile.TemporaryDirectory() as folder:
        AutoModelForCausalLM.from_config(config, **how).float().save_pretrained(folder)
        rewrite(os.path.join(folder, "model.safetensors"))
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **how).eval()
    with torch.no_grad():
        return model(input_ids=ids).logits.numpy()


def main():
    ids = torch.tensor([[(t * t + 5 * s) % VOCABULARY for t in range(LENGTH)] for s in range(SEQUENCES)])
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/*\n * forward_expected.h - logits of the last token of each sequence, by transformers %s. Written by\n"
          " * tests/models/forward_expected.py.\n */" % transformers.__version__)
    print("#ifndef XFP_TEST_FORWARD_EXPECTED_H\n#define XFP_TEST_FORWARD_EXPECTED_H\n")
    print("enum { FORWARD_SEQUENCES = %d, FORWARD_LENGTH = %d, FORWARD_VOCABULARY = %d };\n" %
          (SEQUENCES, LENGTH, VOCABULARY))
    print("static const struct forward_case {\n\tconst char *config;\n"
          "\tfloat logits[FORWARD_SEQUENCES][FORWARD_VOCABULARY];\n} forward_cases[] = {")
    for case in CASES:
        text = json.dumps(case)
        print("\t{ " + "\n\t  ".join(json.dumps(text[at:at + 90]) for at in range(0, len(text), 90)) + ",")
        print("\t  {")
        for row in logits(case, ids)[:, -1]:
            values = ["%.7gf" % value if "." in "%.7g" % value else "%.1ff" % value for value in row]
            print("\t    { " + ", ".join(values[:7]) + ",\n\t      " + ", ".join(values[7:]) + " },")
        print("\t  } },")
    print("};\n\n#endif")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does xfp eval compute the perplexity of Hugging Face transformers, in f64 with eager attention?

    check_families.py [--record FILE] [FAMILY...]

For each family of xfp eval (or those named): random models, their bundles (compared with transformers on the unpacked
copy), the text part of multimodal models, and, for models in Hugging Face format, the same as GGUF. `xfp` is taken
from PATH. Prints SKIP and the reason if transformers is not installed. --record writes the largest difference of
each model type, the date and the version, for the table of docs/models.md. Fails if a perplexity differs by more than
a thousandth.
"""
import contextlib
import datetime
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

try:
    import torch
    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
except ImportError as reason:
    print(f"SKIP: {reason}")
    sys.exit(0)

from forward_expected import BASE, CASES
from named_weights import rewrite

HERE = os.path.dirname(os.path.abspath(__file__))
EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}
MOST = 1e-3

WIDE = {**BASE, "hidden_size": 96, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 256,
        "intermediate_size": 160, "vocab_size": 300}
LONG = {**WIDE, "head_dim": 64, "max_position_embeddings": 512}
VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
          "image_size": 28, "patch_size": 14, "head_dim": 8}
DEEP = {**WIDE, "num_key_value_heads": 3, "n_routed_experts": 12, "num_experts_per_tok": 4, "n_group": 3, "topk_group": 2,
        "moe_intermediate_size": 64, "q_lora_rank": 40, "kv_lora_rank": 48, "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 32, "v_head_dim": 24, "first_k_dense_replace": 1, "routed_scaling_factor": 2.5}
del DEEP["head_dim"]
# Sequences longer than the 64 tokens that transformers processes as one chunk of linear attention.
HYBRID = {"hidden_size": 60, "num_hidden_layers": 5, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 16,
          "vocab_size": 131, "max_position_embeddings": 256, "rms_norm_eps": 1e-06, "linear_num_key_heads": 2,
          "linear_num_value_heads": 6, "linear_key_head_dim": 12, "linear_value_head_dim": 20,
          "linear_conv_kernel_dim": 4}
SHARED = {"num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 36,
          "shared_expert_intermediate_size": 28}
GRID = {"rope_type": "default", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 0],
        "mrope_interleaved": True}
QWEN_VISION = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 24, "out_hidden_size": 60,
               "patch_size": 4, "num_position_embeddings": 16}
MORE = [
    {"model_type": "gemma2", **WIDE, "num_hidden_layers": 4, "sliding_window": 9},
    {"model_type": "gemma3_text", **WIDE, "num_hidden_layers": 7, "sliding_window": 9},
    {"model_type": "phi3", **WIDE, "head_dim": 32, "pad_token_id": 0, "sliding_window": 9},
    {"model_type": "gemma3", "mm_tokens_per_image": 4, "vision_config": {"model_type": "siglip_vision_model", **VISION},
     "text_config": {"model_type": "gemma3_text", **WIDE, "num_hidden_layers": 7, "sliding_window": 9,
                     "rope_scaling": {"rope_type": "linear", "factor": 8.0}}},
    {"model_type": "mistral3", "vision_config": {"model_type": "pixtral", **VISION}, "tie_word_embeddings": False,
     "text_config": {"model_type": "mistral", **WIDE, "head_dim": 32, "sliding_window": None}},
    {"model_type": "qwen3_next", **HYBRID, **SHARED, "intermediate_size": 90, "mlp_only_layers": [1]},
    {"model_type": "qwen3_5", "vision_config": QWEN_VISION,
     "text_config": {**HYBRID, "intermediate_size": 90, "rope_parameters": GRID}},
    {"model_type": "qwen3_5_moe", "vision_config": QWEN_VISION,
     "text_config": {**HYBRID, **SHARED, "rope_parameters": GRID}},
    {"model_type": "llama", **LONG, "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}},
    {"model_type": "qwen2", **LONG, "head_dim": 32, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 128}},
    {"model_type": "phi3", **LONG, "head_dim": 32, "pad_token_id": 0, "original_max_position_embeddings": 128,
     "partial_rotary_factor": 0.75, "rope_scaling": {
         "type": "longrope", "short_factor": [1.0 + i / 20 for i in range(12)],
         "long_factor": [1.5 + i / 2 for i in range(12)]}},
    {"model_type": "gemma3_text", **LONG, "num_hidden_layers": 7, "sliding_window": 100,
     "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    {"model_type": "glm4_moe", **WIDE, "head_dim": 32, "n_routed_experts": 12, "num_experts_per_tok": 4, "n_group": 3,
     "topk_group": 2, "moe_intermediate_size": 64, "use_qk_norm": True},
    {"model_type": "minimax_m2", **WIDE, "head_dim": 32, "num_local_experts": 6, "num_experts_per_tok": 2,
     "rotary_dim": 16},
    {"model_type": "gpt_oss", **WIDE, "head_dim": 32, "num_local_experts": 6, "num_experts_per_tok": 2,
     "sliding_window": 9, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "truncate": False,
                                           "original_max_position_embeddings": 32}},
    {"model_type": "deepseek_v2", **DEEP, "q_lora_rank": None, "topk_method": "group_limited_greedy"},
    {"model_type": "deepseek_v3", **DEEP, "rope_scaling": {
        "type": "yarn", "factor": 40, "original_max_position_embeddings": 16, "beta_fast": 32, "beta_slow": 1,
        "mscale": 1.0, "mscale_all_dim": 1.0}},
    {"model_type": "glm4_moe_lite", **DEEP},
    {"model_type": "ernie4_5", **WIDE, "head_dim": 32},
    {"model_type": "ernie4_5_moe", **WIDE, "head_dim": 32, "moe_num_experts": 6, "moe_k": 2,
     "moe_intermediate_size": 64},
    {"model_type": "llama4_text", **WIDE, "head_dim": 32, "num_local_experts": 6, "num_hidden_layers": 4,
     "interleave_moe_layer_step": 2, "intermediate_size_mlp": 128, "attention_chunk_size": 12, "floor_scale": 5},
    {"model_type": "qwen2_moe", **WIDE, "head_dim": 32, "num_experts": 6, "num_experts_per_tok": 2,
     "moe_intermediate_size": 64, "shared_expert_intermediate_size": 96},
    {"model_type": "gemma", **WIDE, "head_dim": 32},
    {"model_type": "granite", **WIDE, "head_dim": 32, "embedding_multiplier": 12.0, "attention_multiplier": 0.1,
     "residual_multiplier": 0.22, "logits_scaling": 8.0},
    {"model_type": "smollm3", **WIDE, "head_dim": 32, "num_hidden_layers": 5, "pad_token_id": 0},
    {"model_type": "seed_oss", **WIDE, "head_dim": 32},
    {"model_type": "olmo2", **WIDE, "head_dim": 32},
]
GGUF = {"gpt_oss": "gpt-oss", "llama": "llama", "mixtral": "mixtral", "qwen2": "qwen2", "qwen3": "qwen3",
        "qwen3_moe": "qwen3moe",
        "gemma2": "gemma2", "gemma3_text": "gemma3", "phi3": "phi3", "qwen3_next": "qwen3next", "glm4_moe": "glm4moe"}


transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def kind_of(config):
    return AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM


def make(case, folder):
    fields = {key: value for key, value in case.items() if key != "model_type"}
    config = AutoConfig.for_model(case["model_type"], **fields)
    kind_of(config).from_config(config, **EAGER).float().save_pretrained(folder)
    rewrite(os.path.join(folder, "model.safetensors"), 1 if case in CASES else 0.3)


@contextlib.contextmanager
def f64():
    """transformers' code names f32 in places (norms, routers, linear attention): here those names mean f64."""
    single, to_single = torch.float32, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32 = torch.float = single
        torch.Tensor.float = to_single
        torch.set_default_dtype(single)


def by_transformers(folder, ids):
    config = AutoConfig.from_pretrained(folder)
    config.pad_token_id = None  # phi3's default is beyond a small vocabulary
    model = kind_of(config).from_pretrained(folder, config=config, dtype=torch.float32, **EAGER).eval().double()
    with f64(), torch.no_grad():
        logits = model(input_ids=torch.tensor(ids)).logits[:, :-1]
    nats = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(ids)[:, 1:].flatten())
    return float(nats.exp())


def by_xfp(model, tokens):
    return json.loads(subprocess.run(["xfp", "eval", "--json", "--tokens", tokens, model], check=True,
                                     capture_output=True, text=True).stdout)["perplexity"]


class Judge:
    def __init__(self):
        self.worst, self.failed, self.off = 0, 0, {}

    def compare(self, what, model, folder, ids):
        np.save(os.path.join(os.path.dirname(folder), "tokens.npy"), ids)
        expected = by_transformers(folder, ids)
        got = by_xfp(model, os.path.join(os.path.dirname(folder), "tokens.npy"))
        off = abs(got / expected - 1)
        self.worst = max(self.worst, off)
        kind = what.split()[0].rstrip(",")
        self.off[kind] = max(off, self.off.get(kind, 0))
        self.failed += not off < MOST
        print(f"{what:44} transformers {expected:12.6g}  xfp {got:12.6g}  off by {off:.1e}", flush=True)


def bundle_of(model, folder):
    """A bundle, and its unpacked copy."""
    bundle, copy = os.path.join(folder, "model.xfp"), os.path.join(folder, "copy")
    subprocess.run(["xfp", "convert", model, "-o", bundle, "-q", "--bits", "3", "--on-miss", "best"], check=True)
    subprocess.run(["xfp", "unpack", bundle, "-o", copy, "--dtype", "f32"], check=True, stdout=subprocess.DEVNULL)
    return bundle, copy


def record(judge, path):
    off = {kind: float(f"{value:.1e}") for kind, value in sorted(judge.off.items())}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"date": datetime.date.today().isoformat(), "transformers": transformers.__version__,
                   "torch": torch.__version__, "off": off}, file, indent=1)
        file.write("\n")


def main(families):
    judge, path = Judge(), None
    if families[:1] == ["--record"]:
        path, families = families[1], families[2:]
    for number, case in enumerate(CASES + MORE):
        text = case.get("text_config", case)
        if families and case["model_type"] not in families:
            continue
        length = 21 if text["max_position_embeddings"] < 200 else 150
        ids = (np.arange(4 * length) ** 2 * 7 % text["vocab_size"]).reshape(4, length)
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain")
            make(case, plain)
            judge.compare(f"{case['model_type']} {number}", plain, plain, ids)
            bundle, copy = bundle_of(plain, folder)
            judge.compare(f"{case['model_type']} {number}, 3 bits", bundle, copy, ids)
    for family, architecture in GGUF.items():
        if families and family not in families:
            continue
        with tempfile.TemporaryDirectory() as folder:
            plain, gguf = os.path.join(folder, "plain"), os.path.join(folder, "model.gguf")
            subprocess.run([sys.executable, os.path.join(HERE, "..", "make-gguf.py"), architecture, gguf, plain],
                           check=True)
            ids = (np.arange(2 * 80) ** 2 * 7 % 96).reshape(2, 80)
            judge.compare(f"{family}", plain, plain, ids)
            judge.compare(f"{family} GGUF", gguf, plain, ids)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: off by {judge.worst:.1e} at most")
    if path:
        record(judge, path)
    return judge.failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

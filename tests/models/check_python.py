#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do models of xfp.load compute what transformers computes with the unpacked weights, in f32?

    check_python.py [FAMILY...]

For random models of each family (or of those named): logits within a thousandth of their spread, and the same greedy
text for 32 steps, up to near ties. `xfp` is taken from PATH, the package from PYTHONPATH. Prints SKIP and the reason if
transformers is not installed. Fails if one differs, or cannot be loaded.
"""
import os
import subprocess
import sys
import tempfile


HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

from check_families import CASES, MORE, WIDE, make, torch, transformers
from models import MOST, dense_parameters, ids_of, load, load_copy, off, same_text

SMALL = {**WIDE, "head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
LATENT = {**SMALL, "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 20, "qk_rope_head_dim": 8,
          "qk_nope_head_dim": 12, "v_head_dim": 16, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2,
          "topk_group": 1, "first_k_dense_replace": 1, "moe_intermediate_size": 40, "n_shared_experts": 1}
OTHERS = [
    {"model_type": "gpt_oss", **SMALL, "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 9},
    {"model_type": "deepseek_v3", **{key: value for key, value in LATENT.items() if key != "head_dim"}},
    {"model_type": "glm4_moe", **LATENT, "num_key_value_heads": 2, "partial_rotary_factor": 0.5},
    {"model_type": "minimax_m2", **SMALL, "num_local_experts": 5, "num_experts_per_tok": 2, "rotary_dim": 8},
    {"model_type": "ernie4_5_moe", **SMALL, "moe_num_experts": 5, "moe_k": 2, "moe_intermediate_size": 40,
     "moe_layer_start_index": 1, "moe_num_shared_experts": 1},
]


def bundle_of(model, folder):
    """A bundle of three bits, and its copy, which transformers reads in f32."""
    bundle, copy = os.path.join(folder, "model.xfp"), os.path.join(folder, "copy")
    subprocess.run(["xfp", "convert", model, "-o", bundle, "-q", "--bits", "3", "--on-miss", "best"], check=True)
    subprocess.run(["xfp", "unpack", bundle, "-o", copy, "--dtype", "f32"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return bundle, copy


def compare(case):
    """A line about a model; raises an exception if it is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain")
        text = case.get("text_config", case)
        own = {"eos_token_id": None, "max_position_embeddings": max(128, text["max_position_embeddings"])}
        text = {**text, **own, "pad_token_id": 0}
        make({**case, "text_config": text} if "text_config" in case else text, plain)
        bundle, copy = bundle_of(plain, folder)
        model = load(bundle)
        reference = load_copy(model, copy)
        apart = off(model, reference, input_ids=ids_of(model, 2, 70))
        steps = same_text(model, reference, ids_of(model, 1, 9))
        total = sum(parameter.numel() for parameter in reference.parameters())
    assert apart < MOST, f"logits are off by {apart:.1e} of their spread"
    return (f"logits off by {apart:.1e} of their spread, {steps} steps the same, {dense_parameters(model)} of {total} "
            "parameters dense")


def main(families):
    failed = 0
    for number, case in enumerate(CASES + MORE + OTHERS):
        if families and case["model_type"] not in families:
            continue
        try:
            line = compare(case)
        except (AssertionError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
            line, failed = f"FAILED: {error}", failed + 1
        print(f"{case['model_type']:14} {number:2}  {line}", flush=True)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

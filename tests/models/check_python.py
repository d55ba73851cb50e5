#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do models of xfp.load compute what transformers computes with the unpacked weights, in f32?

    check_python.py [FAMILY...]

For random models of each family (or of those named): logits within a thousandth of their spread, also of a padded
batch; the same greedy text for 32 steps, up to near ties; the same samples and beams. Embeddings of an encoder with the
config of all-MiniLM-L6-v2, but for its sizes: within 1e-4. `xfp` is taken from PATH, the package from PYTHONPATH.
Prints SKIP and the reason if transformers is not installed. Fails if one differs, or cannot be loaded.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

from check_families import CASES, MORE, WIDE, make, rewrite, torch, transformers
from models import MOST, dense_parameters, ids_of, load, load_copy, off, padded, same_choices, same_text

import xfp

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
    # layers without and with experts, with and without positions; attention by chunks
    {"model_type": "llama4_text", **SMALL, "num_hidden_layers": 4, "intermediate_size": 40, "intermediate_size_mlp": 72,
     "num_local_experts": 5, "num_experts_per_tok": 2, "interleave_moe_layer_step": 2, "attention_chunk_size": 32},
]
PUBLISHED = ["gpt_oss-mxfp4"]  # of tests/families.py, in the form of the maker
MINI = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 12, "intermediate_size": 384,
        "vocab_size": 300, "max_position_embeddings": 64, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        "type_vocab_size": 2, "pad_token_id": 0, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}


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
        if isinstance(case, str):
            subprocess.run([sys.executable, os.path.join(HERE, "..", "families.py"), "make", case, plain], check=True)
            return compare_bundle(plain, folder)
        text = case.get("text_config", case)
        own = {"eos_token_id": None, "max_position_embeddings": max(128, text["max_position_embeddings"])}
        text = {**text, **own, "pad_token_id": 0}
        make({**case, "text_config": text} if "text_config" in case else text, plain)
        return compare_bundle(plain, folder)


def compare_bundle(plain, folder):
    bundle, copy = bundle_of(plain, folder)
    model = load(bundle)
    reference = load_copy(model, copy)
    apart = off(model, reference, input_ids=ids_of(model, 2, 70))
    steps = same_text(model, reference, ids_of(model, 1, 9))
    total = sum(parameter.numel() for parameter in reference.parameters())
    assert apart < MOST, f"logits are off by {apart:.1e} of their spread"
    beside = padded(model, reference)
    assert beside < MOST, f"logits of a padded batch are off by {beside:.1e} of their spread"
    same_choices(model, reference)
    return (f"logits off by {apart:.1e} of their spread, {steps} steps the same, {dense_parameters(model)} of {total} "
            "parameters dense")


def compare_encoder(_):
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain")
        transformers.BertModel(transformers.BertConfig(**MINI)).save_pretrained(plain)
        rewrite(os.path.join(plain, "model.safetensors"), 1)
        bundle, copy = bundle_of(plain, folder)
        model = xfp.load(bundle, dtype=torch.float32)[0]
        reference = type(model).from_pretrained(copy, dtype=torch.float32)
        ids, mask = ids_of(model, 3, 40), torch.ones(3, 40, dtype=torch.long)
        mask[0, 11:], mask[2, 31:] = 0, 0
        with torch.no_grad():
            pooled = [(one(ids, attention_mask=mask).last_hidden_state * mask[..., None]).sum(1)
                      for one in (model, reference)]
        a, b = (torch.nn.functional.normalize(one, dim=-1) for one in pooled)
        apart, between = float((a - b).abs().max()), float((b[0] - b[1]).abs().max())
    assert apart < 1e-4, f"embeddings are off by {apart:.1e}"
    return f"embeddings off by {apart:.1e}, between sentences {between:.1e}; {dense_parameters(model)} parameters dense"


def main(families):
    failed = 0
    cases = [(case["model_type"], compare, case) for case in CASES + MORE + OTHERS]
    cases += [(name, compare, name) for name in PUBLISHED] + [("bert", compare_encoder, None)]
    for number, (name, function, case) in enumerate(cases):
        if families and name not in families:
            continue
        try:
            line = function(case)
        except (AssertionError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
            line, failed = f"FAILED: {error}", failed + 1
        print(f"{name:14} {number:2}  {line}", flush=True)
    print(f"transformers {transformers.__version__}, torch {torch.__version__}: {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

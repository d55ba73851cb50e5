#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a phi3 with longrope and an original context of 24 tokens into a folder.

    longrope.py FOLDER
    longrope.py --transformers FOLDER

The second form prints the 16 tokens that transformers generates for each of PROMPTS, alone and with its KV cache: those
that tests/cli/generate.bats expects. It needs torch and transformers.
"""
import json
import sys

from named_weights import write_checkpoint

HIDDEN, HEADS, KEYS, SIZE, FF, VOCABULARY, LAYERS = 32, 4, 2, 8, 48, 260, 2
# With <s> these are of 12, 20, 24, 25 and 45 tokens.
PROMPTS = ["quick brown", "the lazy dogs sleep", "a cat sits on the mat by", "a cat sits on the mat by.",
           "what comes after the original context is long"]
CONFIG = {
    "model_type": "phi3", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
    "num_key_value_heads": KEYS, "intermediate_size": FF, "vocab_size": VOCABULARY, "max_position_embeddings": 96,
    "original_max_position_embeddings": 24, "rms_norm_eps": 1e-5, "pad_token_id": 0, "eos_token_id": None,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.5], "long_factor": [2.0, 3.5, 6.0, 9.0]}}


def shapes():
    yield "model.embed_tokens.weight", [VOCABULARY, HIDDEN]
    for layer in range(LAYERS):
        start = f"model.layers.{layer}."
        yield start + "input_layernorm.weight", [HIDDEN]
        yield start + "self_attn.qkv_proj.weight", [(HEADS + 2 * KEYS) * SIZE, HIDDEN]
        yield start + "self_attn.o_proj.weight", [HIDDEN, HEADS * SIZE]
        yield start + "post_attention_layernorm.weight", [HIDDEN]
        yield start + "mlp.gate_up_proj.weight", [2 * FF, HIDDEN]
        yield start + "mlp.down_proj.weight", [HIDDEN, FF]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [VOCABULARY, HIDDEN]


def by_transformers(folder):
    import torch
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    for prompt in PROMPTS:
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=16, do_sample=False,
                              pad_token_id=0, output_logits=True, return_dict_in_generate=True)
        best = torch.stack(made.logits)[:, 0].topk(2).values
        spread = torch.stack(made.logits).std()
        print(ids.shape[1], json.dumps(made.sequences[0, ids.shape[1]:].tolist()),
              f"nearest {float((best[:, 0] - best[:, 1]).min() / spread):.3f}")


if __name__ == "__main__":
    if len(sys.argv) != (3 if sys.argv[1:2] == ["--transformers"] else 2):
        sys.exit(__doc__)
    if sys.argv[1] == "--transformers":
        by_transformers(sys.argv[2])
    else:
        write_checkpoint(sys.argv[1], CONFIG, dict(shapes()))

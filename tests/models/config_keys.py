#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does xfp eval obey each key of config.json that transformers reads, or refuse it by name?

    config_keys.py [FAMILY...]

For each family of xfp eval: each key of its transformers class gets a second value, one at a time, and in pairs for
layer counts and windows, and for positions. Losses of both are compared, on tiny models with the weights of
named_weights.py. Writes tests/unit/config_keys.json (of the families named, if any), which
tests/unit/test_config_keys.c replays without transformers, and tests/models/results/config-keys.md, the table. `xfp`
is taken from PATH. Fails if a loss differs, or if a refusal does not name a changed key.
"""
import copy
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from forward_expected import BASE, HYBRID, LENGTH, SEQUENCES, SHARED, VOCABULARY, WIDE
from named_weights import plain, rewrite

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "unit", "config_keys")
EAGER = {"attn_implementation": "eager", "experts_implementation": "eager"}
TABLE = os.path.join(HERE, "results", "config-keys.md")
MOST = 2e-5  # relative tolerance of a loss
SIZES = {**BASE, "hidden_size": 12, "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1,
         "head_dim": 8, "intermediate_size": 14}
DELTA = {**HYBRID, "hidden_size": 12, "num_attention_heads": 2, "head_dim": 16, **WIDE, "linear_value_head_dim": 6}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 6}
SHARING = {**SHARED, **EXPERTS, "shared_expert_intermediate_size": 5}
VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
          "image_size": 28, "patch_size": 14, "head_dim": 8}
GRID = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 24, "out_hidden_size": 12,
        "patch_size": 4, "num_position_embeddings": 16}
QWEN = {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 2}
GEMMA = {"sliding_window": 7, "query_pre_attn_scalar": 6}
ROUTED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 6}
LATENT = {**SIZES, **ROUTED, "num_key_value_heads": 2, "q_lora_rank": 7, "kv_lora_rank": 10, "qk_rope_head_dim": 4,
          "qk_nope_head_dim": 6, "v_head_dim": 5, "first_k_dense_replace": 1}
del LATENT["head_dim"]
LLAMA4 = {**SIZES, "intermediate_size_mlp": 9, "num_local_experts": 4, "num_experts_per_tok": 1,
          "attention_chunk_size": 8, "floor_scale": 3, "interleave_moe_layer_step": 2, "no_rope_layer_interval": 3}
SEEN = {"model_type": "llama4_vision_model", "hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 2, "image_size": 28, "patch_size": 14, "vision_output_dim": 8, "projector_input_dim": 8,
        "projector_output_dim": 8}
FAMILIES = {
    "llama": SIZES,
    "mistral": {**SIZES, "sliding_window": 7},
    "ministral": {**SIZES, "sliding_window": 7},
    "mixtral": {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2": {**SIZES, "head_dim": 6, **QWEN},
    "qwen3": {**SIZES, **QWEN},
    "qwen3_moe": {**SIZES, **EXPERTS},
    "phi3": {**SIZES, "hidden_size": 16, "pad_token_id": 0, "original_max_position_embeddings": 16},
    "gemma2": {**SIZES, **GEMMA},
    "gemma3_text": {**SIZES, **GEMMA, "sliding_window_pattern": 2},
    "gemma3": {"vision_config": {"model_type": "siglip_vision_model", **VISION}, "mm_tokens_per_image": 4,
               "text_config": {"model_type": "gemma3_text", **SIZES, **GEMMA, "sliding_window_pattern": 2}},
    "qwen3_next": {**DELTA, **SHARING, "intermediate_size": 14},
    "qwen3_5_text": {**DELTA, "intermediate_size": 14},
    "qwen3_5_moe_text": {**DELTA, **SHARING},
    "qwen3_5": {"vision_config": GRID, "text_config": {"model_type": "qwen3_5_text", **DELTA, "intermediate_size": 14}},
    "qwen3_5_moe": {"vision_config": GRID, "text_config": {"model_type": "qwen3_5_moe_text", **DELTA, **SHARING}},
    "glm4_moe": {**SIZES, **ROUTED, "n_group": 2, "topk_group": 1},
    "glm4_moe_lite": LATENT,
    "minimax_m2": {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2, "rotary_dim": 4},
    "deepseek_v2": LATENT,
    "deepseek_v3": {**LATENT, "n_group": 2, "topk_group": 1},
    "gpt_oss": {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 7,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}},
    "ernie4_5": SIZES,
    "ernie4_5_moe": {**SIZES, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 6},
    "llama4_text": LLAMA4,
    "llama4": {"vision_config": SEEN, "text_config": {"model_type": "llama4_text", **LLAMA4}},
    "qwen2_moe": {**SIZES, **EXPERTS, "shared_expert_intermediate_size": 5},
    "gemma": SIZES,
    "granite": {**SIZES, "attention_multiplier": 0.25},
    "smollm3": {**SIZES, "pad_token_id": 0, "no_rope_layer_interval": 3},
    "seed_oss": SIZES,
    "olmo2": SIZES,
}
# Keys that define the parts of a model or the behaviour of a program: another value is another question.
LEFT_OUT = {"text_config": "a config of its own", "vision_config": "not computed", "transformers_version": "a record",
            "architectures": "chosen by the caller", "return_dict": "a form of output",
            "is_encoder_decoder": "of another kind of model"}

# Keys of every family, and of training: null is one of their values.
PLAIN = {field.name for field in dataclasses.fields(PreTrainedConfig)} | {
    "initializer_range", "use_cache", "attention_dropout", "residual_dropout", "output_router_logits",
    "router_aux_loss_coef", "router_jitter_noise", "pretraining_tp", "bos_token_id", "eos_token_id", "pad_token_id"}

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}


def longrope(pairs, **more):
    return {"short_factor": [1.0 + i / 4 for i in range(pairs)], "long_factor": [1.5 + i for i in range(pairs)], **more}


def values_of(family, text):
    """Second values of keys that are not plain numbers, or that must fit others."""
    layers = text["num_hidden_layers"]
    heads = text.get("head_dim", 8)
    pairs = text.get("qk_rope_head_dim", heads) // 2
    if family.startswith("qwen3_5") or family == "qwen3_next":
        pairs //= 4
    if family in ("glm4_moe", "minimax_m2"):
        pairs //= 2
    kinds = ["full_attention", "linear_attention" if "linear_conv_kernel_dim" in text else
             "chunked_attention" if "attention_chunk_size" in text else "sliding_attention"]
    long = longrope(pairs, rope_type="longrope", original_max_position_embeddings=8, factor=4.0)
    nested = {"full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 30000.0},
              "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}
    return {
        "rope_parameters": [{"rope_type": "default", "rope_theta": 300.0},
                            {"rope_type": "linear", "rope_theta": 5000.0, "factor": 2.5},
                            {"rope_type": "default", "partial_rotary_factor": 0.5},
                            {**YARN, "mscale": 1.2, "mscale_all_dim": 0.8, "truncate": False, "beta_fast": 16.0},
                            LLAMA3, long, {"rope_type": "dynamic", "factor": 2.0}, nested,
                            {**YARN, "mscale": "1.2", "mscale_all_dim": "0.8"},
                            {"rope_type": "dynamic", "factor": 2.0, "mscale_all_dim": 0.8}],
        "rope_scaling": [{"type": "linear", "factor": 8.0}, {"rope_theta": 700.0, **YARN, "attention_factor": 1.5},
                         {"type": "longrope", **longrope(pairs)}],
        "rope_theta": [777.0],
        "rope_local_base_freq": [777.0],
        "partial_rotary_factor": [0.5],
        "original_max_position_embeddings": [12],
        "max_position_embeddings": [48],
        "layer_types": [[kinds[i % 2] for i in range(layers)]],
        "num_hidden_layers": [layers - 1, layers + 1],
        "sliding_window": [3, None],
        "sliding_window_pattern": [3],
        "max_window_layers": [0, 9],
        "full_attention_interval": [2],
        "mlp_only_layers": [[1]],
        "decoder_sparse_step": [2],
        "head_dim": [heads * 2],
        "num_attention_heads": [4],
        "num_key_value_heads": [2],
        "hidden_size": [24],
        "vocab_size": [VOCABULARY + 4],
        "num_experts": [6], "num_local_experts": [6], "num_experts_per_tok": [1],
        "linear_num_key_heads": [3], "linear_num_value_heads": [2], "linear_conv_kernel_dim": [4],
        "rms_norm_eps": [0.25],
        "query_pre_attn_scalar": [11],
        "attn_logit_softcapping": [0.75, None], "final_logit_softcapping": [0.5, None],
        "hidden_act": ["gelu", "relu"], "hidden_activation": ["gelu", "relu"],
        "bos_token_id": [3], "eos_token_id": [4], "pad_token_id": [5],
        "dtype": ["bfloat16"], "problem_type": ["regression"],
        "id2label": [{"0": "a", "1": "b", "2": "c"}], "label2id": [{"a": 0}],
        "router_jitter_noise": [0.5],
        "per_layer_config": [{"1": {"intermediate_size": 18}}],
        "n_routed_experts": [6], "moe_num_experts": [6], "moe_k": [1],
        "n_group": [1, 3, 4], "topk_group": [2, 3], "first_k_dense_replace": [0, 2],
        "topk_method": ["greedy", "group_limited_greedy", "noaux_tc", "other"], "scoring_func": ["softmax", "sigmoid"],
        "routed_scaling_factor": [2.5, 0.0, -1.0],
        "mlp_layer_types": [[["dense", "sparse"][i % 2] for i in range(layers)]],
        "no_rope_layers": [[1 - i % 2 for i in range(layers)], []], "no_rope_layer_interval": [2],
        "moe_layers": [[0, 3], []], "interleave_moe_layer_step": [1],
        "moe_layer_start_index": [0, 2], "moe_layer_end_index": [1], "moe_layer_interval": [2],
        "moe_norm_min": [0.7, 0.0],
        "attention_chunk_size": [5, 0], "attn_temperature_tuning": [False, 4, 0],
        "swiglu_limit": [0.4, 0.0],
        "rotary_dim": [6],
        "norm_topk_prob": [True, False], "use_qk_norm": [True, False], "rope_interleave": [True, False],
        "attention_bias": [True, False], "mlp_bias": [True, False],
    }


# Keys that classes read without a field of that name.
HIDDEN = {"rope_theta", "rope_scaling", "partial_rotary_factor", "per_layer_config"}
MORE = {"mistral": {"layer_types"}, "qwen3_next": {"full_attention_interval"}, "phi3": set(),
        "qwen3_5_text": {"full_attention_interval"}, "qwen3_5_moe_text": {"full_attention_interval"},
        "gemma2": {"sliding_window_pattern"},
        "gemma3_text": {"sliding_window_pattern", "rope_local_base_freq"},
        "glm4_moe": {"head_dim", "num_experts", "num_local_experts", "topk_method", "scoring_func", "sliding_window"},
        "glm4_moe_lite": {"head_dim", "num_experts", "num_local_experts", "topk_method", "scoring_func",
                          "first_k_dense_replace", "mlp_bias"},
        "minimax_m2": {"rotary_dim", "num_experts", "use_qk_norm", "scoring_func", "attention_bias", "sliding_window"},
        "deepseek_v2": {"num_experts", "num_local_experts", "scoring_func", "rope_interleave"},
        "deepseek_v3": {"head_dim", "num_experts", "num_local_experts", "topk_method", "scoring_func", "mlp_bias"},
        "gpt_oss": {"sliding_window_pattern", "num_experts", "norm_topk_prob"},
        "ernie4_5": {"attention_bias"},
        "ernie4_5_moe": {"num_experts", "num_experts_per_tok", "head_dim", "norm_topk_prob"},
        "qwen2_moe": {"head_dim", "attention_bias"},
        "granite": {"head_dim"}, "smollm3": {"head_dim"}, "olmo2": {"head_dim"}}
LAYERS = {"num_hidden_layers", "layer_types", "max_window_layers", "sliding_window_pattern", "full_attention_interval",
          "mlp_only_layers", "decoder_sparse_step", "sliding_window", "use_sliding_window", "first_k_dense_replace",
          "mlp_layer_types", "no_rope_layers", "no_rope_layer_interval", "moe_layers", "interleave_moe_layer_step",
          "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval"}
ROPE = {"rope_parameters", "rope_scaling", "rope_theta", "rope_local_base_freq", "partial_rotary_factor", "head_dim",
        "max_position_embeddings", "original_max_position_embeddings"}


def second(field, value, default):
    """Another value for a plain number or flag."""
    if value is None:
        value = default
    if isinstance(value, bool) or "bool" in str(field.type):
        return not value
    if isinstance(value, int):
        return value + 2
    if isinstance(value, float):
        return value + 0.25
    return 2 if "int" in str(field.type) else 0.5 if "float" in str(field.type) else None


def changes(family, base):
    """(path, value) of all second values; a path is a key, or "text_config.KEY"."""
    found = []
    parts = [("", family, base)]
    if "text_config" in base:
        parts.append(("text_config.", base["text_config"]["model_type"], base["text_config"]))
    for prefix, kind, part in parts:
        text = base.get("text_config", base)
        special = values_of(kind, text)
        fields = {f.name: f for f in dataclasses.fields(CONFIG_MAPPING[kind]) if not f.name.startswith("_")}
        hidden = set() if "text_config" in part else HIDDEN | MORE.get(kind, set())
        names = sorted(set(fields) | hidden)
        if prefix:  # the class is also a family of its own: only keys that nesting may affect
            names = sorted({"tie_word_embeddings", "num_hidden_layers", "layer_types", "rope_scaling",
                            "rope_parameters", "rope_theta", "sliding_window"} & set(names))
        for name in names:
            if name in LEFT_OUT:
                continue
            for value in special.get(name, []):
                if part.get(name) != value:
                    found.append((prefix + name, value))
            if name not in special:
                default = fields[name].default
                value = second(fields[name], part.get(name), None if default is dataclasses.MISSING else default)
                if value is None:
                    sys.exit(f"{kind}: {name} has no second value; add one to values_of")
                found.append((prefix + name, value))
            if not prefix and name not in PLAIN and (name, None) not in found:
                found.append((name, None))
    return found


def patched(family, base, chosen):
    config = {"model_type": family, **copy.deepcopy(base)}
    for path, value in chosen:
        key = path.split(".")[-1]
        (config["text_config"] if "." in path else config)[key] = copy.deepcopy(value)
    return config


def ids_of():
    return [[(t * t + 5 * s) % VOCABULARY for t in range(LENGTH)] for s in range(SEQUENCES)]


def by_transformers(folder, config):
    """A loss, or None if transformers refuses. Leaves a checkpoint with this config in the folder."""
    path = os.path.join(folder, "config.json")
    with open(path, "w") as file:
        json.dump(config, file)
    kind = AutoModelForImageTextToText if "vision_config" in config else AutoModelForCausalLM
    try:
        read = AutoConfig.from_pretrained(folder)
        kind.from_config(read, **EAGER).float().save_pretrained(folder)
        rewrite(os.path.join(folder, "model.safetensors"), name_of=plain)
        with open(path, "w") as file:
            json.dump(config, file)
        model = kind.from_pretrained(folder, dtype=torch.float32, **EAGER).eval()
        ids = torch.tensor(ids_of())
        with torch.no_grad():
            logits = model(input_ids=ids).logits[:, :-1].double()
        loss = float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()))
        return loss if math.isfinite(loss) else None
    except Exception as reason:  # pylint: disable=broad-except
        return str(reason).splitlines()[0] if str(reason) else type(reason).__name__


def by_xfp(folder, tokens):
    run = subprocess.run(["xfp", "eval", "--json", "--tokens", tokens, "--threads", "1", folder], capture_output=True,
                         text=True, check=False)
    if run.returncode == 0:
        return json.loads(run.stdout)["loss"]
    return run.stderr.strip() if run.returncode == 3 else f"STATUS {run.returncode}: {run.stderr}"


class Sweep:
    def __init__(self, tokens):
        self.tokens, self.wrong, self.alone = tokens, [], []

    def judge(self, family, base, changed, before):
        config = patched(family, base, changed)
        with tempfile.TemporaryDirectory() as folder:
            expected = by_transformers(folder, config)
            if not os.path.exists(os.path.join(folder, "model.safetensors")):
                by_transformers(folder, patched(family, base, []))
                with open(os.path.join(folder, "config.json"), "w") as file:
                    json.dump(config, file)
            got = by_xfp(folder, self.tokens)
        keys = [path.split(".")[-1] for path, _ in changed]
        what = f"{family} {json.dumps(changed)}"
        named = isinstance(got, str) and [key for key in keys if key in got]
        if isinstance(expected, float) and isinstance(got, float):
            right = abs(got - expected) <= MOST * expected
            outcome = "followed" if before and abs(expected - before) > MOST * before else "equal"
        elif isinstance(got, str):
            # Members of rope_parameters and rope_scaling are keys, too.
            named = named or [key for path, value in changed if path.endswith(("rope_parameters", "rope_scaling"))
                               for key in value if key in got]
            right = bool(named) or (not isinstance(expected, float) and not got.startswith("STATUS"))
            outcome = "refused" if isinstance(expected, float) else "both refuse"
        else:
            right, outcome = True, "xfp alone"
        if not right or outcome == "xfp alone":
            (self.wrong if not right else self.alone).append(f"{what}: transformers {expected}, xfp {got}")
        key = named[0] if named else ""
        return outcome, expected if isinstance(expected, float) else None, key

    def family(self, name, base):
        """Cases are [values, outcome, loss or key]; values are indices into the list."""
        _, plain, _ = self.judge(name, base, [], None)
        found = changes(name, base)
        valued = [at for at, (key, value) in enumerate(found) if value is not None or key == "sliding_window"]
        pairs = [(a, b) for a, b in itertools.combinations(valued, 2) if found[a][0] != found[b][0] and
                 any({found[a][0].split(".")[-1], found[b][0].split(".")[-1]} <= group for group in (LAYERS, ROPE))]
        cases = [[[], "followed", plain]]
        for chosen in [(one,) for one in range(len(found))] + pairs:
            outcome, loss, key = self.judge(name, base, [found[one] for one in chosen], plain)
            cases.append([list(chosen), outcome, key if loss is None or key else round(loss, 7)])
        print(f"{name:18} {len(found)} values, {len(pairs)} pairs, {len(self.wrong)} wrong so far", flush=True)
        return {"config": {"model_type": name, **base}, "values": found, "cases": cases}


def write(results):
    with open(DATA + ".json", "w") as file:
        file.write("{\n")
        for number, (name, result) in enumerate(results.items()):
            rest = [json.dumps(one) for one in result["cases"]]
            lines = [" ".join(rest[at:at + 4]).replace("] [", "], [") for at in range(0, len(rest), 4)]
            file.write(f'"{name}": {{"config": {json.dumps(result["config"])},\n"values": [\n' +
                       ",\n".join(map(json.dumps, result["values"])) + '],\n"cases": [\n' + ",\n".join(lines) + "]}" +
                       (",\n" if number + 1 < len(results) else "\n"))
        file.write("}\n")
    with open(TABLE, "w") as file:
        file.write(HEAD + table(results))


LETTERS = {"followed": "f", "equal": "=", "refused": "r", "both refuse": "t", "xfp alone": "t"}
HEAD = f"""# Keys of config.json

`tests/models/config_keys.py` gives each key of each family that transformers {transformers.__version__} knows another
value and compares the losses of both; `tests/unit/test_config_keys.c` replays the losses. f: the loss is another one,
the same for both; =: the key changes nothing, for both; r: `xfp eval` refuses the model and names the key; t:
transformers fails, whether `xfp eval` refuses, too, or not. No key is ignored that transformers follows.

"""


def table(results):
    """Keys, and then pairs of them, by families."""
    cells = {}
    pairs = {letter: [0] * len(results) for letter in "f=rt"}
    for column, result in enumerate(results.values()):
        for chosen, outcome, _ in result["cases"]:
            letter = LETTERS[outcome]
            if len(chosen) == 2:
                pairs[letter][column] += 1
            elif chosen:
                row = cells.setdefault(result["values"][chosen[0]][0], [""] * len(results))
                row[column] += letter if letter not in row[column] else ""
    lines = ["| key | " + " | ".join(results) + " |", "|" + "---|" * (len(results) + 1)]
    lines += [f"| {key} | " + " | ".join(row) + " |" for key, row in sorted(cells.items())]
    lines += [f"| pairs: {letter} | " + " | ".join(map(str, row)) + " |" for letter, row in pairs.items()]
    return "\n".join(lines) + "\n"


def main(named):
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        tokens = os.path.join(folder, "tokens.npy")
        np.save(tokens, np.array(ids_of()))
        sweep, results = Sweep(tokens), {}
        if named and os.path.exists(DATA + ".json"):
            with open(DATA + ".json") as file:
                results = json.load(file)
        for name, base in FAMILIES.items():
            if not named or name in named:
                results[name] = sweep.family(name, base)
                write(results)
        if "deepseek_v3" in results:  # transformers has no class of that name; the published one is DeepSeek's
            results["kimi_k2"] = copy.deepcopy(results["deepseek_v3"])
            results["kimi_k2"]["config"]["model_type"] = "kimi_k2"
            write(results)
    for line in sweep.alone:
        print("xfp alone:", line)
    for line in sweep.wrong:
        print("WRONG:", line)
    return bool(sweep.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

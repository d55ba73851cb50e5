# SPDX-License-Identifier: Apache-2.0
"""Write tests/unit/encoder_expected.h: activations of tiny encoders, as transformers computes them in f32 with eager
attention.

    encoder_expected.py | clang-format >tests/unit/encoder_expected.h

Not part of the test suite: it needs torch and transformers. The weights are those of named_weights.py.
"""
import json
import os
import sys
import tempfile

import torch
import transformers
from transformers import AutoConfig, AutoModel

from named_weights import rewrite

LENGTHS = (1, 21, 8)
HIDDEN = 30
BASE = {"model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 3, "num_attention_heads": 3,
        "intermediate_size": 22, "vocab_size": 13, "max_position_embeddings": 24}
CASES = [
    BASE,
    {**BASE, "num_hidden_layers": 1, "num_attention_heads": 1, "hidden_act": "gelu_new", "layer_norm_eps": 0.3,
     "type_vocab_size": 1, "intermediate_size": 7, "max_position_embeddings": 21},
    {**BASE, "num_hidden_layers": 2, "num_attention_heads": 6, "hidden_act": "silu", "type_vocab_size": 3,
     "intermediate_size": 61},
]


def activations(case):
    """Activations of the last token of each text."""
    fields = {key: value for key, value in case.items() if key != "model_type"}
    config = AutoConfig.for_model(case["model_type"], **fields)
    with tempfile.TemporaryDirectory() as folder:
        AutoModel.from_config(config, attn_implementation="eager").float().save_pretrained(folder)
        rewrite(os.path.join(folder, "model.safetensors"))
        model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    result = []
    for text, length in enumerate(LENGTHS):
        ids = torch.tensor([[(t * t + 5 * text) % 13 for t in range(length)]])
        with torch.no_grad():
            result.append(model(input_ids=ids).last_hidden_state[0, -1].tolist())
    return result


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/*\n * encoder_expected.h - activations of the last token of each text, by transformers %s. Written by\n"
          " * tests/models/encoder_expected.py.\n */" % transformers.__version__)
    print("#ifndef XFP_TEST_ENCODER_EXPECTED_H\n#define XFP_TEST_ENCODER_EXPECTED_H\n")
    print("enum { ENCODER_TEXTS = %d, ENCODER_HIDDEN = %d };\n" % (len(LENGTHS), HIDDEN))
    print("static const size_t encoder_lengths[ENCODER_TEXTS] = { %s };\n" % ", ".join(map(str, LENGTHS)))
    print("static const struct encoder_case {\n\tconst char *config;\n"
          "\tfloat x[ENCODER_TEXTS][ENCODER_HIDDEN];\n} encoder_cases[] = {")
    for case in CASES:
        text = json.dumps(case)
        print("\t{ " + "\n\t  ".join(json.dumps(text[at:at + 90]) for at in range(0, len(text), 90)) + ",")
        print("\t  {")
        for row in activations(case):
            print("\t    { " + ", ".join("%.8ef" % value for value in row) + " },")
        print("\t  } },")
    print("};\n\n#endif")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a quantized copy of a real model still does.

    measure.py embed MODEL_A MODEL_B [SENTENCES.txt]   mean cosine of the embeddings of 200 sentences
    measure.py perplexity MODEL TOKENS.npy             nats a token, and its exponential
"""
import math
import os
import sys

import numpy as np

from bert import embed
from qwen3_moe import nats_per_token

SENTENCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sentences.txt")


def read_sentences(path=SENTENCES):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def embedding_cosine(a, b, sentences):
    return float((embed(a, sentences) * embed(b, sentences)).sum(-1, dtype=np.float64).mean())


def main(arguments):
    if len(arguments) in (3, 4) and arguments[0] == "embed":
        print(f"{embedding_cosine(arguments[1], arguments[2], read_sentences(*arguments[3:])):.4f}")
    elif len(arguments) == 3 and arguments[0] == "perplexity":
        nats = nats_per_token(arguments[1], np.load(arguments[2]))
        print(f"{nats:.4f} nats/token, perplexity {math.exp(nats):.2f}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure a quantized copy of a real model.

    measure.py embed MODEL_A MODEL_B [SENTENCES.txt]   mean cosine of the embeddings of 200 sentences
    measure.py perplexity MODEL TOKENS.npy             nats per token, and its exponential

perplexity runs the xfp in PATH.
"""
import json
import os
import subprocess
import sys

import numpy as np

from bert import embed

SENTENCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sentences.txt")


def read_sentences(path=SENTENCES):
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def xfp_eval(xfp, *arguments):
    """The output of `xfp eval`; the error of --fast is far below the printed digits."""
    command = [xfp, "eval", "--fast", "--json", *arguments]
    try:
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    except FileNotFoundError:
        sys.exit(f"{xfp}: not found; add its folder to PATH")


def embedding_cosine(a, b, sentences):
    return float((embed(a, sentences) * embed(b, sentences)).sum(-1, dtype=np.float64).mean())


def main(arguments):
    if len(arguments) in (3, 4) and arguments[0] == "embed":
        print(f"{embedding_cosine(arguments[1], arguments[2], read_sentences(*arguments[3:])):.4f}")
    elif len(arguments) == 3 and arguments[0] == "perplexity":
        said = xfp_eval("xfp", "--tokens", arguments[2], arguments[1])
        print(f"{said['loss']:.4f} nats/token, perplexity {said['perplexity']:.2f}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

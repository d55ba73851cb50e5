#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README's tables: what fixed bits and what floors cost and keep of a real model, as Markdown.

    table.py [--xfp XFP] [--only SETTING] MODEL [TOKENS.npy]

Settings are k = 3, 4, 5 and floors 0.98, 0.99, 0.995, 0.999 in v2, k = 2, 3, 4 in v2a and in v2c with groups of 32
and of 16, and floors in auto. An encoder (BERT) is judged by the mean cosine of
sentence embeddings, a Qwen3-MoE by its perplexity on TOKENS (default MODEL/eval-tokens.npy). lm_head is kept,
so that every figure is about these modes alone. Bits are true bits over the quantized classes; the weight cosine
is the mean of the units' medians by weights, and the least of them.
"""
import argparse
import collections
import json
import math
import os
import subprocess
import tempfile

import numpy as np

from bert import embed
from measure import read_sentences
from qwen3_moe import nats_per_token
from safetensors_io import Checkpoint

FLOOR = ["--min-cos-strict", "{}", "--min-cos-lazy", "{}"]


def options(floor, *more):
    return [part.format(floor) for part in FLOOR] + ["--lm-head", "keep", *more]


SETTINGS = {f"k = {k}": options("0", "--bits", str(k)) for k in (3, 4, 5)}
SETTINGS.update({f"floor {floor}": options(floor) for floor in ("0.98", "0.99", "0.995", "0.999")})
for k in (2, 3, 4):
    SETTINGS[f"v2a, k = {k}"] = options("0", "--mode", "v2a", "--bits", str(k))
    for group in (32, 16):
        SETTINGS[f"v2c, groups of {group}, k = {k}"] = options("0", "--mode", "v2c", "--bits", str(k),
                                                              "--group-size", str(group))
SETTINGS.update({f"auto, floor {floor}": options(floor, "--mode", "auto") for floor in ("0.98", "0.99", "0.995")})


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Judge:
    """Embeddings against the original's, or perplexity."""

    def __init__(self, model, tokens):
        self.encoder = Checkpoint(model).config()["model_type"] == "bert"
        if self.encoder:
            self.sentences = read_sentences()
            self.original = embed(model, self.sentences)
            self.title, self.source = "embedding cosine", "1"
        else:
            self.tokens = np.load(tokens or os.path.join(model, "eval-tokens.npy"))
            self.title, self.source = "perplexity", self.score(model)

    def score(self, folder):
        if self.encoder:
            vectors = embed(folder, self.sentences)
            return f"{(vectors * self.original).sum(-1, dtype=np.float64).mean():.4f}"
        return f"{math.exp(nats_per_token(folder, self.tokens)):.2f}"


def convert(xfp, model, folder, setting):
    """(units of the quantized classes, folder of the unpacked copy)."""
    bundle, copy = os.path.join(folder, "out.xfp"), os.path.join(folder, setting.replace(" ", "-"))
    run(xfp, "convert", model, "-o", bundle, "--cache", os.path.join(folder, "cache"), *SETTINGS[setting])
    run(xfp, "unpack", bundle, "-o", copy, "--dtype", "f32")
    units = json.loads(run(xfp, "info", "--json", bundle))["units"]
    return [unit for unit in units if unit["class"] != "lm_head"], copy


def name_of(unit):
    if unit["mode"] in ("keep", "fp8"):
        return unit["mode"]
    group = f"/{unit['group_size']}" if unit["group_size"] else ""
    return ("" if unit["mode"] == "v2" else unit["mode"] + group + " ") + f"k{unit['k']}"


def row(setting, units, score):
    weights = sum(unit["weights"] for unit in units)
    bits = 8 * sum(unit["bytes"] for unit in units) / weights
    mean = sum(unit["cos_median"] * unit["weights"] for unit in units) / weights
    least = min(unit["cos_median"] for unit in units)
    chosen = collections.Counter(name_of(unit) for unit in units)
    chosen = ", ".join(f"{name} × {count}" for name, count in sorted(chosen.items()))
    return f"| {setting} | {bits:.3f} | {mean:.5f} | {least:.5f} | {score} | {chosen} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xfp", default="xfp", help="the xfp command")
    parser.add_argument("--only", choices=SETTINGS, action="append", help="this setting alone (repeatable)")
    parser.add_argument("model")
    parser.add_argument("tokens", nargs="?")
    arguments = parser.parse_args()
    judge = Judge(arguments.model, arguments.tokens)
    print(f"| setting | true bits | weight cosine | least | {judge.title} | units |")
    print("|---|---|---|---|---|---|")
    scores = {}  # of the same choices, the same score
    with tempfile.TemporaryDirectory() as folder:
        for setting in arguments.only or SETTINGS:
            units, copy = convert(arguments.xfp, arguments.model, folder, setting)
            choices = tuple(name_of(unit) for unit in units)
            if choices not in scores:
                scores[choices] = judge.score(copy)
            print(row(setting, units, scores[choices]), flush=True)
    print(f"| source | | 1 | 1 | {judge.source} | |")


if __name__ == "__main__":
    main()

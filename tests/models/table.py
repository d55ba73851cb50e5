#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/results.md: what fixed bits and what floors cost and keep of a real model, as Markdown.

    table.py [--xfp XFP] [--only SETTING] [--plot FILE.svg] MODEL [TOKENS.npy]

Settings are k = 3, 4, 5 in v2; k = 2, 3, 4 in v2a; k = 2 to 6 in v2c with groups of 32 and of 16, without outliers and
with those beyond 4 sigma; floors 0.98 to 0.999 in auto. Where GGML_LIBRARY names a libggml-base.so, the formats that
llama.cpp makes of the same matrices follow, by its own quantizers. An encoder (BERT) is judged by the mean cosine of
sentence embeddings, a Qwen3-MoE by its perplexity on TOKENS (default MODEL/eval-tokens.npy). lm_head is kept,
so that every figure is about these modes alone. Bits are true bits over the quantized classes; the weight cosine
is the mean of the units' medians by weights, and the least of them.
"""
import argparse
import collections
import fnmatch
import glob
import json
import os
import re
import subprocess
import tempfile

import numpy as np

from ggml import FORMATS, Ggml
from judge import Judge
from loss_plot import plot
from safetensors_io import Checkpoint

FLOOR = ["--min-cos-strict", "{}", "--min-cos-lazy", "{}"]


def options(floor, *more):
    return [part.format(floor) for part in FLOOR] + ["--lm-head", "keep", *more]


SETTINGS = {f"v2, k = {k}": options("0", "--mode", "v2", "--bits", str(k)) for k in (3, 4, 5)}
for k in (2, 3, 4):
    SETTINGS[f"v2a, k = {k}"] = options("0", "--mode", "v2a", "--bits", str(k))
for k in (2, 3, 4, 5, 6):
    for group in (32, 16):
        for sigma, name in (("none", "no outliers"), ("4", "4 sigma")):
            SETTINGS[f"v2c/{group}, k = {k}, {name}"] = options(
                "0", "--mode", "v2c", "--bits", str(k), "--group-size", str(group), "--outlier-sigma", sigma)
SETTINGS.update({f"auto, floor {floor}": options(floor) for floor in ("0.95", "0.98", "0.99", "0.995", "0.998", "0.999")})


def run(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def convert(xfp, model, folder, setting):
    """(units of the quantized classes, folder of the unpacked copy)."""
    bundle, copy = os.path.join(folder, "out.xfp"), os.path.join(folder, re.sub("[^a-z0-9]+", "-", setting))
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
    print(f"| {setting} | {bits:.3f} | {mean:.5f} | {least:.5f} | {score} | {chosen} |", flush=True)
    return bits


def tensors_of(source, unit):
    """Names of a unit's tensors; those of a stack have a number where the unit's has [*]."""
    return fnmatch.filter(source.names(), glob.escape(unit["name"]).replace("[*]", "*"))


def peer(ggml, name, source, units, copy):
    """Requantize the units' matrices in the unpacked copy `copy` by llama.cpp's format; returns rows for the table."""
    made = []
    for unit in units:
        cosines = []
        for tensor in tensors_of(source, unit):
            weights = source.read(tensor).astype(np.float32)
            decoded = ggml.decoded(name, weights)
            copy.overwrite(tensor, decoded)
            norms = np.linalg.norm(weights, axis=-1) * np.linalg.norm(decoded, axis=-1)
            cosines.append((weights * decoded).sum(-1, dtype=np.float64) / np.where(norms > 0, norms, 1))
        made.append({"weights": unit["weights"], "bytes": unit["weights"] * ggml.bits(name) / 8, "mode": "keep",
                     "cos_median": float(np.median(np.concatenate(cosines)))})
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xfp", default="xfp", help="the xfp command")
    parser.add_argument("--only", choices=SETTINGS, action="append", help="this setting alone (repeatable)")
    parser.add_argument("--plot", metavar="FILE", help="draw it, too")
    parser.add_argument("model")
    parser.add_argument("tokens", nargs="?")
    arguments = parser.parse_args()
    judge = Judge(arguments.model, arguments.tokens, arguments.xfp)
    print(f"| setting | true bits | weight cosine | least | {judge.title} | units |")
    print("|---|---|---|---|---|---|")
    points = []
    with tempfile.TemporaryDirectory() as folder:
        for setting in arguments.only or SETTINGS:
            units, copy = convert(arguments.xfp, arguments.model, folder, setting)
            score = judge.score(copy)
            bits = row(setting, units, score)
            if "no outliers" not in setting:  # one point per k is enough for a line
                points.append((setting.split(",")[0], setting, bits, judge.loss_of_score(score)))
        if os.environ.get("GGML_LIBRARY"):
            ggml = Ggml(os.environ["GGML_LIBRARY"])
            for name in FORMATS:
                made = peer(ggml, name, Checkpoint(arguments.model), units, Checkpoint(copy))
                score = judge.score(copy)
                points.append(("llama.cpp", name, row(f"llama.cpp {name}", made, score), judge.loss_of_score(score)))
    print(f"| source | | 1 | 1 | {judge.source} | |")
    if arguments.plot:
        what = "1 − cosine of sentence embeddings" if judge.encoder else "perplexity above the source's, as a share"
        with open(arguments.plot, "w", encoding="utf-8") as file:
            file.write(plot(f"{os.path.basename(os.path.abspath(arguments.model))}: {what}", points))


if __name__ == "__main__":
    main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The loss of calibrated conversions compared with data-free ones of the same bits, as Markdown.

    calibrated.py [--xfp XFP] [--bits 2,3,4] [--goals 5,6.5] [--text FILE] [--plot FILE.svg] MODEL [TOKENS.npy]

Projections in v2c, embedding and head kept. Loss is the KL divergence from MODEL on TOKENS (default
MODEL/eval-tokens.npy) by `xfp eval`, in nats per token; the ratio is that to the data-free bundle of the same bits.
--goals: the same for values of --target-bpw, with tokens sampled from the model, and the errors of outputs that the
surveys predicted over those measured.
Calibrations: tokens sampled from the model, the default text with several numbers of tokens, --text FILE, random ids.

If GGML_LIBRARY names a libggml-base.so, llama.cpp's types follow, with an importance matrix (the mean squares of each
matrix's inputs) of the same tokens as the first calibration; XFP_TEST_TOOLS must then name build/tests.
"""
import argparse
import json
import os
import shutil
import sqlite3
import sys
import tempfile

import numpy as np

from ggml import Ggml
from loss_plot import plot
from safetensors_io import Checkpoint
from table import run, tensors_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from inputs_file import from_bf16, stamped  # noqa: E402

TYPES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "Q2_K", "IQ3_XXS", "IQ3_S", "Q3_K", "IQ4_XS", "Q4_K")


class Setting:
    """Conversions of one model to its projections' fixed bits."""

    def __init__(self, arguments, folder):
        self.xfp, self.model, self.folder = arguments.xfp, arguments.model, folder
        self.tokens = arguments.tokens or os.path.join(arguments.model, "eval-tokens.npy")

    def loss(self, model):
        """KL divergence in nats per token."""
        text = run(self.xfp, "eval", "--fast", "--json", "--source", self.model, "--tokens", self.tokens, "--state",
                   os.path.join(self.folder, "state"), model)
        return json.loads(text)["kl"]["mean"]

    def convert(self, bits, options):
        """(units, bits per weight) of a bundle, OUT.xfp in the folder."""
        out = os.path.join(self.folder, "out.xfp")
        run(self.xfp, "convert", "-q", self.model, "-o", out, "--cache", os.path.join(self.folder, "cache"), "--mode",
            "v2c", "--bits", str(bits), "--lm-head", "keep", "--min-cos-strict", "0", "--min-cos-lazy", "0", *options)
        units = [unit for unit in json.loads(run(self.xfp, "info", "--json", out))["units"] if unit["mode"] == "v2c"]
        return units, 8 * sum(unit["bytes"] for unit in units) / sum(unit["weights"] for unit in units)

    def predictions(self):
        """Predicted over measured errors of outputs of OUT.xfp's units, which were assigned by a goal."""
        rows = sqlite3.connect(os.path.join(self.folder, "cache", "manifest.sqlite")).execute(
            "SELECT c.output_error, a.error, s.growth, s.feedback FROM latest_units AS u JOIN choices AS c "
            "ON c.key = u.choice_key JOIN artifacts AS own ON own.kind = 'survey' AND own.unit = u.unit "
            "JOIN candidates AS a ON a.fit_key = own.key AND a.mode = c.mode AND a.k = c.k AND "
            "a.\"group\" = c.\"group\" AND a.sigma_milli = c.sigma_milli JOIN inputs AS i ON i.name = 'survey' "
            "AND i.input = own.key JOIN scales AS s ON s.key = i.key WHERE u.output = ?",
            [os.path.join(os.path.realpath(self.folder), "out.xfp")])
        return sorted(error / (1 - (growth - 1) * error) * scale / measured for measured, error, growth, scale in rows)

    def goal(self, bits):
        """Print rows for a goal."""
        plain = None
        for name, options in ("none", []), ("sampled from the model", ["--calibrate", "--calibrate-self"]):
            _, true_bits = self.convert("2,3,4,5,6", ["--format", "embedding=keep", "--target-bpw", bits, *options])
            loss = self.loss(os.path.join(self.folder, "out.xfp"))
            print(f"| --target-bpw {bits} | {name} | {true_bits:.3f} | {loss:.4f} | "
                  f"{f'{loss / plain:.3f}' if plain else ''} |", flush=True)
            plain = loss
        ratios = self.predictions()
        print(f"| | predicted / measured, {len(ratios)} units | | {ratios[0]:.2f} to {ratios[-1]:.2f} | |", flush=True)

    def row(self, bits, name, options, plain=None):
        """Print a row; returns (bits per weight, loss)."""
        units, true_bits = self.convert(bits, options)
        loss = self.loss(os.path.join(self.folder, "out.xfp"))
        ratio = f"{loss / plain:.3f}" if plain else ""
        print(f"| v2c k = {bits} | {name} | {true_bits:.3f} | {loss:.4f} | {ratio} |", flush=True)
        return true_bits, loss


def calibrations(arguments, folder):
    """[(name, options)]."""
    with open(os.path.join(arguments.model, "config.json"), encoding="utf-8") as file:
        vocabulary = json.load(file)["vocab_size"]
    ids = os.path.join(folder, "random.npy")
    np.save(ids, np.random.default_rng(1).integers(0, vocabulary, (64, 512)).astype(np.uint32))
    found = [("sampled from the model", ["--calibrate", "--calibrate-self"]), ("default text", ["--calibrate"])]
    found += [(f"default text, {tokens:,} tokens", ["--calibrate", "--calibrate-tokens", str(tokens)])
              for tokens in (4096, 16384, 40960)]
    if arguments.text:
        found.append((os.path.basename(arguments.text), ["--calibrate", "--calibrate-text", arguments.text]))
    return found + [("random ids", ["--calibrate", "--calibrate-ids", ids])]


def mean_squares(setting):
    """Importance matrices of the calibration of OUT.xfp in the folder, by tensor."""
    work, cache = (os.path.join(setting.folder, name) for name in ("out.xfp.work", "cache"))
    with open(os.path.join(setting.model, "config.json"), encoding="utf-8") as file:
        layers = json.load(file)["num_hidden_layers"] + 1
    squares = {}
    for layer in range(layers):  # conversions remove inputs
        run(os.path.join(os.path.dirname(shutil.which(setting.xfp)), "xfp-calibrate"), "--work", work, "--cache", cache,
            f"l{layer:06}")
        inputs = stamped(work, layer, cache)
        for tensor in inputs.tensors:
            _, values = inputs.rows_of(tensor)
            squares[tensor] = np.square(from_bf16(values), dtype=np.float64).mean(axis=0)
    return squares


def peers(setting, units, squares):
    """Rows of llama.cpp's types, whose importance matrices are `squares` by tensor."""
    ggml = Ggml(os.environ["GGML_LIBRARY"], TYPES)
    copy, source, points = os.path.join(setting.folder, "copy"), Checkpoint(setting.model), []
    run(setting.xfp, "unpack", os.path.join(setting.folder, "out.xfp"), "-o", copy, "--dtype", "f32")
    target = Checkpoint(copy)
    for name in TYPES:
        for unit in units:
            for tensor in tensors_of(source, unit):
                weights = source.read(tensor).astype(np.float32)
                target.overwrite(tensor, ggml.decoded(name, weights, squares[tensor]))
        points.append(("llama.cpp", name, ggml.bits(name), setting.loss(copy)))
        print(f"| {name} | importance matrix | {points[-1][2]:.3f} | {points[-1][3]:.4f} | |", flush=True)
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xfp", default="xfp", help="the xfp command")
    parser.add_argument("--bits", default="2,3,4", help="default: %(default)s")
    parser.add_argument("--goals", metavar="X,...", help="values of --target-bpw")
    parser.add_argument("--text", metavar="FILE", help="calibrate with this text, too")
    parser.add_argument("--plot", metavar="FILE", help="draw it, too")
    parser.add_argument("model")
    parser.add_argument("tokens", nargs="?")
    arguments = parser.parse_args()
    points = []
    print("| format | calibration | bits | KL, nats | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(arguments, folder)
        for bits in (int(text) for text in arguments.bits.split(",") if text):
            plain = setting.row(bits, "none", [])
            points.append(("v2c, data-free", "", *plain))
            for name, options in calibrations(arguments, folder):
                point = setting.row(bits, name, options, plain[1])
                if "tokens" not in name:
                    points.append((f"v2c, {name}", "", *point))
        for bits in arguments.goals.split(",") if arguments.goals else []:
            setting.goal(bits)
        if os.environ.get("GGML_LIBRARY"):
            units, _ = setting.convert(2, calibrations(arguments, folder)[0][1])
            points += peers(setting, units, mean_squares(setting))
    if arguments.plot:
        with open(arguments.plot, "w", encoding="utf-8") as file:
            file.write(plot(f"{os.path.basename(os.path.abspath(arguments.model))}: KL divergence, nats per token",
                            points))


if __name__ == "__main__":
    main()

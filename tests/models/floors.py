#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""At what floors a model is ruined: the effect of floors in each mode, by xfp eval, as Markdown.

    floors.py [--xfp XFP] [--modes M,...] [--floors F,...] [--results FILE.json] [--plot FILE.svg] MODEL [TOKENS.npy]

Convert MODEL with the same floor for every class, lm_head kept, in each mode, and compare the bundle with MODEL on
TOKENS (default MODEL/eval-tokens.npy). Floors that give the same bundle are one row. --results saves evaluations, and
reuses them the next time.
"""
import argparse
import json
import os
import tempfile

from loss_plot import plot
from table import run

MODES, FLOORS = "v2,v2a,v2c,auto", "0.9,0.95,0.98,0.99,0.995,0.998,0.999"


def bits_of(info):
    units = [unit for unit in info["units"] if unit["class"] != "lm_head"]
    return 8 * sum(unit["bytes"] for unit in units) / sum(unit["weights"] for unit in units)


def evaluated(arguments, tokens, mode, floor, folder, known):
    """{mode, floor, bits, eval: the output of xfp eval}"""
    bundle = os.path.join(folder, f"{mode}-{floor}.xfp")
    run(arguments.xfp, "convert", arguments.model, "-o", bundle, "--mode", mode, "--min-cos-strict", floor,
        "--min-cos-lazy", floor, "--lm-head", "keep", "--on-miss", "best", "--cache", os.path.join(folder, "cache"))
    bits = bits_of(json.loads(run(arguments.xfp, "info", "--json", bundle)))
    same = [entry for entry in known if entry["mode"] == mode and abs(entry["bits"] - bits) < 1e-9]
    said = same[0]["eval"] if same else json.loads(
        run(arguments.xfp, "eval", "--json", "--tokens", tokens, "--source", arguments.model, bundle))
    if not same:
        del said["model"], said["source"]["model"]  # paths of this machine
    os.remove(bundle)
    return {"mode": mode, "floor": floor, "bits": bits, "eval": said}


def rows(entries):
    """One per bundle, with all floors that lead to it."""
    for entry in entries:
        if not any(e["mode"] == entry["mode"] and e["bits"] == entry["bits"] for e in entries[:entries.index(entry)]):
            floors = [e["floor"] for e in entries if e["mode"] == entry["mode"] and e["bits"] == entry["bits"]]
            yield entry, floors[0] if len(floors) == 1 else f"{floors[0]} to {floors[-1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xfp", default="xfp", help="the xfp command")
    parser.add_argument("--modes", default=MODES)
    parser.add_argument("--floors", default=FLOORS)
    parser.add_argument("--results", metavar="FILE")
    parser.add_argument("--plot", metavar="FILE", help="draw it, too")
    parser.add_argument("model")
    parser.add_argument("tokens", nargs="?")
    arguments = parser.parse_args()
    tokens = arguments.tokens or os.path.join(arguments.model, "eval-tokens.npy")
    entries = []
    if arguments.results and os.path.exists(arguments.results):
        with open(arguments.results, encoding="utf-8") as file:
            entries = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        for mode in arguments.modes.split(","):
            for floor in arguments.floors.split(","):
                if not any(e["mode"] == mode and e["floor"] == floor for e in entries):
                    entries.append(evaluated(arguments, tokens, mode, floor, folder, entries))
                    if arguments.results:
                        with open(arguments.results, "w", encoding="utf-8") as file:
                            json.dump(entries, file, indent=1)
    print("| mode | floor | true bits | KL: mean | p99 | largest | top-1 agreement | perplexity |")
    print("|---|---|---|---|---|---|---|---|")
    points = []
    for entry, floors in rows(entries):
        said = entry["eval"]
        print(f"| {entry['mode']} | {floors} | {entry['bits']:.3f} | {said['kl']['mean']:.4f} | "
              f"{said['kl']['p99']:.3f} | {said['kl']['largest']:.2f} | {100 * said['top1_agreement']:.1f} % | "
              f"{said['perplexity']:.3f} |")
        points.append((entry["mode"], entry["mode"], entry["bits"], said["kl"]["mean"]))
    print(f"| source | | | 0 | 0 | 0 | 100 % | {entries[0]['eval']['source']['perplexity']:.3f} |")
    if arguments.plot:
        name = os.path.basename(os.path.abspath(arguments.model))
        with open(arguments.plot, "w", encoding="utf-8") as file:
            file.write(plot(f"{name}: KL divergence from the source, nats per token", points))


if __name__ == "__main__":
    main()

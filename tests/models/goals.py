#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The loss of a target size compared with a uniform floor of the same size, for a whole real model, as Markdown.

    goals.py [--xfp XFP] [--floors X,Y,...] MODEL [TOKENS.npy] [-- OPTION ...]

Convert MODEL with each floor for all classes, including embeddings and head, then with the bundle's size as the goal
(--target-size) and the OPTIONs, such as --weight CLASS=W. Sizes and losses are those of presets.py.
"""
import argparse
import os
import sys
import tempfile

from judge import Judge
from presets import all_elements, cells, ours

CLASSES = ("attention", "dense_mlp", "routed_expert", "embedding", "lm_head")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xfp", default="xfp", help="the xfp command")
    parser.add_argument("--floors", default="0.96,0.99,0.9965", help="default: %(default)s, of 2.6, 3.3 and 4.3 bits")
    parser.add_argument("model")
    parser.add_argument("tokens", nargs="?")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments, options = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1:]
    judge = Judge(arguments.model, arguments.tokens, arguments.xfp)
    print(f"| floor of all classes | file | bits | {judge.loss_title} | goal of that size: file | bits | loss |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for floor in arguments.floors.split(","):
            row, size = f"| {floor} |", None
            uniform = ["--floor", ",".join(f"{name}={floor}" for name in CLASSES)]
            for setting in (uniform, None):
                info, data, copy = ours(arguments.xfp, arguments.model, folder,
                                        setting or ["--target-size", str(size), *options])
                size = os.path.getsize(os.path.join(folder, "out.xfp"))
                row += f" {cells(size, data, all_elements(info), judge.loss(copy))} |"
            print(row, flush=True)


if __name__ == "__main__":
    main()

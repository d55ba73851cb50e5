#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Results of presets for a whole real model, beside llama.cpp's files of it, as Markdown.

    presets.py [--xfp XFP] [--gguf FOLDER] [--setting 'NAME[=TYPE]: OPTION ...'] MODEL [TOKENS.npy]

Convert MODEL with each profile of PRESETS, or with the given settings instead (repeatable), unpack and evaluate the
copy. `bits` are those of the whole model, including embeddings and head: bytes of all quantized and kept tensors * 8 /
their elements. `file` also includes the tokenizer, index and padding, in MB. The loss is 1 - the mean cosine of
sentence embeddings (BERT), or the Kullback-Leibler divergence from MODEL in nats per token of TOKENS, by default
MODEL/eval-tokens.npy (Qwen3-MoE).

If GGML_LIBRARY names a libggml-base.so, each setting has its counterparts:

* llama.cpp's own file, FOLDER/*-TYPE.gguf, made by llama-quantize from the whole model;
* one type: every matrix that the bundle quantizes in TYPE's own format only, with rows concatenated if their columns
  are not a multiple of a block (llama-quantize takes another, larger type for such a matrix).
"""
import argparse
import glob
import json
import os
import shlex
import shutil
import tempfile

import numpy as np

from ggml import FORMATS, Ggml
from gguf_io import Gguf
from judge import Judge
from safetensors_io import Checkpoint, write_copy
from table import run, tensors_of

# Profiles, and the comparable type of llama.cpp.
PRESETS = {"near-lossless": "Q6_K", "careful": "Q5_K_M", "balanced": "Q4_K_M", "small": "Q3_K_M", "smallest": "Q2_K"}


def settings_of(texts):
    """[(name, type or None, options)]"""
    if not texts:
        return [(name, peer, ["--profile", name]) for name, peer in PRESETS.items()]
    result = []
    for text in texts:
        name, _, options = text.partition(":")
        name, _, peer = name.strip().partition("=")
        result.append((name, peer or None, shlex.split(options)))
    return result


def elements(shape):
    return int(np.prod(shape, dtype=np.int64))


def kept_bytes(source, info):
    """Bytes of all unchanged tensors, including units at source precision."""
    return sum(elements(tensor["shape"]) * source.element_bytes(tensor["name"])
               for tensor in info["tensors"] if tensor["fate"] == "kept")


def cells(size, data, count, loss):
    return f"{size / 1e6:.2f} | {8 * data / count:.3f} | {loss:.5f}"


def ours(xfp, model, folder, options):
    """(output of `xfp info` for the bundle, bytes of its tensors, folder of the unpacked copy)"""
    bundle, copy = os.path.join(folder, "out.xfp"), os.path.join(folder, "copy")
    shutil.rmtree(copy, ignore_errors=True)
    run(xfp, "convert", model, "-o", bundle, "--cache", os.path.join(folder, "cache"), *options)
    run(xfp, "unpack", bundle, "-o", copy, "--dtype", "f32")
    info = json.loads(run(xfp, "info", "--json", bundle))
    packed = sum(unit["bytes"] for unit in info["units"] if unit["mode"] != "keep")
    return info, packed + kept_bytes(Checkpoint(model), info), copy


class Peers:
    """llama.cpp's files of the same model, each evaluated once."""

    def __init__(self, model, judge, folder, scratch):
        self.ggml = Ggml(os.environ["GGML_LIBRARY"])
        self.source, self.judge, self.folder = Checkpoint(model), judge, folder
        self.copy = os.path.join(scratch, "peer")
        self.known = {}

    def loss_of(self, tensors):
        write_copy(self.source.folder, self.copy, tensors)
        return self.judge.loss(self.copy)

    def file(self, peer):
        found = glob.glob(os.path.join(glob.escape(self.folder), f"*-{peer}.gguf")) if self.folder else []
        if len(found) != 1:
            return f"{len(found)} files" if self.folder else "", "", ""
        if peer not in self.known:
            gguf = Gguf(found[0])
            tensors = gguf.checkpoint(self.source.config()["model_type"], self.ggml)
            self.known[peer] = cells(*gguf.size(self.ggml), self.loss_of(tensors.get))
        return self.known[peer].split(" | ")

    def one_type(self, peer, info):
        """The bits of the same matrices in one format and of the kept tensors, and the loss."""
        kind = peer if peer in FORMATS else peer.rsplit("_", 1)[0]
        matrices = {name for unit in info["units"] if unit["mode"] != "keep"
                    for name in tensors_of(self.source, unit)}
        count = sum(elements(self.source.entries[name][2]["shape"]) for name in matrices)
        loss = self.loss_of(lambda name: self.ggml.decoded(kind, self.source.read(name).astype(np.float32))
                            if name in matrices else None)
        bits = self.ggml.bits(kind) * count + 8 * kept_bytes(self.source, info)
        return f"{bits / all_elements(info):.3f}", f"{loss:.5f}"


def all_elements(info):
    return sum(elements(tensor["shape"]) for tensor in info["tensors"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xfp", default="xfp", help="the xfp command")
    parser.add_argument("--gguf", metavar="FOLDER", help="where llama.cpp's files of MODEL are")
    parser.add_argument("--setting", metavar="SETTING", action="append", help="'NAME[=TYPE]: OPTION ...' (repeatable)")
    parser.add_argument("model")
    parser.add_argument("tokens", nargs="?")
    arguments = parser.parse_args()
    settings = settings_of(arguments.setting)
    judge = Judge(arguments.model, arguments.tokens, arguments.xfp)
    library = os.environ.get("GGML_LIBRARY")
    if arguments.gguf and not library:
        parser.error("--gguf needs GGML_LIBRARY, which decodes the files")
    print(f"| preset | file | bits | {judge.loss_title} |" + " llama.cpp | file | bits | loss | one type: bits | loss |"
          * bool(library))
    print("|---|---|---|---|" + "---|---|---|---|---|---|" * bool(library))
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(arguments.model, judge, arguments.gguf, folder) if library else None
        for name, peer, options in settings:
            info, data, copy = ours(arguments.xfp, arguments.model, folder, options)
            row = f"| {name} | {cells(info['bytes'], data, all_elements(info), judge.loss(copy))} |"
            if peers and peer:
                row += f" {peer} | {' | '.join((*peers.file(peer), *peers.one_type(peer, info)))} |"
            elif peers:
                row += " | | | | | |"
            print(row, flush=True)


if __name__ == "__main__":
    main()

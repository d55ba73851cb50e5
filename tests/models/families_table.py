#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/models.md: what works for each model family, found by running it on tiny models.

    families_table.py [--check DOCUMENT | --update DOCUMENT] [FAMILY...]

For each row of families.json: tiny models of tests/families.py are converted, with calibration if they can be computed,
and evaluated before and after; bundles generate text; published forms and GGUF files must give the loss of their 16-bit
form. `xfp` is taken from PATH. Prints the table; --check fails if the document has another one, --update replaces it.
The last column is from results/families.json, which check_families.py writes. Takes half a minute of processor time.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import families

BEGIN = "<!-- written by tests/models/families_table.py -->\n"
END = "<!-- end of the table -->\n"
HEAD = ("| model | family | convert | eval | generate | calibrate | tokenizer | GGUF | perplexity next to transformers |\n"
        "|---|---|---|---|---|---|---|---|---|\n")
FORMS = "| model | published form | packed tensors | as published |\n|---|---|---|---|\n"
VOCABULARY, LENGTH = 260, 30  # of make-tokenizer.py; shorter than any context


def add_unlisted():
    """Models that are computed, and converted without rules of their own."""
    def add(name, sizes, table, **config):
        families.model(name, "general", sizes,
                       {"model_type": name, **families.PLAIN, "tie_word_embeddings": False, **config},
                       families.at("model", families.ATTENTION, table, families.HEAD))

    dense = families.MLP + families.ENDS
    gated = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 96,
             "shared_expert_intermediate_size": 96}
    biases = "".join(f"    attention  -  P.layers.{{0-1}}.self_attn.{name}_proj.bias  {size}\n"
                     for name, size in (("q", "Q"), ("k", "KV"), ("v", "KV")))
    norms = families.QK_NORMS.replace("q_norm.weight  16", "q_norm.weight  Q")
    norms = norms.replace("k_norm.weight  16", "k_norm.weight  KV")
    add("qwen2_moe", families.DENSE,
        families.SPLIT_EXPERTS + families.SHARED + families.ROUTER + biases + families.ENDS, **gated)
    add("gemma1", families.DENSE, dense, model_type="gemma")
    add("granite", families.DENSE, dense)
    add("smollm3", families.DENSE, dense)
    add("seed_oss", families.DENSE, dense, attention_bias=False)
    add("olmo2", families.DENSE, norms + dense.replace("input_layernorm", "post_feedforward_layernorm"))


def with_keys(config):
    if "text_config" in config:
        return {**config, "text_config": with_keys(config["text_config"])}
    return {"max_position_embeddings": 64, **config, "vocab_size": VOCABULARY}


def add_word_pieces(folder):
    """The tokenizer of an encoder, and the mean as its pooling."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [mark + chr(letter) for mark in ("", "##") for letter in range(ord("a"), ord("z") + 1)]
    modules = [{"idx": i, "path": path, "type": f"sentence_transformers.models.{kind}"}
               for i, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling")))]
    os.mkdir(os.path.join(folder, "1_Pooling"))
    for name, text in (("vocab.txt", "\n".join(pieces) + "\n"), ("modules.json", json.dumps(modules)),
                       ("1_Pooling/config.json", '{"pooling_mode_mean_tokens": true}'),
                       ("tokenizer_config.json", '{"tokenizer_class": "BertTokenizer", "do_lower_case": true}')):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def make(name, folder, plain=None):
    """The tiny model, with a tokenizer."""
    family, sizes, config, table, publish = families.MODELS[name]
    families.model(name, family, {**sizes, "V": VOCABULARY}, with_keys(config), table, publish)
    families.make(name, folder, plain)
    if family == "bert":
        add_word_pieces(folder)
    else:
        run(sys.executable, os.path.join(HERE, "..", "make-tokenizer.py"), folder)
    return family


def run(*command, refusal=None):
    """The output; None if the command fails because of something that is not supported."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode in (2, 3) and refusal and re.search(refusal, done.stderr):
        return None
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


UNSUPPORTED = "not supported|is an encoder"


def loss(model, folder):
    said = run("xfp", "eval", "--json", "--tokens", os.path.join(folder, "tokens.npy"), model, refusal=UNSUPPORTED)
    return said and json.loads(said)["loss"]


def is_near(model, bundle, folder):
    """Whether the bundle is evaluated, and near its model: by its loss, or by the embeddings of an encoder."""
    own = loss(model, folder)
    if own is not None:
        return abs(loss(bundle, folder) / own - 1) < .1
    text = os.path.join(folder, "text")
    with open(text, "w", encoding="utf-8") as file:
        file.write("the quick brown fox\njumps over the lazy dog\n")
    said = run("xfp", "eval", "--json", "--source", model, "--text", text, bundle, refusal=UNSUPPORTED)
    return said is not None and json.loads(said)["one_minus_cosine"]["mean"] < .05


class Row:
    """What works for all tiny models of a row."""

    def __init__(self, row):
        self.row, self.works, self.families = row, {}, []

    def note(self, what, works):
        self.works[what] = self.works.get(what, True) and works

    def use(self, name, folder):
        model, bundle = os.path.join(folder, name), os.path.join(folder, name + ".xfp")
        self.families.append(make(name, model))
        ids = ["--calibrate-ids", os.path.join(folder, "tokens.npy")]
        calibrated = run("xfp", "convert", model, "-o", bundle, "-q", *ids,
                         refusal=UNSUPPORTED) is not None
        self.note("calibrate", calibrated)
        if not calibrated:
            run("xfp", "convert", model, "-o", bundle, "-q")
        self.note("convert", True)
        self.note("eval", is_near(model, bundle, folder))
        said = run("xfp", "generate", "--prompt", "the", "-n", "4", "--json", bundle, refusal=UNSUPPORTED)
        self.note("generate", said is not None and len(json.loads(said)["texts"][0]["tokens"]) > 0)

    def gguf(self, architecture, folder):
        plain, gguf = (os.path.join(folder, architecture + end) for end in ("-plain", ".gguf"))
        run(sys.executable, os.path.join(HERE, "..", "make-gguf.py"), architecture, gguf, plain)
        same = loss(plain, folder) == loss(gguf, folder) is not None
        if not same:
            sys.exit(f"{architecture}: the loss of the GGUF file is not that of the Hugging Face form")
        self.note("GGUF", True)

    def published(self, name, folder):
        packed, plain = (os.path.join(folder, name + end) for end in ("-packed", "-plain"))
        self.families.append(make(name, packed, plain))
        of_packed = loss(packed, folder)
        if of_packed is not None and of_packed != loss(plain, folder):
            sys.exit(f"{name}: the loss of the packed form is not that of the 16-bit form")
        return of_packed is not None


def mark(works):
    return "yes" if works else "–"


def off(row, results):
    """The largest difference of the model types from transformers."""
    known = [results["off"][kind] for kind in row.get("types", [])]
    return f"{max(known):.0e}" if known else ""


def tables(wanted):
    with open(os.path.join(HERE, "families.json"), encoding="utf-8") as file:
        rows = json.load(file)
    with open(os.path.join(HERE, "results", "families.json"), encoding="utf-8") as file:
        results = json.load(file)
    with open(os.path.join(HERE, "..", "tokenizer_families.json"), encoding="utf-8") as file:
        tokenizers = {tokenizer["name"] for tokenizer in json.load(file)}
    main, forms = [], []
    for row in rows:
        result, published = Row(row), row.get("published", [])
        if wanted and not set(wanted) & {*row["tiny"], *(name for name, _, _ in published)}:
            continue
        assert set(row["tokenizers"]) <= tokenizers, row
        with tempfile.TemporaryDirectory() as folder:
            ids = (np.arange(2 * LENGTH) ** 2 * 7 % 96).reshape(2, -1)
            np.save(os.path.join(folder, "tokens.npy"), ids.astype("u4"))
            for name in row["tiny"] or [published[0][0]]:
                result.use(name, folder)
            for architecture in row.get("gguf", []):
                result.gguf(architecture, folder)
            for name, form, packed in published:
                works = mark(result.published(name, folder))
                forms.append(f"| {row['models']} | {form} | {packed} | {works} |\n")
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(result.families))
        columns = [mark(result.works[what]) for what in ("convert", "eval", "generate", "calibrate")]
        columns += [", ".join(row["tokenizers"]), mark(result.works.get("GGUF")), off(row, results)]
        main.append(f"| {row['models']} | {names} | {' | '.join(columns)} |\n")
    versions = (f"\nThe last column: transformers {results['transformers']}, torch {results['torch']}, f64, "
                f"eager attention, {results['date']}.\n\n")
    return HEAD + "".join(main) + versions + FORMS + "".join(forms)


def main():
    add_unlisted()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check")
    parser.add_argument("--update")
    parser.add_argument("family", nargs="*")
    arguments = parser.parse_args()
    text = tables(arguments.family)
    document = arguments.check or arguments.update
    if not document:
        print(text, end="")
        return
    with open(document, encoding="utf-8") as file:
        before, _, rest = file.read().partition(BEGIN)
    has, _, after = rest.partition(END)
    if arguments.update:
        with open(document, "w", encoding="utf-8") as file:
            file.write(before + BEGIN + text + END + after)
    elif has != text:
        print(text, end="")
        sys.exit(f"{document}: has another table; tests/models/families_table.py --update {document}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A BERT encoder in float32 numpy, with the pooling and normalisation of sentence-transformers.

    bert.py MODEL TEXTS OUT.npy

writes the embeddings of texts, one a line.
"""
import json
import math
import os
import sys

import numpy as np

from safetensors_io import Checkpoint
from wordpiece import WordPiece

# erf at float32 accuracy: numpy lacks it, and the tanh form of GELU is a different function.
ERF_STEP = 1 / 2048
ERF_TABLE = np.array([math.erf(i * ERF_STEP) for i in range(4 * 2048 + 2)])


def erf(x):
    place = np.minimum(np.abs(x), np.float32(4)) * np.float32(1 / ERF_STEP)
    cell = place.astype(np.int32)
    low = ERF_TABLE[cell]
    return np.copysign(low + (ERF_TABLE[cell + 1] - low) * (place - cell), x).astype(np.float32)


def gelu(x):
    return x * np.float32(0.5) * (1 + erf(x * np.float32(math.sqrt(0.5))))


def gelu_tanh(x):
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return x * np.float32(0.5) * (1 + np.tanh(inner))


ACTIVATIONS = {"gelu": gelu, "gelu_new": gelu_tanh, "gelu_pytorch_tanh": gelu_tanh}


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Bert:
    def __init__(self, folder):
        checkpoint = Checkpoint(folder)
        self.config = checkpoint.config()
        self.inputs = {}  # the last one of each matrix
        self.activation = ACTIVATIONS.get(self.config["hidden_act"])
        if not self.activation:
            raise SystemExit(f"{folder}: hidden_act {self.config['hidden_act']!r} is not supported here")
        prefix = "bert." if "bert.embeddings.word_embeddings.weight" in checkpoint else ""
        self.weights = {name[len(prefix):]: checkpoint.read(name).astype(np.float32)
                        for name in checkpoint.names() if not name.endswith("position_ids")}

    def linear(self, x, name):
        self.inputs[name] = x
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.config["layer_norm_eps"]))
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def attention(self, x, name):
        batch, length, width = x.shape
        heads = self.config["num_attention_heads"]
        q, k, v = (self.linear(x, f"{name}.self.{part}").reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)
                   for part in ("query", "key", "value"))
        weight = softmax(q @ k.transpose(0, 1, 3, 2) / np.float32(math.sqrt(width // heads)))
        mixed = (weight @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        return self.norm(self.linear(mixed, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

    def encode(self, ids):
        """Token ids [batch, length] of equal length, so that no padding or mask is needed -> [batch, length, width]."""
        x = (self.weights["embeddings.word_embeddings.weight"][ids]
             + self.weights["embeddings.position_embeddings.weight"][:ids.shape[1]]
             + self.weights["embeddings.token_type_embeddings.weight"][0])
        x = self.norm(x, "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}"
            x = self.attention(x, f"{name}.attention")
            inner = self.activation(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(self.linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
        return x


def read_json(folder, name, otherwise):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return otherwise
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_pooling(folder):
    """The pooling function that modules.json names, of activations [batch, length, width]; without one, the mean."""
    modules = read_json(folder, "modules.json", [{"type": "Pooling", "path": ""}])
    path, = (module["path"] for module in modules if module["type"].endswith("Pooling"))
    config = read_json(folder, os.path.join(path, "config.json"), {}) if path else {}
    if config.get("pooling_mode") == "cls" or config.get("pooling_mode_cls_token"):
        pool = lambda x: x[:, 0]
    elif config.get("pooling_mode") == "max" or config.get("pooling_mode_max_tokens"):
        pool = lambda x: x.max(1)
    else:
        pool = lambda x: x.mean(1)
    return pool, any(module["type"].endswith("Normalize") for module in modules)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def embed(folder, sentences):
    """Embeddings of sentences, [count, width]."""
    model = Bert(folder)
    longest = read_json(folder, "sentence_bert_config.json", {}).get("max_seq_length") or 512
    longest = min(longest, model.config["max_position_embeddings"])
    tokenizer = WordPiece(os.path.join(folder, "vocab.txt"))
    pool, normalised = read_pooling(folder)
    by_length = {}
    for number, sentence in enumerate(sentences):
        ids = tokenizer.encode(sentence, longest)
        by_length.setdefault(len(ids), []).append((number, ids))
    result = [None] * len(sentences)
    for group in by_length.values():
        pooled = pool(model.encode(np.array([ids for _, ids in group])))
        for (number, _), vector in zip(group, pooled):
            result[number] = unit(vector) if normalised else vector
    return np.array(result)


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as lines:
        np.save(sys.argv[3], embed(sys.argv[1], [line.rstrip("\n") for line in lines]))

# SPDX-License-Identifier: Apache-2.0
"""A BERT encoder in float32 numpy, with the mean pooling and normalisation of sentence-transformers."""
import json
import math
import os

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


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


class Bert:
    def __init__(self, folder):
        checkpoint = Checkpoint(folder)
        self.config = checkpoint.config()
        if self.config["hidden_act"] != "gelu":
            raise SystemExit(f"{folder}: hidden_act {self.config['hidden_act']!r} is not supported here")
        prefix = "bert." if "bert.embeddings.word_embeddings.weight" in checkpoint else ""
        self.weights = {name[len(prefix):]: checkpoint.read(name).astype(np.float32)
                        for name in checkpoint.names() if not name.endswith("position_ids")}

    def linear(self, x, name):
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
            inner = gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(self.linear(inner, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
        return x


def embed(folder, sentences):
    """Unit-length embeddings of sentences, [count, width]."""
    longest = 512
    settings = os.path.join(folder, "sentence_bert_config.json")
    if os.path.exists(settings):
        with open(settings, encoding="utf-8") as file:
            longest = json.load(file)["max_seq_length"]
    tokenizer = WordPiece(os.path.join(folder, "vocab.txt"))
    model = Bert(folder)
    by_length = {}
    for number, sentence in enumerate(sentences):
        ids = tokenizer.encode(sentence, longest)
        by_length.setdefault(len(ids), []).append((number, ids))
    result = [None] * len(sentences)
    for group in by_length.values():
        pooled = model.encode(np.array([ids for _, ids in group])).mean(1)
        for (number, _), vector in zip(group, pooled):
            result[number] = vector / np.linalg.norm(vector)
    return np.array(result)

# SPDX-License-Identifier: Apache-2.0
"""Qwen3-MoE in float32 numpy, enough to score text."""
import numpy as np

from bert import softmax
from safetensors_io import Checkpoint


def rms_norm(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(epsilon)) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def rotary(length, width, theta):
    """cos and sin [length, width / 2] of the angle of every position and pair."""
    angle = np.outer(np.arange(length), theta ** (-np.arange(0, width, 2) / width))
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def rotate(x, cos, sin):
    low, high = np.split(x, 2, -1)
    return np.concatenate((low * cos - high * sin, high * cos + low * sin), -1)


class Qwen3Moe:
    def __init__(self, folder):
        checkpoint = Checkpoint(folder)
        self.config = checkpoint.config()
        self.weights = {name: checkpoint.read(name).astype(np.float32) for name in checkpoint.names()}

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T

    def norm(self, x, name):
        return rms_norm(x, self.weights[name + ".weight"], self.config["rms_norm_eps"])

    def attention(self, x, name):
        batch, length, _ = x.shape
        heads, groups = self.config["num_attention_heads"], self.config["num_key_value_heads"]
        width = self.config["head_dim"]
        q, k, v = (self.linear(x, f"{name}.{part}_proj").reshape(batch, length, -1, width) for part in "qkv")
        cos, sin = rotary(length, width, self.config["rope_theta"])
        q = rotate(self.norm(q, f"{name}.q_norm").transpose(0, 2, 1, 3), cos, sin)
        k = rotate(self.norm(k, f"{name}.k_norm").transpose(0, 2, 1, 3), cos, sin)
        v = v.transpose(0, 2, 1, 3)
        k, v = (np.repeat(part, heads // groups, 1) for part in (k, v))
        score = q @ k.transpose(0, 1, 3, 2) * np.float32(width ** -0.5)
        score += np.triu(np.full((length, length), -np.inf, np.float32), 1)
        mixed = (softmax(score) @ v).transpose(0, 2, 1, 3).reshape(batch, length, -1)
        return self.linear(mixed, f"{name}.o_proj")

    def experts(self, x, name):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        share = softmax(self.linear(x, f"{name}.gate"))
        chosen = np.argsort(-share, -1, kind="stable")[:, :self.config["num_experts_per_tok"]]
        share = np.take_along_axis(share, chosen, -1)
        if self.config["norm_topk_prob"]:
            share /= share.sum(-1, keepdims=True)
        out = np.zeros_like(x)
        for expert in range(self.config["num_experts"]):
            token, place = np.nonzero(chosen == expert)
            path = f"{name}.experts.{expert}"
            inner = silu(self.linear(x[token], f"{path}.gate_proj")) * self.linear(x[token], f"{path}.up_proj")
            out[token] += self.linear(inner, f"{path}.down_proj") * share[token, place][:, None]
        return out.reshape(shape)

    def embed(self, ids):
        return self.weights["model.embed_tokens.weight"][ids]

    def layer(self, x, number):
        name = f"model.layers.{number}"
        x = x + self.attention(self.norm(x, f"{name}.input_layernorm"), f"{name}.self_attn")
        return x + self.experts(self.norm(x, f"{name}.post_attention_layernorm"), f"{name}.mlp")

    def logits(self, ids):
        """Token ids [batch, length] -> logits [batch, length, vocabulary]."""
        x = self.embed(ids)
        for number in range(self.config["num_hidden_layers"]):
            x = self.layer(x, number)
        x = self.norm(x, "model.norm")
        return self.linear(x, "model.embed_tokens" if self.config["tie_word_embeddings"] else "lm_head")


def log_probabilities(model, rows):
    """Log probabilities of all next tokens, at all but the last position."""
    logits = model.logits(rows)[:, :-1]
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def nats_per_token(folder, tokens, batch=16):
    """Mean negative log likelihood of tokens[:, 1:] given the preceding ones."""
    model = Qwen3Moe(folder)
    tokens = tokens.astype(np.int64)
    total = 0.0
    for first in range(0, len(tokens), batch):
        rows = tokens[first:first + batch]
        hit = np.take_along_axis(log_probabilities(model, rows), rows[:, 1:, None], -1)
        total -= float(hit.sum(dtype=np.float64))
    return total / tokens[:, 1:].size

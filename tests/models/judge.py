# SPDX-License-Identifier: Apache-2.0
"""The loss of a copy of a model at its output."""
import os

import numpy as np

from bert import embed, unit
from measure import read_sentences, xfp_eval
from safetensors_io import Checkpoint


class Judge:
    """An encoder (BERT) by its sentence embeddings, any other model by xfp eval."""

    def __init__(self, model, tokens=None, xfp="xfp"):
        self.model, self.xfp = model, xfp
        self.encoder = Checkpoint(model).config()["model_type"] == "bert"
        if self.encoder:
            self.sentences = read_sentences()
            self.original = unit(embed(model, self.sentences))
            self.title, self.source = "embedding cosine", "1"
            self.loss_title = "1 − embedding cosine"
        else:
            self.tokens = tokens or os.path.join(model, "eval-tokens.npy")
            self.title, self.source = "perplexity", self.score(model)
            self.loss_title = "KL, nats"

    def evaluated(self, *arguments):
        return xfp_eval(self.xfp, "--tokens", self.tokens, *arguments)

    def score(self, folder):
        """Mean cosine of the embeddings with the original's, or perplexity, formatted for a table."""
        if self.encoder:
            return f"{self.cosine(folder):.4f}"
        return f"{self.evaluated(folder)['perplexity']:.3f}"

    def cosine(self, folder):
        return (unit(embed(folder, self.sentences)) * self.original).sum(-1, dtype=np.float64).mean()

    def loss_of_score(self, score):
        """1 - cosine, or the relative increase of perplexity over the source's."""
        return 1 - float(score) if self.encoder else float(score) / float(self.source) - 1

    def loss(self, folder):
        """1 - cosine, or the Kullback-Leibler divergence from the original in nats per token: for the same text, its
        noise is a small part of perplexity's."""
        if self.encoder:
            return 1 - self.cosine(folder)
        return self.evaluated("--source", self.model, folder)["kl"]["mean"]

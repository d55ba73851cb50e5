# SPDX-License-Identifier: Apache-2.0
"""Llama 4: its experts are not called like those of other families, and its model reads where its embedding is."""
from __future__ import annotations

from typing import Any

import torch

MODEL, EXPERTS = "Llama4TextModel", "Llama4TextExperts"


def show_device(embedding: Any) -> None:
    """Let the model read embed_tokens.weight.device: the weight of its packed embedding is an empty tensor there."""
    embedding.__class__ = type("PackedEmbedding", (type(embedding),), {"weight": property(lambda self: self.like)})


def replace_forward(module: Any) -> None:
    """Make a module of experts multiply by its packed_experts."""
    module.__class__ = type(EXPERTS, (type(module),), {"forward": _forward})


def _forward(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    """Outputs [experts * tokens, hidden] of every token by every expert, in order of experts.

    The router has multiplied inputs by the experts' scores, so those of other experts are zero, and so are their
    outputs.
    """
    x, packed = hidden_states.reshape(-1, self.hidden_size), self.packed_experts
    rows = x.any(-1).nonzero().flatten()
    expert = (rows // (len(x) // self.num_experts))[:, None]
    gate, up = packed.multiply_first(x[rows], expert).chunk(2, dim=-1)
    y = packed.multiply_down(up * self.act_fn(gate), expert)
    return torch.zeros_like(x).index_copy(0, rows, y)

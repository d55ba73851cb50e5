# SPDX-License-Identifier: Apache-2.0
"""Modules of torch that multiply by a bundle's packed weights."""
from __future__ import annotations

from typing import Any, Sequence

import torch
from torch import nn

from . import ops
from .errors import UsageError
from .linear import Linear


class Packed(nn.Module):
    """A module whose weights are in the mapped file, and on the CUDA device to which it is moved.

    `name` is the parameter that they replace.
    """

    _is_hf_initialized = True  # tells transformers not to initialize it
    multiplies = True
    like: torch.Tensor

    def __init__(self, name: str, weights: Sequence[Linear]) -> None:
        super().__init__()
        self.name = name
        self.opened, self.uploaded = Opened(weights), Opened()
        self.register_buffer("like", torch.empty(0, device="cpu"), persistent=False)  # which .to(...) converts
        self.numbers = ops.register(*weights)  # no buffer, which would move to a device
        # while transformers loads, modules initialize the weights of their children if these lack a mark
        self.__dict__["weight"] = torch.empty(0, device="meta")
        self.__dict__["weight"]._is_hf_initialized = True

    def _apply(self, *arguments: Any) -> Any:
        super()._apply(*arguments)
        device = self.like.device
        if device.type not in ("cpu", "cuda", "meta"):
            raise UsageError(f"{self.name}: xfp multiplies on the CPU and on CUDA devices, not on {device}")
        self.uploaded = Opened(ops.upload(linear, device) for linear in self.opened
                               if self.multiplies and device.type == "cuda")
        return self

    def loaded(self) -> None:
        """Remove the placeholder weight; reading it raises AttributeError."""
        self.__dict__.pop("weight", None)

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            raise AttributeError(f"{self.name} is packed and cannot be read; only calls of its module work")
        return super().__getattr__(name)


class Opened(tuple[Any, ...]):
    """Open weights, which copies of a module share."""

    def __deepcopy__(self, _: Any) -> Opened:
        return self


class PackedLinear(Packed):
    """nn.Linear by one matrix, or by several whose outputs are next to each other."""

    def __init__(self, name: str, weights: Sequence[Linear], bias: nn.Parameter | None) -> None:
        super().__init__(name, weights)
        self.in_features = weights[0].shape[1]
        self.out_features = sum(linear.shape[0] for linear in weights)
        self.bias = bias

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = ops.linear(x, self.opened, self.numbers, self.out_features)
        return y if self.bias is None else y + self.bias


class PackedEmbedding(Packed):
    """nn.Embedding by one matrix, which is looked up on the host; multiplied by a scale if there is one."""

    multiplies = False

    def __init__(self, name: str, weight: Linear, module: nn.Embedding, dtype: torch.dtype) -> None:
        super().__init__(name, [weight])
        self.num_embeddings, self.embedding_dim = weight.shape
        self.padding_idx = module.padding_idx
        # Gemma's modules round the scale to the type of the weights; it is in a buffer, too, which is not loaded yet.
        self.rounded = hasattr(module, "scalar_embed_scale")
        self.scale: float | None = getattr(module, "scalar_embed_scale", getattr(module, "embed_scale", None))
        self.like = self.like.to(dtype)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = torch.ops.xfp.rows(ids, self.numbers, self.embedding_dim, self.like.dtype)
        if self.scale is None:
            return y
        return y * (torch.tensor(self.scale, dtype=y.dtype) if self.rounded else self.scale)


class PackedExperts(Packed):
    """The matrices of a module of experts: first gate and up, then down."""

    def __init__(self, name: str, first: Sequence[Linear], down: Linear) -> None:
        super().__init__(name, (*first, down))
        self.first, self.down = self.numbers[:-1], self.numbers[-1:]
        self.first_rows = sum(linear.shape[0] for linear in first)
        self.down_rows = down.shape[0]

    def multiply_first(self, x: torch.Tensor, expert: torch.Tensor) -> torch.Tensor:
        """Gate and up, next to each other, for each token and expert [t, k]: [t * k, rows]."""
        return ops.experts(x, expert, None, self.opened[:-1], self.first, self.first_rows)

    def multiply_down(self, x: torch.Tensor, expert: torch.Tensor, factor: torch.Tensor | None = None) -> torch.Tensor:
        """Outputs [t * k, rows]; with factors, their sums [t, rows]."""
        return ops.experts(x, expert, factor, self.opened[-1:], self.down, self.down_rows)


def forward_experts(self: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor,
                    top_k_weights: torch.Tensor) -> torch.Tensor:
    """The function of transformers' ALL_EXPERTS_FUNCTIONS: modules without packed weights run as they did before."""
    packed: PackedExperts | None = getattr(self, "packed_experts", None)
    if packed is None:
        plain: torch.Tensor = type(self).forward.__wrapped__(self, hidden_states, top_k_index, top_k_weights)
        return plain
    h = packed.multiply_first(hidden_states, top_k_index)
    expert = top_k_index.reshape(-1)
    if self.has_gate and not self.is_concatenated:
        h = h.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)
    if self.has_bias:
        h = h + (self.gate_up_proj_bias if self.has_gate else self.up_proj_bias)[expert]
    h = self._apply_gate(h) if self.has_gate else self.act_fn(h)
    if not self.has_bias and not self.has_post_expert_norm:
        return packed.multiply_down(h, top_k_index, top_k_weights)
    y = packed.multiply_down(h, top_k_index)
    if self.has_bias:
        y = y + self.down_proj_bias[expert]
    if self.has_post_expert_norm:
        y = self.post_expert_norm(y)
    y = (y * top_k_weights.reshape(-1, 1)).view(*top_k_index.shape, -1)
    return y.sum(1).to(hidden_states.dtype)


def register_experts() -> None:
    """Add the function above to those of transformers."""
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    if "xfp" not in ALL_EXPERTS_FUNCTIONS:
        ALL_EXPERTS_FUNCTIONS.register("xfp", forward_experts)

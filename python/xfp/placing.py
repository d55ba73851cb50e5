# SPDX-License-Identifier: Apache-2.0
"""Replaces parameters of a transformers model by a bundle's packed matrices.

Names of the checkpoint are renamed as transformers does. Weights of modules that cannot multiply by packed weights are
refused by name, never decoded.
"""
from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from . import llama4
from .bundle import Bundle
from .contents import Tensor, Unit
from .errors import UsageError
from .linear import Linear
from .packed import PackedEmbedding, PackedExperts, PackedLinear, register_experts

# Conversions of stacks that change neither gate, up and down nor their rows and columns
OF_STACKS = {"MergeModulelist", "Concatenate", "Transpose"}


@dataclass
class Piece:
    """A unit, or a kept matrix, that is a parameter or a part of it."""

    name: str  # in the bundle
    rows: int
    cols: int
    linear: Linear
    converter: Any  # of transformers, or None
    pattern: str | None
    unit: Unit | None
    first_row: int | None  # None: not rows of the parameter


class Names:
    """Names of a model's parameters by names of its checkpoint."""

    def __init__(self, model: Any) -> None:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

        mapping = get_model_conversion_mapping(model)
        self._renamings = [entry for entry in mapping if isinstance(entry, WeightRenaming)]
        self._converters = [entry for entry in mapping if isinstance(entry, WeightConverter)]
        self._by_pattern = {pattern: entry for entry in self._converters for pattern in entry.source_patterns}
        self._base = model.base_model_prefix
        self._rename = rename_source_key
        self.known = dict(model.state_dict())

    def find(self, name: str) -> tuple[str, Any, str | None]:
        """The parameter, and the converter and its pattern that make it."""
        key, pattern = self._rename(name, self._renamings, self._converters, self._base, self.known)
        if key not in self.known and name in self.known:
            key, pattern = self._rename(name, [], [], self._base, self.known)
        return key, None if pattern is None else self._by_pattern[pattern], pattern


def _matches(patterns: Any, key: str) -> bool:
    return any(re.search(pattern, key) for pattern in patterns or ())


def _explain(module: Any, name: str, leaves: tuple[str, ...]) -> None:
    """Name the reason if packed weights of a module are read, as experts implementations other than xfp's do."""
    kind = type(module)

    def __getattr__(self: Any, leaf: str) -> Any:
        if leaf in leaves:
            raise AttributeError(f"{name}.{leaf} is packed and cannot be read; keep the experts implementation of xfp: "
                                 "model.set_experts_implementation('xfp')")
        return kind.__getattr__(self, leaf)

    module.__class__ = type(kind.__name__, (kind,), {"__getattr__": __getattr__})


class Placer:
    """Replaces the modules of one model."""

    def __init__(self, model: Any, bundle: Bundle, path: str, dtype: torch.dtype) -> None:
        self.model, self.bundle, self.path, self.dtype = model, bundle, path, dtype
        self.names = Names(model)
        self.tied: dict[str, str] = dict(model.all_tied_weights_keys)
        self.done: set[str] = set()  # original names of packed parameters

    def refuse(self, name: str, reason: str) -> UsageError:
        return UsageError(f"{self.path}: {name}: {reason}")

    def place(self) -> set[str]:
        """Replace modules whose weights the bundle has. Returns the names of the tensors and units that are packed."""
        pieces: dict[str, list[Piece]] = defaultdict(list)
        for unit in self.bundle.units:
            self._add_unit(unit, pieces)
        kept = kept_tensors(self.bundle)
        for tensor in kept:
            self._add_tensor(tensor, pieces)
        experts: dict[str, dict[str, Piece]] = defaultdict(dict)
        for key, parts in pieces.items():
            self._put(key, parts, experts)
        for name, roles in experts.items():
            self._put_experts(name, roles)
        self._tie(pieces)
        packed = {part.name for key in self.done for part in pieces.get(key, ())}
        # transformers need not report that it does not load them
        self.model._keys_to_ignore_on_load_unexpected = {f"^{re.escape(name)}$" for name in packed}.union(
            self.model._keys_to_ignore_on_load_unexpected or ())
        self._check_complete(kept)
        return packed

    def _check_complete(self, kept: list[Tensor]) -> None:
        """Refuse a model with a parameter or a persistent buffer that the bundle lacks."""
        model = self.model
        present = {self.names.find(tensor.name)[0] for tensor in kept} | self.done
        present |= {key for key, other in self.tied.items() if other in present}
        buffers = dict(model.named_buffers())
        needed = {key: "parameter" for key, _ in model.named_parameters()}
        needed |= {key: "buffer" for key in model.state_dict() if key in buffers}
        for key, kind in needed.items():
            if key not in present and not _matches(model._keys_to_ignore_on_load_missing, key):
                raise self.refuse(key, f"{type(model).__name__} has this {kind}, but the bundle has no weights for it; "
                                  "load the class that the bundle's config.json names")

    # ---- what the bundle has

    def _add_unit(self, unit: Unit, pieces: dict[str, list[Piece]]) -> None:
        matrix = self.bundle.matrices[unit.first_matrix]
        key, converter, pattern = self.names.find(unit.name.replace("*", "0"))
        if key not in self.names.known:
            if _matches(self.model._keys_to_ignore_on_load_unexpected, key):
                return
            raise self.refuse(unit.name, f"{type(self.model).__name__} has no parameter {key}; load the class that the "
                              "bundle's config.json names")
        by_rows = (matrix.row_stride, matrix.col_stride) == (unit.cols, 1) and matrix.base % unit.cols == 0
        pieces[key].append(Piece(unit.name, unit.rows, unit.cols, self.bundle.linear(unit.name, unit.role), converter,
                                 pattern, unit, matrix.base // unit.cols if by_rows else None))

    def _add_tensor(self, tensor: Tensor, pieces: dict[str, list[Piece]]) -> None:
        key, converter, pattern = self.names.find(tensor.name)
        if len(tensor.shape) != 2 or key in pieces or key not in self.names.known or converter is not None:
            return
        kind = self._kind(key)
        # Other embeddings, such as positions of images, are often read by their modules.
        words = kind == "embedding" and self.model.get_submodule(key.rpartition(".")[0]) is \
            self.model.get_input_embeddings()
        if kind == "linear" or words:
            pieces[key].append(Piece(tensor.name, *tensor.shape, self.bundle.linear(tensor.name), None, None, None, 0))

    # ---- modules

    def _kind(self, key: str) -> str | None:
        """linear, embedding or experts; None if packed weights cannot replace the parameter."""
        owner, _, leaf = key.rpartition(".")
        module = self.model.get_submodule(owner)
        forward = type(module).forward
        if leaf == "weight" and isinstance(module, nn.Linear) and forward is nn.Linear.forward:
            return "linear"
        if leaf == "weight" and isinstance(module, nn.Embedding) and (
                forward is nn.Embedding.forward or type(module).__name__.endswith("ScaledWordEmbedding")):
            return "embedding"
        of_experts = hasattr(module, "is_concatenated") or type(module).__name__ == llama4.EXPERTS
        if of_experts and leaf in ("gate_up_proj", "up_proj", "down_proj"):
            return "experts"
        return None

    def _put(self, key: str, parts: list[Piece], experts: dict[str, dict[str, Piece]]) -> None:
        kind, name = self._kind(key), parts[0].name
        if kind is None:
            if all(part.unit is not None and part.unit.mode == "keep" for part in parts):
                return  # kept at source precision: transformers loads it
            owner = type(self.model.get_submodule(key.rpartition(".")[0])).__name__
            raise self.refuse(name, f"{owner} reads its parameter {key} itself, so it cannot be packed; convert again "
                              f"with --format '{parts[0].unit.class_ if parts[0].unit else ''}=keep'")
        if kind == "experts":
            for part in parts:
                experts[key.rpartition(".")[0]][part.unit.role if part.unit else ""] = part
            return
        self._check_converters(parts, set())
        shape = tuple(self.names.known[key].shape)
        parts.sort(key=lambda part: part.first_row or 0)
        row = 0
        for part in parts:
            if part.linear.experts != 1:
                raise self.refuse(part.name, f"is a stack of {part.linear.experts} experts, but {key} is one "
                                  "matrix, so it cannot be packed; use xfp unpack")
            if part.first_row != row or part.cols != shape[1]:
                raise self.refuse(part.name, f"its matrices are not rows of {key} {list(shape)}")
            row += part.rows
        if row != shape[0] or kind == "embedding" and len(parts) > 1:
            raise self.refuse(name, f"its matrices are not rows of {key} {list(shape)}")
        self._replace(key, [part.linear for part in parts])

    def _check_converters(self, parts: list[Piece], allowed: set[str]) -> None:
        for part in parts:
            names = {type(entry).__name__ for entry in part.converter.operations} if part.converter else set()
            if names - allowed:
                raise self.refuse(part.name, "transformers changes the order of its weights "
                                  f"({', '.join(sorted(names - allowed))}), so it cannot be packed; use xfp unpack")

    def _replace(self, key: str, weights: list[Linear]) -> None:
        owner, _, _ = key.rpartition(".")
        module = self.model.get_submodule(owner)
        new: nn.Module
        if isinstance(module, nn.Linear):
            new = PackedLinear(key, weights, module.bias)
        else:
            new = PackedEmbedding(key, weights[0], module, self.dtype)
            if type(self.model.get_submodule(owner.rpartition(".")[0])).__name__ == llama4.MODEL:
                llama4.show_device(new)
        self.model.set_submodule(owner, new)
        self.done.add(key)

    def _put_experts(self, name: str, roles: dict[str, Piece]) -> None:
        module = self.model.get_submodule(name)
        is_llama4 = type(module).__name__ == llama4.EXPERTS
        has_gate, transposed = is_llama4 or module.has_gate, is_llama4 or module.is_transposed
        first = ["gate", "up"] if has_gate else ["up"]
        leaf = "gate_up_proj" if has_gate else "up_proj"
        parts = [roles.get(role) for role in (*first, "down")]
        found = [part for part in parts if part is not None]
        if len(found) != len(parts) or len(roles) != len(parts):
            raise self.refuse(name, f"{type(module).__name__} needs packed {', '.join((*first, 'down'))} of all "
                              f"experts, but the bundle has {', '.join(sorted(roles))}")
        self._check_converters(found, OF_STACKS)
        keys = [f"{name}.{leaf}"] * len(first) + [f"{name}.down_proj"]
        for part, key in zip(found, keys):
            experts, *shape = self.names.known[key].shape
            rows, cols = shape[::-1] if transposed else shape
            if (part.linear.experts, part.rows * keys.count(key), part.cols) != (experts, rows, cols):
                raise self.refuse(part.name, f"{part.linear.experts} matrices {[part.rows, part.cols]} do not fit "
                                  f"{key} {[experts, *shape]}")
        self._check_order(found[:-1])
        for key in set(keys):
            delattr(module, key.rpartition(".")[2])
        self.done.update(keys)
        module.packed_experts = PackedExperts(name, [part.linear for part in found[:-1]], found[-1].linear)
        module._is_hf_initialized = True
        if is_llama4:
            llama4.replace_forward(module)
            return
        register_experts()
        _explain(module, name, (leaf, "down_proj"))
        module.config._experts_implementation_internal = "xfp"

    def _check_order(self, parts: list[Piece]) -> None:
        """Refuse gate and up if the converter of transformers puts up before gate."""
        converter, patterns = parts[0].converter, [part.pattern for part in parts]
        if converter and patterns[0] != patterns[-1] and \
                converter.source_patterns.index(patterns[0]) > converter.source_patterns.index(patterns[-1]):
            raise self.refuse(parts[0].name, "transformers puts up before gate, so it cannot be packed; use xfp unpack")

    def _tie(self, pieces: dict[str, list[Piece]]) -> None:
        """Open tied weights again in the module that shares them."""
        for key, other in list(self.tied.items()):
            if key not in self.done and other not in self.done:
                continue
            source, target = (other, key) if other in self.done else (key, other)
            if target not in self.done:
                if self._kind(target) is None:
                    raise self.refuse(target, "it is tied to packed weights, but its module reads them itself")
                self._replace(target, [part.linear for part in pieces[source]])
                pieces[target] = pieces[source]
            self.model.all_tied_weights_keys.pop(key)


def kept_tensors(bundle: Bundle) -> list[Tensor]:
    """Tensors that the bundle keeps at source precision."""
    return [tensor for tensor in bundle.tensors if tensor.data is not None]

# SPDX-License-Identifier: Apache-2.0
"""The quantization method "xfp" of transformers, which `import xfp` registers.

from_pretrained builds the model without weights, and this quantizer puts a bundle's packed weights in their places.
"""
from __future__ import annotations

import os
from typing import Any

from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from .bundle import Bundle
from .errors import BadInputError, UsageError, XfpError


@register_quantization_config("xfp")
class XfpConfig(QuantizationConfigMixin):
    """`quantization_config` in config.json: the path of the bundle, relative to the folder."""

    def __init__(self, bundle: str, quant_method: str = "xfp", **_: Any) -> None:
        self.quant_method = quant_method
        self.bundle = bundle


@register_quantizer("xfp")
class XfpQuantizer(HfQuantizer):
    """Replaces modules before weights are loaded."""

    device: Any = None  # of device_map

    def validate_environment(self, *_: Any, device_map: Any = None, **__: Any) -> None:
        from .ops import device_of

        places = device_map.values() if isinstance(device_map, dict) else [device_map]
        devices = {device_of(place) for place in places if place not in (None, "auto")}
        if len(devices) > 1:
            raise UsageError(f"device_map has {len(devices)} devices, but xfp multiplies on the CPU or on one CUDA "
                             'device; pass "cpu" or "cuda"')

    def update_device_map(self, device_map: Any) -> Any:
        """Load on the CPU. Modules are moved when they are complete."""
        from .ops import device_of

        if device_map is None:
            return None
        if device_map == "auto":
            try:
                self.device = device_of("cuda")
            except XfpError:
                self.device = device_of("cpu")
        else:
            self.device = device_of(next(iter(device_map.values())))
        return {"": "cpu"}

    def update_attn_implementation(self, config: Any) -> Any:
        # Folders name the bundle here to be refused where this package is not imported (see folder.py).
        if getattr(config, "transformers_weights", None) == self.quantization_config.bundle:
            config.transformers_weights = None
        return config

    def update_dtype(self, dtype: Any) -> Any:
        from .ops import FLOATS

        if dtype not in FLOATS:
            raise UsageError(f"dtype is {dtype}; use torch.float32, torch.float16 or torch.bfloat16")
        self.dtype = dtype  # preprocess_model does not pass it on
        return dtype

    def _process_model_before_weight_loading(self, model: Any, checkpoint_files: Any = None, **_: Any) -> None:
        from .placing import Placer

        if getattr(model.config, "distributed_config", None) is not None:
            raise UsageError("xfp multiplies on one device; leave out tp_plan and distributed_config")
        folder = os.path.dirname(checkpoint_files[0]) if checkpoint_files else ""
        path = os.path.join(folder, self.quantization_config.bundle)
        if not os.path.exists(path):
            raise BadInputError(f"{path}: the bundle of this folder is missing; put it back, or write the folder again "
                                "with python -m xfp folder")
        with Bundle(path) as bundle:
            Placer(model, bundle, path, self.dtype).place()

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        from .ops import share_processors
        from .packed import Packed

        share_processors(model)
        for module in model.modules():
            if isinstance(module, Packed):
                module.loaded()
        model.requires_grad_(False)
        return model if self.device is None else model.to(self.device)

    def is_serializable(self) -> bool:
        return False

    @property
    def is_trainable(self) -> bool:
        return False

    @property
    def is_compileable(self) -> bool:
        return True

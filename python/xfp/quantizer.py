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
from .errors import BadInputError, UsageError


@register_quantization_config("xfp")
class XfpConfig(QuantizationConfigMixin):
    """`quantization_config` in config.json: the path of the bundle, relative to the folder."""

    def __init__(self, bundle: str, quant_method: str = "xfp", **_: Any) -> None:
        self.quant_method = quant_method
        self.bundle = bundle


@register_quantizer("xfp")
class XfpQuantizer(HfQuantizer):
    """Replaces modules before weights are loaded."""

    def validate_environment(self, *_: Any, device_map: Any = None, **__: Any) -> None:
        places = device_map.values() if isinstance(device_map, dict) else [device_map]
        for place in places:
            if str(place) not in ("None", "cpu", "auto"):
                raise UsageError(f"device_map contains {str(place)!r}, but xfp multiplies mapped weights on the CPU; "
                                 'leave it out, or pass device_map="cpu"')

    def update_device_map(self, device_map: Any) -> Any:
        return {"": "cpu"} if device_map == "auto" else device_map

    def update_attn_implementation(self, config: Any) -> Any:
        # Folders name the bundle here to be refused where this package is not imported (see folder.py).
        if str(getattr(config, "transformers_weights", "")).endswith(".xfp"):
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

        folder = os.path.dirname(checkpoint_files[0]) if checkpoint_files else ""
        path = os.path.join(folder, self.quantization_config.bundle)
        if not os.path.exists(path):
            raise BadInputError(f"{path}: the bundle of this folder is missing; put it back, or write the folder again "
                                "with python -m xfp folder")
        with Bundle(path) as bundle:
            Placer(model, bundle, path, self.dtype).place()

    def _process_model_after_weight_loading(self, model: Any, **_: Any) -> Any:
        from .packed import Packed

        for module in model.modules():
            if isinstance(module, Packed):
                module.loaded()
        return model.requires_grad_(False)

    def is_serializable(self) -> bool:
        return False

    @property
    def is_trainable(self) -> bool:
        return False

    @property
    def is_compileable(self) -> bool:
        return True

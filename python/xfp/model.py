# SPDX-License-Identifier: Apache-2.0
"""A bundle as a model of Hugging Face transformers."""
from __future__ import annotations

import os
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

from .bundle import Bundle, name_of
from .contents import Tensor
from .errors import UsageError
from .hook import need_transformers

if TYPE_CHECKING:
    import torch

# Types that numpy lacks, by their names in torch
TORCH = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu"}

# Options of from_pretrained that load refuses, and why
REFUSED = dict.fromkeys(("quantization_config", "load_in_4bit", "load_in_8bit", "state_dict", "config"),
                        "the weights of a bundle are quantized; leave it out")
REFUSED |= dict.fromkeys(("tp_plan", "tp_size", "device_mesh", "distributed_config"),
                         "xfp multiplies on one device; leave it out")
REFUSED |= {"torch_dtype": "its name is dtype; pass that",
            "output_loading_info": "load returns the model and its tokenizer; leave it out"}


def load(path: str | os.PathLike[str], *, dtype: str | torch.dtype = "auto",
         device: str | torch.device | None = None, model_class: Any = None, **options: Any) -> tuple[Any, Any]:
    """Open a bundle as a transformers model. Returns the model and its tokenizer, or None if the bundle has none.

        model, tokenizer = xfp.load("model.xfp")
        ids = tokenizer("Once upon a time", return_tensors="pt")
        print(tokenizer.decode(model.generate(**ids, max_new_tokens=50)[0]))

    Matrices stay in the mapped file and are multiplied from there; everything else is as in transformers. The model
    can be neither saved nor trained. On a CUDA device matrices are uploaded, except embeddings; model.to(device) moves
    them later.

    dtype: of activations and of vectors such as norms: torch.float32, float16 or bfloat16; "auto" is that of
        config.json.
    device: "cpu" (the default), "cuda" or "cuda:1", which needs torch with CUDA and libxfp-cuda.
    model_class: a class of transformers; by default the first of `architectures` in config.json.
    options: for its from_pretrained, such as attn_implementation. experts_implementation has no effect on packed
        experts. trust_remote_code also is for the config and the tokenizer.

    Raises LibraryError if torch or transformers is missing or too old; UsageError, with the name, if the model cannot
    multiply by the weights of a unit, or lacks some; as Bundle otherwise; on a CUDA device as xfp.cuda.Device.
    """
    need_transformers()
    import transformers

    from .ops import device_of
    from .quantizer import XfpConfig

    for option, reason in REFUSED.items():
        if option in options:
            raise UsageError(f"{option} does not apply: {reason}")
    path = name_of(path)
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a folder; name the bundle in it, or open it with from_pretrained")
    remote = {name: options[name] for name in options if name == "trust_remote_code"}
    place = None if device is None else device_of(device)
    with Bundle(path) as bundle, tempfile.TemporaryDirectory() as folder:
        write_files(bundle, folder)
        config = transformers.AutoConfig.from_pretrained(folder, **remote)
        remove_quantization(config)
        model = _checked(model_class, config).from_pretrained(
            None, config=config, state_dict=dense(bundle), dtype=dtype,
            quantization_config=XfpConfig(os.path.abspath(path)), **options)
        for tensor in (*model.parameters(), *model.buffers()):
            tensor.data = tensor.data.clone()  # mapped, unless the type changed
        if model.can_generate() and os.path.exists(os.path.join(folder, "generation_config.json")):
            model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
        tokenizer = None
        if any(file.name.startswith(("tokenizer", "vocab")) for file in bundle.files):
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **remote)
    return model if place is None else model.to(place), tokenizer


def _checked(model_class: Any, config: Any) -> Any:
    """The class to load, or UsageError if it is not the class of a model with this config."""
    import transformers

    if model_class is None:
        return class_of(config)
    if not isinstance(model_class, type) or not issubclass(model_class, transformers.PreTrainedModel):
        raise UsageError(f"model_class is {getattr(model_class, '__name__', repr(model_class))}, but must be the class "
                         "of a model, such as transformers.LlamaForCausalLM; or leave it out")
    kind = getattr(model_class, "config_class", None)
    if kind and not isinstance(config, kind) and not isinstance(config.get_text_config(), kind):
        raise UsageError(f"model_class is {model_class.__name__}, which needs a {kind.__name__}, but the bundle has a "
                         f"{type(config).__name__}; leave it out")
    return model_class


def write_files(bundle: Bundle, folder: str, skip: str | None = None) -> None:
    """Write the small files of a bundle, except one."""
    for file in bundle.files:
        if file.name == skip:
            continue
        path = os.path.join(folder, *file.name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as output:
            output.write(file.data.tobytes())


def remove_quantization(config: Any) -> None:
    """Remove the checkpoint's quantization_config."""
    for part in (config, config.get_text_config()):
        if hasattr(part, "quantization_config"):
            del part.quantization_config


def class_of(config: Any) -> Any:
    """The class of transformers that config.json names."""
    import transformers

    names = config.architectures or []
    found = next((getattr(transformers, name) for name in names if hasattr(transformers, name)), None)
    if found is None:
        raise UsageError(f"transformers {transformers.__version__} has no class "
                         f"{' or '.join(names) or 'for this model'}; pass model_class")
    return found


def dense(bundle: Bundle) -> dict[str, torch.Tensor]:
    """Tensors that are not multiplied from the bundle: kept ones, except matrices that are units."""
    units = {bundle.matrices[unit.first_matrix + i].tensor for unit in bundle.units if unit.mode != "keep"
             for i in range(unit.experts)}
    return {tensor.name: to_torch(tensor) for number, tensor in enumerate(bundle.tensors)
            if tensor.data is not None and number not in units}


def to_torch(tensor: Tensor) -> torch.Tensor:
    """A kept tensor over the mapped file, which must not be written."""
    import torch

    assert tensor.data is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that numpy's array is read-only
        found = torch.from_numpy(tensor.data)
    kind = getattr(torch, TORCH.get(tensor.dtype, ""), None)  # old versions of torch lack some
    return found if kind is None else found.view(kind)

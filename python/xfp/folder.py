# SPDX-License-Identifier: Apache-2.0
"""Folders that transformers opens like any model: a bundle's small files, its dense tensors, and the bundle."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any

from .bundle import Bundle, name_of
from .errors import FailedError, UsageError
from .hook import need_transformers
from .model import class_of, dense, remove_quantization, write_files


def write(path: str | os.PathLike[str], folder: str | os.PathLike[str], *, copy: bool = False) -> None:
    """Write a folder for transformers, which opens it if this package has been imported.

    path: of the bundle.
    folder: to create; it may exist if it is empty.
    copy: whether to copy the bundle instead of linking to it.

    Raises UsageError if the folder is not empty, or as load; FailedError if something cannot be written.
    """
    need_transformers()
    path, folder = name_of(path), name_of(folder, "folder")
    name = os.path.basename(path)
    with Bundle(path) as bundle:
        try:
            os.makedirs(folder, exist_ok=True)
            if os.listdir(folder):
                raise UsageError(f"{folder}: is not empty; name a new folder")
            with tempfile.TemporaryDirectory() as files:
                write_files(bundle, files)
                if os.path.exists(os.path.join(files, name)) or name == "model.safetensors":
                    raise UsageError(f"{path}: the folder has another file of that name; rename the bundle")
                tensors = _dense_of(bundle, path, files)
                with open(os.path.join(files, "config.json"), encoding="utf-8") as file:
                    config = json.load(file)
            write_files(bundle, folder, skip="config.json")
            with open(os.path.join(folder, "model.safetensors"), "wb") as output:
                output.write(_safetensors(tensors))
            if copy:
                shutil.copyfile(path, os.path.join(folder, name))
            else:
                os.symlink(os.path.abspath(path), os.path.join(folder, name))
            # config.json is last: without it, transformers does not open an unfinished folder
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump(_quantized(config, name), file, indent=2)
                file.write("\n")
        except OSError as error:
            raise FailedError(f"{folder}: cannot be written: {error}") from error


def has_chat_template(folder: str | os.PathLike[str]) -> bool:
    """Whether the tokenizer or processor in a folder has a chat template, without which servers refuse to chat."""
    if any(os.path.exists(os.path.join(folder, name))
           for name in ("chat_template.jinja", "chat_template.json", "additional_chat_templates")):
        return True
    try:
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
            return bool(json.load(file).get("chat_template"))
    except (FileNotFoundError, ValueError, AttributeError):
        return False


def _quantized(config: dict[str, Any], name: str) -> dict[str, Any]:
    for part in (config, config.get("text_config", {})):
        part.pop("quantization_config", None)
    # transformers only warns of a quantization method that it does not know, and then initializes the weights at
    # random. It refuses weights whose name is not that of a safetensors file; XfpQuantizer clears that name.
    return config | {"quantization_config": {"quant_method": "xfp", "bundle": name}, "transformers_weights": name}


def _dense_of(bundle: Bundle, path: str, files: str) -> dict[str, Any]:
    """Tensors that the model needs in memory. Finding their modules also checks that the model can be opened."""
    import torch
    import transformers

    from .placing import Placer

    config = transformers.AutoConfig.from_pretrained(files)
    remove_quantization(config)
    with torch.device("meta"):
        model = class_of(config)(config)
    packed = Placer(model, bundle, path, torch.float32).place()
    return {name: tensor for name, tensor in dense(bundle).items() if name not in packed}


def _safetensors(tensors: dict[str, Any]) -> bytes:
    from safetensors.torch import save

    content: bytes = save(tensors, metadata={"format": "pt"})
    return content

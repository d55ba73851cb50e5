# SPDX-License-Identifier: Apache-2.0
"""Registers the quantization method "xfp" when transformers is imported, before or after this package.

Importing this package imports neither transformers nor torch.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .errors import LibraryError

OLDEST = 5, 20
MODULE = "transformers.quantizers.auto"
INSTALL = f"pip install torch 'transformers>={OLDEST[0]}.{OLDEST[1]}'"


def version_of(transformers: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in transformers.__version__.split(".")[:2])


def _register() -> None:
    if version_of(sys.modules["transformers"]) >= OLDEST:
        from . import quantizer  # noqa: F401


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module, as others do, to be called when it is imported."""

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _register()

            setattr(spec.loader, "exec_module", exec_module)
        return spec


def install() -> None:
    """Register now, or when transformers is imported."""
    if MODULE in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _Finder())


def need_transformers() -> None:
    """Import torch and transformers, or raise LibraryError with the command that installs them."""
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise LibraryError(f"xfp.load needs torch and transformers ({error}): {INSTALL}") from error
    if version_of(transformers) < OLDEST:
        raise LibraryError(f"xfp.load needs transformers {OLDEST[0]}.{OLDEST[1]} or newer, not "
                           f"{transformers.__version__}: {INSTALL}")

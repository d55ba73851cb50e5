# SPDX-License-Identifier: Apache-2.0
"""Registers the quantization method "xfp" when transformers is imported, before or after this package.

Importing this package imports neither transformers nor torch.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

from .errors import LibraryError

OLDEST = {"torch": "2.6", "transformers": "5.20"}
MODULE = "transformers.quantizers.auto"
INSTALL = "pip install " + " ".join(f"'{name}>={version}'" for name, version in OLDEST.items())


def too_old(name: str) -> str | None:
    """Error text if an imported package is too old, else None."""
    found = str(sys.modules[name].__version__)
    oldest, version = ([int(part) for part in re.findall(r"\d+", text)[:2]] for text in (OLDEST[name], found))
    return f"needs {name} {OLDEST[name]} or newer, not {found}: {INSTALL}" if version < oldest else None


def _register() -> None:
    wrong = too_old("transformers")
    if wrong:
        # some versions initialize the weights of a folder at random if they do not know its quantization method
        warnings.warn(f"xfp {wrong}", stacklevel=2)
    else:
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
        import transformers  # noqa: F401
    except (OSError, ValueError) as error:  # of torch, if its CUDA libraries are missing
        raise LibraryError(f"xfp.load needs torch and transformers, but importing them failed ({error}): "
                           f"{INSTALL}") from error
    except ImportError as error:
        raise LibraryError(f"xfp.load needs torch and transformers ({error}): {INSTALL}") from error
    for name in OLDEST:
        wrong = too_old(name)
        if wrong:
            raise LibraryError(f"xfp.load {wrong}")

# SPDX-License-Identifier: Apache-2.0
"""xfp: read .xfp bundles of quantized weights, and multiply by them on the CPU with libxfp, on GPUs with libxfp-cuda.

    import numpy as np
    import xfp

    with xfp.Bundle("model.xfp") as bundle:
        q = bundle.linear("model.layers.0.self_attn.q_proj.weight", "q")
        x = np.ones((4, q.shape[1]), np.float32)    # your activations
        y = q.multiply(x)                           # y[m] = W x[m], [4, rows]

Inputs and outputs are numpy arrays or CPU torch tensors, used in place; xfp.cuda multiplies arrays on a GPU. See
docs/python.md for more.
"""
from .abi import VERSION as __version__
from .bundle import Bundle
from .contents import File, Info, Matrix, Table, Tensor, Unit
from .errors import (
    BadInputError, ChangedError, DamagedError, FailedError, LibraryError, UnmetError, UsageError, WantExtendedError,
    XfpError,
)
from . import cuda, hook as _hook
from .library import instructions, use_instructions
from .linear import PRODUCT, Linear, products
from .model import load
from .team import Team, set_threads

__all__ = [
    "PRODUCT", "BadInputError", "Bundle", "ChangedError", "DamagedError", "FailedError", "File", "Info", "LibraryError",
    "Linear", "Matrix", "Table", "Team", "Tensor", "Unit", "UnmetError", "UsageError", "WantExtendedError", "XfpError",
    "__version__", "cuda", "instructions", "load", "products", "set_threads", "use_instructions",
]

_hook.install()

# SPDX-License-Identifier: Apache-2.0
"""Ownership of libxfp handles, and of arrays over mapped bytes.

A handle refers to the handles that it needs: a linear to its bundle, an array to the bundle that maps it. Closing an
object drops its reference, so libxfp frees a handle when the last object that uses it is gone, in any order.
"""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from . import library
from .errors import UsageError


def refuse_pickle(_self: object, _protocol: SupportsIndex) -> NoReturn:
    """For __reduce_ex__ of objects that refer to an open bundle."""
    raise UsageError("an open bundle, or what was opened from it, cannot be pickled or copied; open the bundle again")


class Handle:
    """A pointer that libxfp opened."""

    __slots__ = ("pointer", "pid", "_close", "_needs")

    def __init__(self, opening: Callable[..., int], close: Callable[..., None], *arguments: Any,
                 needs: object = None) -> None:
        """Call `opening` with the arguments. `close` frees the result; `needs` lives at least as long."""
        self.pointer = ctypes.c_void_p()
        self.pid = os.getpid()
        self._close = close
        self._needs = needs
        library.call(opening, *arguments, ctypes.byref(self.pointer))

    __reduce_ex__ = refuse_pickle

    def __del__(self) -> None:
        if getattr(self, "pointer", None):
            self._close(self.pointer)
            self.pointer = ctypes.c_void_p()


class ProcessHandle(Handle):
    """Threads, or objects of a GPU, which a child process does not inherit: it must not end them."""

    __slots__ = ()

    def __del__(self) -> None:
        if self.pid == os.getpid():
            super().__del__()


def mapped(bundle: Handle, address: int | None, size: int) -> NDArray[np.uint8]:
    """A read-only array [size] of mapped bytes, which keeps the bundle mapped."""
    if not size:
        return np.frombuffer(b"", np.uint8)
    block = (ctypes.c_uint8 * size).from_address(address or 0)
    setattr(block, "bundle", bundle)
    return np.frombuffer(memoryview(block).toreadonly(), np.uint8)

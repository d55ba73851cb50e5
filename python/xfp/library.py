# SPDX-License-Identifier: Apache-2.0
"""Loads libxfp and libxfp-cuda, and calls their functions.

libxfp is the one inside the package, or the one that the environment variable XFP_LIBRARY names: a path, or a name such
as libxfp.so.0 for an installed one. libxfp-cuda is the one next to it, or the one that XFP_CUDA_LIBRARY names. No other
is searched for.
"""
import ctypes
import functools
import operator
import os
import threading
from collections.abc import Mapping
from typing import Any, Callable, NoReturn

from . import abi
from .errors import CLASSES, FailedError, LibraryError, UsageError

VARIABLE = "XFP_LIBRARY"
CUDA_VARIABLE = "XFP_CUDA_LIBRARY"
INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libxfp.so")


@functools.cache
def load() -> ctypes.CDLL:
    """Return libxfp, loaded at the first call.

    Raises LibraryError if it is missing or is not version abi.VERSION.
    """
    path = _path()
    if path == INSIDE and not os.path.exists(path):
        raise LibraryError(f"this copy of the package xfp contains no libxfp; install its wheel (make wheel), or set "
                           f"{VARIABLE} to a path of libxfp.so, or to libxfp.so.0 for an installed one")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        reason = str(error)
        if os.path.exists(path) and reason.endswith("No such file or directory"):
            reason = f"{path}: is not for this processor ({os.uname().machine}), or needs a library that is missing"
        raise LibraryError(f"cannot load libxfp: {reason}; build it on this machine (make wheel), or set {VARIABLE} to "
                           f"the libxfp.so of xfp {abi.VERSION} that was built for it") from error
    remedy = f"set {VARIABLE} to the libxfp.so of xfp {abi.VERSION}"
    _declare(library, abi.FUNCTIONS, f"{path}: is not libxfp {abi.VERSION}", remedy)
    version = library.xfp_version().decode()
    if version != abi.VERSION:
        raise LibraryError(f"{path}: is libxfp {version}, but this package needs {abi.VERSION}; {remedy}")
    return library


@functools.cache
def load_cuda() -> ctypes.CDLL:
    """Return libxfp-cuda, loaded at the first call; it uses the libxfp that load returns.

    Raises LibraryError if it is missing or different.
    """
    folder, name = os.path.split(load()._name)  # the variable may have changed since
    path = os.environ.get(CUDA_VARIABLE) or os.path.join(folder, name.replace("libxfp", "libxfp-cuda"))
    remedy = (f"build xfp {abi.VERSION} with nvcc (./bootstrap --cuda), and set {CUDA_VARIABLE} to the path of "
              "libxfp-cuda.so, or to libxfp-cuda.so.0 for an installed one")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(f"cannot load libxfp-cuda, which multiplies on GPUs: {error}; {remedy}") from error
    _declare(library, abi.CUDA_FUNCTIONS, f"{path}: is not libxfp-cuda {abi.VERSION}", remedy)
    return library


def _path() -> str:
    return os.environ.get(VARIABLE) or INSIDE


def _declare(library: ctypes.CDLL, functions: Mapping[str, tuple[Any, tuple[Any, ...]]], refusal: str,
             remedy: str) -> None:
    """Set the types of functions, or raise LibraryError if one is missing."""
    for name, (result, parameters) in functions.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise LibraryError(f"{refusal}, since it has no function {name}; {remedy}") from None
        function.restype, function.argtypes = result, parameters


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.error = abi.Error()


_per_thread = _PerThread()


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Call a function whose last parameter is a struct xfp_error, without the GIL; raise the class of its status."""
    error = _per_thread.error
    status = function(*arguments, ctypes.byref(error))
    if status:
        raise_for(status, error)


def raise_for(status: int, error: abi.Error) -> NoReturn:
    raise CLASSES.get(status, FailedError)(error.text.decode(errors="replace"))


def c_string(text: str, what: str) -> bytes:
    """Encode a name of a bundle."""
    if not isinstance(text, str):
        raise UsageError(f"{what} must be a str, not {type(text).__name__}")
    if "\0" in text:
        raise UsageError(f"{what} contains a NUL character: {text!r}")
    return text.encode(errors="surrogateescape")


def integer(number: Any, what: str) -> int:
    """Check that a number is an integer."""
    try:
        return operator.index(number)
    except TypeError:
        raise UsageError(f"{what} must be an integer, not {number!r}") from None


def below(count: int, number: int, what: str) -> int:
    """Check that 0 <= number < count."""
    number = integer(number, what)
    if not 0 <= number < count:
        raise UsageError(f"{what} {number} does not exist; there are {count}, from 0")
    return number


def instructions() -> str:
    """Name of the instruction set that multiplies: "plain", "avx2", "avx512", "vbmi", "neon" or "dotprod"."""
    name: bytes = load().xfp_instructions()
    return name.decode()


def use_instructions(name: str) -> None:
    """Select the instruction set, for the whole process; no thread may multiply meanwhile.

    Raises UsageError if the name is unknown or the processor does not support the set.
    """
    if not load().xfp_use_instructions(c_string(name, "the name of an instruction set")):
        raise UsageError(f"this processor does not support the instruction set {name!r}; it uses {instructions()!r}")

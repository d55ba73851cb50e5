# SPDX-License-Identifier: Apache-2.0
"""Disable the garbage collector while many permanent objects are made: it would scan all of them repeatedly."""
import contextlib
import gc


@contextlib.contextmanager
def lasting():
    """Objects made inside are not scanned for cycles, now or later."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if on:
            gc.enable()

# SPDX-License-Identifier: Apache-2.0
"""Making a great many objects that stay: Python's collector would go through all of them again and again."""
import contextlib
import gc


@contextlib.contextmanager
def lasting():
    """What is made in here is not looked through for cycles, now or later."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if on:
            gc.enable()

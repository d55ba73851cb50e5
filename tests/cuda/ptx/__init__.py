# SPDX-License-Identifier: Apache-2.0
"""An emulator of PTX that proves kernels without a device: every access is checked for bounds, alignment, bytes that
nobody wrote and races, and whatever is not known is a fault.

	module = ptx.load("kernels.ptx")
	memory = ptx.Memory()
	x, y = memory.upload(array), memory.alloc(4 * n)
	counts = ptx.launch(module, "kernel", (blocks,), (threads,), [x, y, n], memory, shared=bytes)
	memory.download(y, numpy.float32, n)

The memory model is that of threads which run in turn, so what a program may not rely on is found by the order of
barriers and fences (order.py), not by strange values. It runs PTX, not what ptxas makes of it."""
from .decode import window_names
from .fault import Fault
from .memory import Memory
from .parse import load
from .run import Counts, launch



def sizes(function):
    """(names, bytes of static shared memory, bytes of local memory of each thread) of an entry."""
    return window_names(function, {})


__all__ = ["Counts", "Fault", "Memory", "launch", "load", "sizes"]

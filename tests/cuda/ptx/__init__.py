# SPDX-License-Identifier: Apache-2.0
"""An emulator of PTX that checks kernels without a device: every access is checked for bounds, alignment, uninitialized
bytes and races, and any unknown instruction is a fault.

	module = ptx.load("kernels.ptx")
	memory = ptx.Memory()
	x, y = memory.upload(array), memory.alloc(4 * n)
	counts = ptx.launch(module, "kernel", (blocks,), (threads,), [x, y, n], memory, shared=bytes)
	memory.download(y, numpy.float32, n)

Threads run one after another on sequentially consistent memory; missing synchronization is found from the order of
barriers and fences (order.py), not from wrong values. It runs PTX, not the code that ptxas makes of it."""
from .decode import window_names
from .fault import Fault
from .memory import Memory
from .parse import load
from .run import Counts, launch



def sizes(function):
    """(names, bytes of static shared memory, bytes of local memory of each thread) of an entry."""
    return window_names(function, {})


__all__ = ["Counts", "Fault", "Memory", "launch", "load", "sizes"]

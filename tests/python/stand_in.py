# SPDX-License-Identifier: Apache-2.0
"""Memory of the stand-in driver (tests/cuda/driver.c), which the host cannot read or write without the driver."""
import ctypes

driver = ctypes.CDLL("libcuda.so.1")


class Memory:
    """Memory of a context (xfp.cuda.Device.context)."""

    held = 0  # bytes that are allocated

    def __init__(self, context, size):
        self.context, self.address, self.size = context, ctypes.c_uint64(), size
        self.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(size, 1)))
        Memory.held += size

    def __del__(self):
        Memory.held -= self.size
        with self.context:
            driver.cuMemFree_v2(self.address)

    def call(self, name, *arguments):
        with self.context:
            result = getattr(driver, name)(*arguments)
        assert result == 0, f"{name} failed with error {result}"

    def data_ptr(self):
        return self.address.value

    def write(self, host, size):
        self.call("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(host), ctypes.c_size_t(size))
        self.call("cuStreamSynchronize", None)

    def read(self, host, size):
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(host), self.address, ctypes.c_size_t(size))

# SPDX-License-Identifier: Apache-2.0
"""What a launch ends with when a kernel does what it must not."""


class Fault(Exception):
    """`cause` says what was wrong; the launch adds the instruction, the thread and its block. `thread`, where it is
    known, is the number in the grid of the one that did it, with blocks counted in whole warps."""

    def __init__(self, cause, thread=None):
        super().__init__(cause)
        self.cause = cause
        self.thread = thread

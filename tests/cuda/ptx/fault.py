# SPDX-License-Identifier: Apache-2.0
"""The exception that a faulty kernel ends a launch with."""


class Fault(Exception):
    """`cause` describes the error; the launch adds the instruction, the thread and its block. `thread`, if known, is
    the number in the grid of the offending thread, with blocks counted in whole warps."""

    def __init__(self, cause, thread=None):
        super().__init__(cause)
        self.cause = cause
        self.thread = thread

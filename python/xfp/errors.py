# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each enum xfp_status."""


class XfpError(Exception):
    """Any failure of xfp; `status` is the value of its enum xfp_status."""

    status = 0


class FailedError(XfpError, RuntimeError):
    """XFP_FAILED: the system failed, for example I/O or memory."""

    status = 1


class UsageError(XfpError, ValueError):
    """XFP_USAGE: an argument is invalid."""

    status = 2


class BadInputError(XfpError, ValueError):
    """XFP_BAD_INPUT: the file is missing, damaged, not a bundle, or of an unsupported version."""

    status = 3


class UnmetError(XfpError):
    """XFP_UNMET: a quality floor or a comparison is not met."""

    status = 4


class DamagedError(XfpError):
    """XFP_DAMAGED: a damaged artifact was removed."""

    status = 75


class WantExtendedError(XfpError):
    """XFP_WANT_EXTENDED: no candidate meets the floor."""

    status = 76


class ChangedError(XfpError):
    """XFP_CHANGED: a unit's weights do not match its key."""

    status = 77


class LibraryError(XfpError, ImportError):
    """libxfp is missing, cannot be loaded, or is not the version that this package needs."""


CLASSES: dict[int, type[XfpError]] = {
    kind.status: kind
    for kind in (FailedError, UsageError, BadInputError, UnmetError, DamagedError, WantExtendedError, ChangedError)
}

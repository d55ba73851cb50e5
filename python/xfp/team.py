# SPDX-License-Identifier: Apache-2.0
"""Teams of threads that multiply.

The process has one default team, started at the first product. Concurrent products of one team wait for each other;
threads that multiply at the same time use a team each.
"""
import os
import threading

from . import library
from .errors import UsageError
from .handles import ProcessHandle


class Team:
    """Threads that multiply, including the calling one; usable by any thread, one product at a time."""

    def __init__(self, threads: int = 0) -> None:
        """Start a team.

        threads: 1 to 1024; 0 means one for each available processor.

        Raises UsageError if there are too many, FailedError if one cannot be started.
        """
        threads = library.integer(threads, "the number of threads")
        if not 0 <= threads <= 1024:
            raise UsageError(f"a team has 1 to 1024 threads, or 0 for one for each processor, not {threads}")
        lib = library.load()
        self._handle: ProcessHandle | None = ProcessHandle(lib.xfp_team_start, lib.xfp_team_end, threads)

    def close(self) -> None:
        """End the threads, after the products that run."""
        self._handle = None

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def handle(self) -> ProcessHandle:
        """For this package: the handle, which a caller keeps while it multiplies."""
        handle = self._handle
        if handle is None:
            raise UsageError("the team is closed; start another one")
        if handle.pid != os.getpid():
            raise UsageError("the team was started before fork, and its threads are in the parent process; "
                             "start another one")
        return handle


class _Default:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads = 0
        self.team: Team | None = None

    def after_fork(self) -> None:
        self.lock = threading.Lock()
        self.team = None


_default = _Default()
os.register_at_fork(after_in_child=_default.after_fork)


def handle_of(team: Team | None) -> ProcessHandle:
    """For this package: the handle of a team, or of the default one."""
    if team is None:
        team = _default.team
        if team is None:
            with _default.lock:
                if _default.team is None:
                    _default.team = Team(_default.threads)
                team = _default.team
    elif not isinstance(team, Team):
        raise UsageError(f"team must be an xfp.Team, not {team!r}")
    return team.handle()


def set_threads(threads: int) -> None:
    """Set the number of threads of the default team; 0 means one for each available processor.

    Raises UsageError if the number is invalid.
    """
    team = Team(threads)
    with _default.lock:
        _default.threads, _default.team = threads, team

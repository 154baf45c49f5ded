"""The tests of one subject, run in a forked process for each mutant."""

import os
import select
import signal
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

PYTEST: Final = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain")
STOP_S: Final = 15


class _FirstFailure:
    """A pytest plugin that runs the tests that failed before first, and ends the process at the first failure.

    It names that test to `fd`, and ends the children of the process too. Stopping the apps would take two seconds.
    """

    def __init__(self, fd: int, failed_before: Sequence[str]) -> None:
        self._fd, self._rank = fd, {name: rank for rank, name in enumerate(failed_before)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: self._rank.get(item.nodeid, len(self._rank)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            os.write(self._fd, report.nodeid.encode())
            os.killpg(0, signal.SIGKILL)


class Trial:
    """The tests of one subject, which run once for each mutant, those that failed last before the others."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments: Final = arguments
        self._failed: list[str] = []
        self.is_timed_out = False  # Whether the last run did not end in time.

    def passes(self, change: Callable[[], None], timeout_s: float) -> bool:
        """Return whether all tests pass after `change`. Tests that do not end in time count as a failure."""
        reading, writing = os.pipe()
        pid = self._start(change, writing)
        os.close(writing)
        pidfd = os.pidfd_open(pid)
        try:
            is_over = bool(select.select([pidfd], [], [], timeout_s)[0])
            for signum in (signal.SIGINT, signal.SIGKILL):
                # The first lets pytest stop the databases that it started.
                if not select.select([pidfd], [], [], 0)[0]:
                    os.killpg(pid, signum)
                    select.select([pidfd], [], [], STOP_S)
            _, status = os.waitpid(pid, 0)
            self.is_timed_out = not is_over
            self._note(os.read(reading, select.PIPE_BUF).decode() if select.select([reading], [], [], 0)[0] else "")
            return is_over and os.waitstatus_to_exitcode(status) == 0
        finally:
            os.close(pidfd)
            os.close(reading)

    def _start(self, change: Callable[[], None], writing: int) -> int:
        """Fork a process that runs the tests after `change`; its exit status is 0 where all of them pass."""
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            change()
            status = int(pytest.main([*PYTEST, *self._arguments], plugins=[_FirstFailure(writing, self._failed)]))
        finally:
            os._exit(status)

    def _note(self, failed: str) -> None:
        if failed:
            self._failed = [failed, *(name for name in self._failed if name != failed)]

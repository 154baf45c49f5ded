"""A temporary cluster for a test run or a tool: fast and initially empty."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from soundmark.embedded.cluster_location import make_private_directory
from soundmark.embedded.installation import find_programs, make_system_directory
from soundmark.embedded.postgres import Cluster, RunningCluster
from soundmark.operating_system.os_user import OsUser, can_enter, unprivileged_user

# Its data need not survive a crash.
_HASTY: Final = (
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("synchronous_commit", "off"),
    ("shared_buffers", "256MB"),
)
# Without the iterations that make its password slow to guess, a connection takes half the time. The setting is new in
# PostgreSQL 16.
_BUNDLED: Final = (("scram_iterations", "1"),)


@contextlib.contextmanager
def throwaway_cluster(*, is_durable: bool = False, folder: Path | None = None) -> Iterator[RunningCluster]:
    """Run a cluster in a temporary folder; stop and remove it at the end, even after an error.

    If `is_durable`, a commit waits until it is on the disk, as in production. `folder` holds the programs of an
    installed PostgreSQL; None means the bundled one.
    """
    user = unprivileged_user()
    directory = make_reachable_directory(user)
    try:
        home = directory / "cluster"
        make_private_directory(home, user)
        settings = (() if is_durable else _HASTY) + (() if folder else _BUNDLED)
        running = Cluster(home, user, folder or find_programs(user), settings=settings).start()
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(directory)


def make_reachable_directory(user: OsUser | None) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="soundmark-"))
    directory.chmod(0o711)
    if can_enter(user, directory):
        return directory
    directory.rmdir()
    directory = Path(tempfile.mkdtemp(prefix="throwaway-", dir=make_system_directory()))
    directory.chmod(0o711)
    return directory

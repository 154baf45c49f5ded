"""A primary and its synchronous standby, of the tests' own PostgreSQL."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import make_conninfo

from soundmark.embedded.cluster_location import make_private_directory
from soundmark.embedded.installation import find_programs
from soundmark.embedded.postgres import HOST, Cluster, RunningCluster
from soundmark.embedded.throwaway import make_reachable_directory
from soundmark.kit.crypto.secret import Secret
from soundmark.operating_system.os_user import OsUser, unprivileged_user

_SETTINGS: Final = (
    # The machine survives, so nothing is lost that the processes have written. A rewind needs whole pages.
    ("fsync", "off"),
    ("full_page_writes", "on"),
    ("shared_buffers", "32MB"),
    ("scram_iterations", "1"),
    ("wal_receiver_timeout", "2s"),
    ("wal_sender_timeout", "2s"),
    ("wal_retrieve_retry_interval", "100ms"),
)
_PROGRAM_TIMEOUT_S: Final = 60
_WAIT_S: Final = 60


class Node:
    """One of the two servers, in a folder of its own; its port changes with every start."""

    def __init__(self, home: Path, user: OsUser | None, programs: Path) -> None:
        make_private_directory(home, user)
        self.home: Final = home
        self._user: Final = user
        self._programs: Final = programs
        self._running: RunningCluster | None = None

    @property
    def port(self) -> int:
        """The port of the last start."""
        assert self._running is not None, "it was started"
        return self._running.port

    @property
    def running(self) -> RunningCluster:
        """The server as last started."""
        assert self._running is not None, "it was started"
        return self._running

    def start(self, primary: "Node | None" = None) -> None:
        """Start the server, as a standby of `primary` if there is one."""
        clients = self.home / "clients.conf"
        clients.write_text(f"host all,replication all {HOST}/32 scram-sha-256\n", encoding="utf-8")
        clients.chmod(0o644)
        settings = [*_SETTINGS, ("hba_file", str(clients))]
        if primary is not None:
            settings.append(("primary_conninfo", primary.replication_conninfo()))
        self._running = Cluster(self.home, self._user, self._programs, tuple(settings)).start()

    def replication_conninfo(self) -> str:
        """Return how the other node connects to this one to follow it."""
        return make_conninfo(
            self.running.superuser_url.reveal(), application_name="standby", sslmode="disable", connect_timeout=2
        )

    def copy(self, primary: "Node") -> None:
        """Become a copy of the primary that has not started yet."""
        shutil.rmtree(self.home / "data", ignore_errors=True)
        self._run("pg_basebackup", "--checkpoint=fast", "-D", str(self._data), "-d", primary.replication_conninfo())
        self._prepare_standby(primary)

    def rewind(self, primary: "Node") -> None:
        """Give up what this stopped node has written since the other one was promoted."""
        source = primary.replication_conninfo()
        self._run("pg_rewind", "-D", str(self._data), f"--source-server={source}", "--no-sync")
        self._prepare_standby(primary)

    def execute(self, statement: str, *, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the superuser, outside a transaction."""
        url = self.running.superuser_url_of(database).reveal()
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def promote(self) -> None:
        """Make the standby a primary that waits for no standby, and return when it takes writes."""
        self.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        self.execute("SELECT pg_reload_conf(), pg_promote(true, 60)")

    def require_standby(self) -> None:
        """Let commits wait for the standby from now on, and return when it is there."""
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        self.wait_for("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def wait_for(self, statement: str, *, database: str = "postgres") -> None:
        """Wait until the statement returns a row."""
        deadline_s = time.monotonic() + _WAIT_S
        while not self.execute(statement, database=database):
            assert time.monotonic() < deadline_s, f"not within {_WAIT_S} s: {statement}"
            time.sleep(0.02)

    def signal(self, number: signal.Signals) -> None:
        """Send every process of the server a signal, such as SIGSTOP for a machine that stands still."""
        pid = self.running.process.pid
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
            for each in (pid, *map(int, children)):
                os.kill(each, number)

    def kill(self) -> None:
        """End the server at once, as a crash does, also if it is paused."""
        self.running.process.kill()
        self.running.process.wait()

    def stop(self) -> None:
        """End the server, if it runs, without waiting for the other one."""
        if self._running is not None and self._running.process.poll() is None:
            self.signal(signal.SIGCONT)
            self._running.process.send_signal(signal.SIGQUIT)
            self._running.process.wait(_WAIT_S)

    @property
    def _data(self) -> Path:
        return self.home / "data"

    def _prepare_standby(self, primary: "Node") -> None:
        password = "superuser.password"
        shutil.copy2(primary.home / password, self.home / password)
        if self._user is not None:
            shutil.chown(self.home / password, self._user.uid, self._user.gid)
        (self._data / "standby.signal").touch()

    def _run(self, program: str, *arguments: str) -> None:
        options = Cluster(self.home, self._user, self._programs).process_options()
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            check=False,
            capture_output=True,
            timeout=_PROGRAM_TIMEOUT_S,
            **options,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")


class PostgresPair:
    """Two nodes, of which one is the primary."""

    def __init__(self, directory: Path, user: OsUser | None) -> None:
        programs = find_programs(user)
        self.nodes: Final = [Node(directory / name, user, programs) for name in ("first", "second")]
        self.primary, self.standby = self.nodes

    def start(self) -> None:
        """Start both, the second as a synchronous standby."""
        self.primary.start()
        # In a file: the recovery that a rewind begins with reads no command line, and would remove what it compares.
        # That may go back to the start: in a long run, a node can be killed each time before its first checkpoint.
        self.primary.execute("ALTER SYSTEM SET wal_keep_size = '4GB'")
        self.standby.copy(self.primary)
        self.standby.start(self.primary)
        self.primary.require_standby()

    def fail_over(self) -> None:
        """Promote the standby; the old primary is left as it is."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def rejoin(self) -> None:
        """Make the stopped old primary the synchronous standby of the new one."""
        self.standby.rewind(self.primary)
        self.standby.start(self.primary)
        self.primary.require_standby()

    def create_database(self, name: str) -> Secret:
        """Create a role and its database on the primary, and return the URL there."""
        return self.primary.running.create_role_and_database(name)


def url_at(url: Secret, port: int) -> Secret:
    """Return the same URL at another port of this machine."""
    parts = urlsplit(url.reveal())
    return Secret(parts._replace(netloc=f"{parts.username}:{parts.password}@{HOST}:{port}").geturl())


@contextlib.contextmanager
def running_pair() -> Iterator[PostgresPair]:
    """Run two servers in a temporary folder; stop and remove them at the end."""
    user = unprivileged_user()
    directory = make_reachable_directory(user)
    pair = PostgresPair(directory, user)
    try:
        pair.start()
        yield pair
    finally:
        for node in pair.nodes:
            node.stop()
        shutil.rmtree(directory)

"""A PostgreSQL cluster of our own: durable, on one loopback port, with SCRAM passwords only."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from soundmark.embedded.installation import CHOICE, version_of
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import Entropy, SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port
from soundmark.kit.postgres.releases import major_of, write_version
from soundmark.kit.text.ids import mint_secret
from soundmark.operating_system.files import NotTrusted, flush_directory, read_trusted, write_private
from soundmark.operating_system.memory import find_memory_bytes
from soundmark.operating_system.os_user import OsUser, spawn_options
from soundmark.operating_system.parent_death_signal import make_parent_death_signal

HOST: Final = "127.0.0.1"
SUPERUSER: Final = "postgres"
START_TIMEOUT_S: Final = 60  # Recovery after a crash replays at most one checkpoint's worth of log.
STOP_TIMEOUT_S: Final = 30

_POLL_S: Final = 0.02
_CONNECT_TIMEOUT_S: Final = 5
# Durability is PostgreSQL's default; it is spelled out because all our promises rest on it.
_SETTINGS: Final = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "200",
    # PostgreSQL fills its buffers for the log once and keeps them; a megabyte or two are flushed at a time.
    "wal_buffers": "4MB",
    # We use neither, and PostgreSQL reserves memory and runs a process for them.
    "max_pred_locks_per_transaction": "10",
    "max_logical_replication_workers": "0",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A file for each day of the week, overwritten a week later: the log cannot fill the disk.
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_truncate_on_rotation": "on",
}
if sys.platform == "linux":
    # One call flushes everything to the disk, after a crash and after initdb. A call for each of a thousand files takes
    # ten seconds on a slow disk.
    _SETTINGS["recovery_init_sync_method"] = "syncfs"
# A quarter of the memory, as PostgreSQL's manual suggests. Its bookkeeping takes 1.6 % of its buffers from the start,
# and beyond a gibibyte, which holds some million Codes, the system's cache serves nearly as well.
_BUFFERS_SHARE: Final = 4
_BUFFERS_MIN_MIB: Final = 128
_BUFFERS_MAX_MIB: Final = 1024
_INITDB_SYNC: Final = ("--sync-method=syncfs",) if sys.platform == "linux" else ()
_INITDB_SYNC_SINCE_MAJOR: Final = 17
_CLIENT_AUTHENTICATION: Final = f"""\
# Written at each start. Everybody who is not listed is refused.
host  all  all  {HOST}/32  scram-sha-256
host  all  all  all           reject
local all  all                reject
"""

_REASON: Final = re.compile(r"(?:error|FATAL|PANIC):\s+(.+)")  # In the output of initdb.


class ClusterFailed(Exception):
    """The cluster could not be created or started; the message is one line for the user, without secrets."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster in `home`, a folder that belongs to `user` (None: to ourselves).

    `home` holds PostgreSQL's own `data`, `superuser.password` and `pg_hba.conf`. `settings` override ours.
    """

    home: Path
    user: OsUser | None
    programs: Path
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def data(self) -> Path:
        """PostgreSQL's data directory; it exists if and only if the cluster is complete."""
        return self.home / "data"

    def exists(self) -> bool:
        """Return whether the cluster was created."""
        return self.data.exists()

    def require_major(self, version: int) -> None:
        """Refuse programs of a major release other than the one that created the cluster.

        Raises: ClusterFailed.
        """
        try:
            made_by = (self.data / "PG_VERSION").read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return
        if made_by.isdecimal() and int(made_by) != major_of(version):
            raise ClusterFailed(
                f"the database in {self.home} was created by PostgreSQL {made_by}, but {self.programs} contains "
                f"{write_version(version)}; set {CHOICE} to the folder of an installed PostgreSQL {made_by} "
                "(or unset it for the bundled one), or use another data dir"
            )

    def prepare(self, entropy: Entropy) -> None:
        """Create the cluster if it is missing, and write the files that a start needs.

        Raises: ClusterFailed.
        """
        if not self.exists():
            self._initialise(entropy)
        write_private(self.home / "pg_hba.conf", _CLIENT_AUTHENTICATION, self.user)

    def command(self, port: int) -> tuple[str, ...]:
        """Return the command line of the server."""
        settings = {
            **_SETTINGS,
            "shared_buffers": f"{choose_shared_buffers_mib(find_memory_bytes())}MB",
            "hba_file": str(self.home / "pg_hba.conf"),
            "port": str(port),
            **dict(self.settings),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return (str(self.programs / "postgres"), "-D", str(self.data), *options)

    def superuser_url(self, port: int, database: str = "postgres") -> Secret:
        """Return the URL with which the superuser connects.

        Raises: ClusterFailed.
        """
        try:
            # The folder belongs to an unprivileged user, who could put a link to one of root's files there.
            password = read_trusted(
                self.home / "superuser.password", owner_uid=None if self.user is None else self.user.uid
            )
        except NotTrusted as reason:
            raise ClusterFailed(str(reason)) from None
        except OSError as error:
            raise ClusterFailed(f"{self.home / 'superuser.password'} cannot be read: {error.strerror}") from None
        return _url(SUPERUSER, password, port, database)

    def is_answering(self, port: int) -> bool:
        """Return whether the server accepts connections now."""
        try:
            self._connect(port).close()
        except psycopg.OperationalError:
            return False
        return True

    def ensure_database(self, port: int, name: str, entropy: Entropy) -> Secret:
        """Return the URL of a database `name` to which only the role `name` can connect; create both if missing.

        The role has no rights beyond its database. It gets a new password each time.

        Raises: ClusterFailed.
        """
        try:
            return self._ensure_database(port, name, entropy)
        except psycopg.OperationalError as error:  # The disk is full, say.
            reason = str(error).strip().partition("\n")[0]
            raise ClusterFailed(f"PostgreSQL cannot prepare the database {name}: {reason}") from None

    def _ensure_database(self, port: int, name: str, entropy: Entropy) -> Secret:
        password = mint_secret(entropy, "")
        role = sql.Identifier(name)
        with contextlib.closing(self._connect(port)) as connection:
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).rowcount:
                connection.execute(sql.SQL("CREATE ROLE {}").format(role))
            # Only the verifier is sent, so that no statement log can contain the password.
            verifier = connection.pgconn.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
            connection.execute(
                sql.SQL(
                    "ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD {}"
                ).format(role, sql.Literal(verifier))
            )
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).rowcount:
                connection.execute(sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0").format(role, role))
            for database in (name, "postgres", "template1"):
                connection.execute(
                    sql.SQL("REVOKE CONNECT, TEMPORARY ON DATABASE {} FROM PUBLIC").format(sql.Identifier(database))
                )
        return _url(name, password, port, name)

    def clear_left_process(self) -> None:
        """Wait until no server of an earlier run uses this cluster, and stop one that does.

        Raises: ClusterFailed if that server does not end.
        """
        pid = self._find_left_pid()
        if pid is None or not _exists(pid):
            return  # PostgreSQL itself recognises the file of a dead server.
        if not _runs_cluster(pid, self.data):
            # Another process has this pid now, and PostgreSQL would mistake it for a server of this cluster.
            (self.data / "postmaster.pid").unlink(missing_ok=True)
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        clock = SystemClock()
        deadline_s = clock.monotonic_s() + STOP_TIMEOUT_S
        while _exists(pid) and _runs_cluster(pid, self.data):
            if clock.monotonic_s() > deadline_s:
                raise ClusterFailed(f"PostgreSQL of an earlier run (pid {pid}) does not exit")
            time.sleep(_POLL_S)

    def start(self) -> "RunningCluster":
        """Start the server for a test or a tool, and wait until it answers. It ends with this thread at the latest.

        Raises: ClusterFailed.
        """
        self.prepare(SystemEntropy())
        self.clear_left_process()
        with contextlib.closing(reserve_port(HOST, 0)) as held:
            port = held.getsockname()[1]
            process = subprocess.Popen(  # noqa: S603 - our own command line
                self.command(port),
                preexec_fn=make_parent_death_signal(signal.SIGINT),  # noqa: PLW1509 - it calls nothing but the kernel
                # Its own log has everything but the first lines, including why a start failed.
                stderr=subprocess.DEVNULL,
                **self.process_options(),
            )
            self._wait_until_answering(process, port)
        return RunningCluster(self, port, process)

    def process_options(self) -> dict[str, Any]:
        """Return the keyword arguments with which `subprocess` starts any program of this cluster."""
        return {
            "cwd": "/",
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,
            # Without our variables that PostgreSQL would read: PGHOST, PGDATA and the like.
            "env": {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            **spawn_options(self.user),
        }

    def _wait_until_answering(self, process: subprocess.Popen[bytes], port: int) -> None:
        clock = SystemClock()
        deadline_s = clock.monotonic_s() + START_TIMEOUT_S
        while not self.is_answering(port):
            if process.poll() is not None or clock.monotonic_s() > deadline_s:
                process.kill()
                process.wait()
                raise ClusterFailed(f"PostgreSQL did not start; its log is in {self.data / 'log'}")
            time.sleep(_POLL_S)

    def _initialise(self, entropy: Entropy) -> None:
        """Create the cluster under another name, and rename it when it is complete."""
        unfinished = self.home / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        write_private(self.home / "superuser.password", mint_secret(entropy, ""), self.user)
        major = major_of(version_of(self.programs, self.user))
        done = subprocess.run(  # noqa: S603 - our own command line
            [
                str(self.programs / "initdb"),
                f"--pgdata={unfinished}",
                f"--username={SUPERUSER}",
                f"--pwfile={self.home / 'superuser.password'}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--data-checksums",
                *(_INITDB_SYNC if major >= _INITDB_SYNC_SINCE_MAJOR else ()),
            ],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=make_parent_death_signal(signal.SIGTERM),
            **self.process_options(),
        )
        if done.returncode:
            output = done.stdout.decode(errors="replace").strip()
            # The last line tells only how it tidies up.
            reason = _REASON.search(output)
            told = output.rpartition("\n")[2] if reason is None else reason[1]
            raise ClusterFailed(f"PostgreSQL's initdb failed in {self.home}: {told}")
        unfinished.rename(self.data)
        flush_directory(self.home)

    def _connect(self, port: int) -> psycopg.Connection[Any]:
        return psycopg.connect(
            self.superuser_url(port).reveal(),
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
            application_name="soundmark-up",
        )

    def _find_left_pid(self) -> int | None:
        try:
            return int((self.data / "postmaster.pid").read_text(encoding="utf-8").partition("\n")[0])
        except (FileNotFoundError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A server that `Cluster.start` started."""

    cluster: Cluster
    port: int
    process: subprocess.Popen[bytes]

    @property
    def superuser_url(self) -> Secret:
        """The URL with which the superuser connects."""
        return self.superuser_url_of("postgres")

    def superuser_url_of(self, database: str) -> Secret:
        """Return the URL with which the superuser, who bypasses row-level security, connects to one database."""
        return self.cluster.superuser_url(self.port, database)

    def create_role_and_database(self, name: str) -> Secret:
        """Create a database `name` to which only the role `name` can connect, and return its URL."""
        return self.cluster.ensure_database(self.port, name, SystemEntropy())

    def stop(self) -> None:
        """Disconnect all clients, write everything to the disk, and end the server."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def choose_shared_buffers_mib(memory_bytes: int) -> int:
    """Return how much of this memory PostgreSQL shares among its processes to keep what they read."""
    return min(max(_BUFFERS_MIN_MIB, memory_bytes // _BUFFERS_SHARE // 2**20), _BUFFERS_MAX_MIB)


def _url(role: str, password: str, port: int, database: str) -> Secret:
    return Secret(f"postgresql://{role}:{password}@{HOST}:{port}/{database}")


def _runs_cluster(pid: int, data: Path) -> bool:
    """Return whether the running process `pid` is a server on `data`; if that cannot be known, assume it is."""
    try:
        return os.fsencode(data) in Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return not Path("/proc/self").exists()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""How a session with PostgreSQL begins: at which of several hosts, with which settings, and why it does not."""

import asyncio
import re
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeVar

import psycopg
import structlog
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_attempts_async, conninfo_to_dict

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.traced_cursor import TracedCursor
from soundmark.kit.tracing.spans import is_recording

C = TypeVar("C")
T = TypeVar("T")

CONNECT_TIMEOUT_S: Final = 3
HOST_TIMEOUT_S: Final = 1  # For each of several hosts: a third of what a lookup may take (`QUERY_TIMEOUT_S`).
STATEMENT_TIMEOUT_S: Final = 30
# A server without power sends no reset. What was sent and is not acknowledged for so long ends the connection, and so
# does a silence of three seconds after which two questions, a second apart, are not answered: who listens for
# notifications must look by itself within five.
PEER_TIMEOUT_S: Final = 5
_WAKE_EVERY_S: Final = 60.0
_MS_OF_S: Final = 1000
_DEFAULTS: Final[Mapping[str, int | str]] = {
    # Never a standby, whose answers may be old and which accepts no writes.
    "target_session_attrs": "read-write",
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": PEER_TIMEOUT_S * _MS_OF_S,
}
_OF_DRIVER: Final = ("autocommit", "prepare_threshold", "context", "row_factory", "cursor_factory")
_READ_ONLY: Final = ("session is read-only", "server is in hot standby mode")
_REFUSAL: Final = re.compile(r"FATAL:\s+(.+)")
# Of libpq and the driver: the URL asks for what does not work, such as TLS of a server without it.
_UNREACHABLE: Final = re.compile(
    r".*(?:failed|is bad): (.*(?:SSL|GSSAPI|certificate|private key file|channel binding|invalid \w+ value).*)"
    r"|(failed to resolve host '[^']*')"
)
# A plan that was made while a table was small would read all of it when it is large: record 57. Behind a pooler, no
# statement is prepared, so nothing demands them there.
_PLANNING: Final = {"enable_seqscan": "off", "jit": "off"}
POOLER_REFUSAL: Final = "unsupported startup parameter"

_log: Final = structlog.get_logger()

READ_ONLY: Final = "is read-only, as a standby is; name the primary, or all servers, in its URL"


class CannotConnect(DatabaseUnavailable):
    """No connection can be opened. `reason` continues the words "the database", and repeats what the server says."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason: Final = reason


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What every session of a process has.

    Without `sends_startup`, a connection pooler stands between: it refuses startup options, gives each transaction
    another session, and so keeps no prepared statement and no LISTEN. The role's own settings must be ours then.
    """

    synchronous_commit: Literal["on", "remote_apply"] = "on"
    sends_startup: bool = True

    def settings(self) -> dict[str, str]:
        """Return the settings that a session must have, by name."""
        return {
            "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
            "idle_in_transaction_session_timeout": "30s",
            "timezone": "UTC",
            "synchronous_commit": self.synchronous_commit,
        }


DIRECT: Final = SessionOptions()


def blocking_options(url: Secret) -> dict[str, Any]:
    """Return the keyword arguments of every connection that a migration opens with `psycopg.connect`.

    Building an index may take longer than a time limit of the role. A pooler refuses these options, as it must: a
    migration has a lock of its session.
    """
    options = _find_unset(url, {**_DEFAULTS, "connect_timeout": CONNECT_TIMEOUT_S})
    return {**options, "options": _add_to_options(url, {"statement_timeout": "0"})}


def connect_options(url: Secret, application_name: str, session: SessionOptions) -> dict[str, Any]:
    """Return the keyword arguments of every connection that a process opens with `HostsConnection`."""
    options = {**_find_unset(url, _DEFAULTS), "application_name": application_name}
    if is_recording():
        options["cursor_factory"] = TracedCursor
    if not session.sends_startup:
        return {**options, "prepare_threshold": None}
    return {**options, "options": _add_to_options(url, {**session.settings(), **_PLANNING})}


def _add_to_options(url: Secret, settings: Mapping[str, str]) -> str:
    its_own = conninfo_to_dict(url.reveal()).get("options")
    return " ".join([*([str(its_own)] if its_own else []), *(f"-c {name}={value}" for name, value in settings.items())])


async def find_missing_settings(url: Secret, session: SessionOptions) -> list[str]:
    """Return the statements that give the role of `url` the settings that its sessions lack, where we send none.

    A timeout may also be shorter than ours.

    Raises: CannotConnect.
    """
    options = connect_options(url, "soundmark-config", session)
    try:
        async with await HostsConnection.connect(url.reveal(), autocommit=True, **options) as connection:
            wanted = session.settings()
            cursor = await connection.execute(
                "SELECT name, setting, current_user FROM pg_settings WHERE lower(name) = ANY(%s) ORDER BY name",
                [list(wanted)],
            )
            rows = await cursor.fetchall()
    except psycopg.OperationalError as error:
        raise CannotConnect(describe_refusal(error)) from None
    return [
        sql.SQL("ALTER ROLE {} SET {} = {};")
        .format(sql.Identifier(role), sql.SQL(name.lower()), wanted[name.lower()])
        .as_string(None)
        for name, found, role in rows
        if not _suffices(found, wanted[name.lower()])
    ]


def _suffices(found: str, wanted: str) -> bool:
    if not found.isdecimal():
        return found == wanted
    return 0 < int(found) <= int(wanted.removesuffix("s")) * _MS_OF_S


class Standbys:
    """Whether a commit on one connection was not confirmed by the synchronous standbys.

    If somebody cancels the wait (`pg_cancel_backend`), PostgreSQL commits on the primary alone, with a warning.
    """

    def __init__(self) -> None:
        self.is_missing = False

    def heed(self, notice: psycopg.errors.Diagnostic) -> None:
        """Note the warning, whose text is in the language of the server."""
        if notice.source_function == "SyncRepWaitForLSN":
            self.is_missing = True
            _log.warning("commit_not_confirmed")

    def require(self) -> None:
        """Raise the error of a lost connection if a commit was not confirmed, because a failover may undo it.

        Raises: psycopg.OperationalError.
        """
        if self.is_missing:
            raise psycopg.OperationalError("the synchronous standbys did not confirm a commit")


class HostsConnection(psycopg.AsyncConnection[Any]):
    """A connection to the first of several hosts that accepts it, those last that did not answer lately.

    Each host has `HOST_TIMEOUT_S`, a single one `CONNECT_TIMEOUT_S`, unless the URL has a `connect_timeout`. So a host
    without power costs one second once, and not the whole time of every caller.
    """

    standbys: Standbys

    @classmethod
    async def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Connect.

        Raises: psycopg.OperationalError, whose text has the failure of every host.
        """
        of_driver = {name: kwargs.pop(name) for name in _OF_DRIVER if name in kwargs}
        params = conninfo_to_dict(conninfo, **kwargs)
        attempts: list[dict[str, Any]] = await conninfo_attempts_async(params)
        timeout_s = _find_timeout_s(params.get("connect_timeout"), len(attempts))
        failures: list[str] = []
        for attempt in sorted(attempts, key=lambda attempt: _failed_at_s.get(_host_of(attempt), 0)):
            try:
                connection = await _connect_to_one(super().connect("", **of_driver, **attempt), timeout_s)
            except psycopg.OperationalError as error:
                failures.append(str(error))
                _note_failure(attempt)
            except asyncio.CancelledError:
                # The caller's time ran out, so the next one tries another host first.
                _note_failure(attempt)
                raise
            else:
                _failed_at_s.pop(_host_of(attempt), None)
                connection.standbys = Standbys()
                connection.add_notice_handler(connection.standbys.heed)
                return connection
        raise psycopg.OperationalError("\n".join(failures))


def _find_unset(url: Secret, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the URL does not set itself."""
    given = conninfo_to_dict(url.reveal())
    return {name: value for name, value in options.items() if name not in given}


class ListeningConnection(HostsConnection):
    """A connection that sleeps while it waits for a notification; psycopg's own wakes ten times a second."""

    async def wait(self, gen: PQGen[T], interval: float = _WAKE_EVERY_S, timeout: float | None = None) -> T:  # noqa: ASYNC109 - theirs
        return await super().wait(gen, interval, timeout)


_failed_at_s: Final[dict[tuple[Any, ...], float]] = {}  # By host; it holds those of the configuration.


def _note_failure(attempt: Mapping[str, Any]) -> None:
    _failed_at_s[_host_of(attempt)] = asyncio.get_running_loop().time()


async def _connect_to_one(connecting: Coroutine[Any, Any, C], timeout_s: float | None) -> C:
    try:
        async with asyncio.timeout(timeout_s):
            return await connecting
    except TimeoutError:
        raise psycopg.errors.ConnectionTimeout(f"no answer within {timeout_s} s") from None


def _host_of(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    return attempt.get("hostaddr") or attempt.get("host"), attempt.get("port")


def _find_timeout_s(given: Any, attempts_count: int) -> float | None:
    if given is not None:
        return float(given) or None
    return CONNECT_TIMEOUT_S if attempts_count == 1 else HOST_TIMEOUT_S


def describe_refusal(error: psycopg.Error) -> str:
    """Return why a connection was not opened, as the `reason` of `CannotConnect`, for the operator.

    The server's own refusal has a role's or a database's name in it, and no secret.
    """
    text = str(error)
    refusals = _REFUSAL.findall(text)
    if POOLER_REFUSAL in text:
        return (
            f"is behind a connection pooler that refuses our options ({refusals[-1]}); "
            "set SOUNDMARK_DATABASE_OPTIONS=false and run `soundmark config check`"
        )
    if any(words in text for words in _READ_ONLY):
        return READ_ONLY
    if refusals:
        return f"refuses the connection: {refusals[-1]}"
    unreachable = _UNREACHABLE.search(text)
    return f"cannot be reached: {unreachable[1] or unreachable[2]}" if unreachable else "does not answer"

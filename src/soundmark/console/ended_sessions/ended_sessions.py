"""The ended sessions, as every request is judged by them."""

import asyncio
from pathlib import Path
from typing import Final, Protocol

import structlog

from soundmark.console.ended_sessions.ended_file import EndedFile
from soundmark.console.ended_sessions.ended_list import EndedList, EndedSession
from soundmark.console.ended_sessions.shared_ended_list import SharedEndedList
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits.shared_server import SharedServer
from soundmark.kit.tasks import cancel_and_wait
from soundmark.operating_system.files import NotTrusted, require_trusted_folder

# A person who signs out waits so long for a lock or a slow disk; the write goes on.
_WRITE_TIMEOUT_S: Final = 2.0
_AGAIN_S: Final = 1.0

_log: Final = structlog.get_logger()


class SharedList(Protocol):
    """A list for all machines, at a server that may be away: `shared_ended_list`."""

    @property
    def is_complete(self) -> bool: ...

    async def add(self, session: EndedSession) -> None: ...

    async def find(self, session: EndedSession) -> list[EndedSession]: ...

    async def complete(self) -> None: ...

    async def aclose(self) -> None: ...


class EndedSessions:
    """The ended sessions: in this process, in a file for this machine, and at a server for all machines.

    The latter two are optional. This process knows at once that a session has ended, whatever fails afterwards, and
    never accepts it again. While the server is away, a process judges by what it knows, and it goes on trying to put
    there what the server missed.
    """

    def __init__(self, known: EndedList, clock: Clock, *, file: EndedFile | None, shared: SharedList | None) -> None:
        self._known: Final = known
        self._clock: Final = clock
        self._file: Final = file
        self._shared: Final = shared
        self._is_file_unusable = False
        self._completing: asyncio.Task[None] | None = None

    async def add(self, session: EndedSession) -> None:
        """End a session. What could not be recorded is in the log."""
        now_s = self._clock.unix_s()
        if session.ends_at_s <= now_s:
            return
        self._known.add(session, now_s)
        if self._file is not None:
            await self._append(self._file, session, now_s)
        if self._shared is not None:
            await self._shared.add(session)
            if not self._shared.is_complete and self._completing is None:
                self._completing = asyncio.create_task(self._complete_later(self._shared), name="ended sessions")

    async def has(self, session: EndedSession) -> bool:
        """Return whether a session has ended, as far as this process can know."""
        if self._file is not None:
            self._read(self._file)
        if not self._known.has(session) and self._shared is not None:
            for found in await self._shared.find(session):
                self._known.add(found, self._clock.unix_s())
        return self._known.has(session)

    async def aclose(self) -> None:
        """Close the file and the connections."""
        if self._completing is not None:
            await cancel_and_wait(self._completing)
        if self._shared is not None:
            await self._shared.aclose()
        if self._file is not None:
            self._file.close()

    async def _append(self, file: EndedFile, session: EndedSession, now_s: float) -> None:
        try:
            async with asyncio.timeout(_WRITE_TIMEOUT_S):
                await asyncio.to_thread(file.append, session, now_s)
        except (NotTrusted, OSError) as error:  # A TimeoutError is an OSError.
            _log.error("ended_session_not_recorded", reason=_explain(error))

    def _read(self, file: EndedFile) -> None:
        try:
            records = file.read_new()
        except OSError as error:
            if not self._is_file_unusable:
                self._is_file_unusable = True
                _log.error("ended_sessions_not_read", reason=_explain(error))
            return
        self._is_file_unusable = False
        now_s = self._clock.unix_s()
        for record in records:
            self._known.add(record, now_s)

    async def _complete_later(self, shared: SharedList) -> None:
        while not shared.is_complete:
            await asyncio.sleep(_AGAIN_S)
            await shared.complete()
        self._completing = None


def make_ended_sessions(folder: Path | None, url: Secret | None, clock: Clock) -> EndedSessions:
    """Return the list, which processes share by a file in `folder` and by a server at `url`, where these are given."""
    known = EndedList()
    if folder is not None:
        _check_folder(folder)
    return EndedSessions(
        known,
        clock,
        file=None if folder is None else EndedFile(folder),
        shared=None if url is None else SharedEndedList(_connect(url, clock), known, clock),
    )


def _check_folder(folder: Path) -> None:
    try:
        require_trusted_folder(folder)
    except (NotTrusted, OSError) as error:
        _log.error("ended_sessions_not_read", reason=_explain(error))


def _connect(url: Secret, clock: Clock) -> SharedServer:
    return SharedServer(url, clock, outage="ended_sessions_unavailable")


def _explain(error: Exception) -> str:
    return str(error) or type(error).__name__

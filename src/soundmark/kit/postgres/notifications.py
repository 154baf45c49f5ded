"""Notifications of PostgreSQL: events of a process that are set when a transaction commits elsewhere.

A notification may be lost with a connection. So who waits for one also looks by itself, seldom while `is_listening` and
often otherwise.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

import psycopg
from psycopg import sql

from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database

_AGAIN_S: Final = 1.0


class Listener:
    """Sets an event for each notification of its channel, on a connection of its own."""

    def __init__(self, db: Database, events: Mapping[str, asyncio.Event]) -> None:
        self._db: Final = db
        self._events: Final = events
        self.is_listening = False

    async def keep_listening(self) -> None:
        """Listen until cancelled, again a second after each failure; behind a connection pooler, do not listen.

        It sets every event when it begins to listen, because what happened until then was not heard, and when it
        stops, so that its users look more often from then on.
        """
        # A pooler would give the LISTEN to a session that is another's the next moment, and nothing would be heard.
        while self._db.session.sends_startup:
            with contextlib.suppress(DatabaseUnavailable, psycopg.Error):
                await self._listen()
            await asyncio.sleep(_AGAIN_S)

    async def _listen(self) -> None:
        async with await self._db.dedicated_connection() as connection:
            for channel in self._events:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            self.is_listening = True
            try:
                self._set_every_event()
                async for notification in connection.notifies():
                    self._events[notification.channel].set()
            finally:
                self.is_listening = False
                self._set_every_event()

    def _set_every_event(self) -> None:
        for event in self._events.values():
            event.set()

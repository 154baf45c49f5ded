"""The one table of the kit's database, `notes`, and outages of that database."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from soundmark.kit.postgres.transaction import AnyTx
from support.database.rival import Rival


@dataclass(frozen=True)
class Note:
    text: str


async def write_note(tx: AnyTx, text: str) -> None:
    await tx.run("INSERT INTO notes (text) VALUES (%(text)s)", {"text": text})


async def read_notes(rival: Rival) -> list[str]:
    return [text for (text,) in await rival.rows("SELECT text FROM notes ORDER BY text")]


async def terminate_connections(superuser: Rival) -> None:
    """End every connection to the database, and return when they are gone."""
    await superuser.run("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'kit_under_test'")


@contextlib.asynccontextmanager
async def break_database(superuser: Rival) -> AsyncIterator[None]:
    """Keep the database from having or accepting connections."""
    await superuser.run("ALTER DATABASE kit_under_test ALLOW_CONNECTIONS false")
    try:
        await terminate_connections(superuser)
        yield
    finally:
        await superuser.run("ALTER DATABASE kit_under_test ALLOW_CONNECTIONS true")

"""How a command uses a component's database without its service."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from soundmark.cli import Refused
from soundmark.cli.deployment import read_settings
from soundmark.core.context import Context
from soundmark.core.operator import open_context
from soundmark.kit import log
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.schema_version import SchemaOutdated, require_current
from soundmark.kit.postgres.sessions import CannotConnect, SessionOptions
from soundmark.settings import AudienceDatabaseSettings, CoreDatabaseSettings, ProcessSettings, WithDatabase

T = TypeVar("T")


def database_settings(component: WithDatabase, data_dir: Path | None) -> tuple[Secret, ProcessSettings]:
    """Return the URL of the component's database, and the settings common to all processes.

    Raises: Refused.
    """
    if component == "core":
        core = read_settings(CoreDatabaseSettings, data_dir)
        return core.core_database_url, core
    audience = read_settings(AudienceDatabaseSettings, data_dir)
    return audience.audience_database_url, audience


def run_on_core(given: CoreDatabaseSettings, name: str, command: Callable[[Context], Awaitable[T]]) -> T:
    """Run `command` on Core's database and return its result; `name` appears in the log.

    Raises: Refused if the database does not answer or has another schema; whatever `command` raises.
    """

    async def run() -> T:
        async with open_context(given, name) as ctx:
            return await command(ctx)

    return _run("core", given, name, run)


def run_on_audience(given: AudienceDatabaseSettings, name: str, command: Callable[[Database], Awaitable[T]]) -> T:
    """Run `command` on Audience's database and return its result, as `run_on_core` does.

    Raises: Refused; whatever `command` raises.
    """

    async def run() -> T:
        db = Database(
            given.audience_database_url,
            pool_size=2,
            application_name=f"soundmark-{name}",
            session=SessionOptions(given.synchronous_commit, given.database_options),
        )
        await db.open()
        try:
            await require_current(db, "soundmark.audience", schema=given.own_schema)
            return await command(db)
        finally:
            await db.close()

    return _run("audience", given, name, run)


def _run(
    component: WithDatabase, given: ProcessSettings, name: str, command: Callable[[], Coroutine[Any, Any, T]]
) -> T:
    # One line about a failure is enough; the connection pool and the channels would add theirs.
    level = given.log_level if given.log_level == "debug" else "error"
    log.configure(level=level, log_format=given.log_format, component=name)
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    try:
        return asyncio.run(command())
    except CannotConnect as refused:
        raise Refused(f"{component.capitalize()}'s database {refused.reason}") from None
    except DatabaseUnavailable:
        raise Refused(f"{component.capitalize()}'s database does not answer") from None
    except SchemaOutdated as outdated:
        raise Refused(str(outdated)) from None

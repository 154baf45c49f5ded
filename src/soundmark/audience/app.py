"""The private Audience component: for now its own process, database and health."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from starlette.applications import Starlette

from soundmark.kit.entropy import SystemEntropy
from soundmark.kit.health import health_routes
from soundmark.kit.http import AsgiApp, Edge
from soundmark.kit.postgres import Database
from soundmark.kit.problems import DatabaseUnavailable
from soundmark.kit.schema_version import is_current
from soundmark.kit.startup import CannotStart
from soundmark.settings import AudienceSettings

_NO_BASE_URL: Final = ""  # Only Core reads these problems, by code: their type is a relative reference.


def create_app(settings: AudienceSettings) -> AsgiApp:
    """The component as an ASGI app; its lifespan holds the connections to the database."""
    database = Database(
        settings.audience_database_url,
        pool_size=settings.database_pool_size,
        application_name="soundmark-audience",
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            await database.open()
        except DatabaseUnavailable:
            raise CannotStart("Audience's database does not answer") from None
        try:
            yield
        finally:
            await database.close()

    async def database_is_ready() -> bool:
        """Whether the database answers and has every table that this release needs."""
        try:
            async with database.snapshot() as tx:
                return await is_current(tx, "soundmark.audience")
        except DatabaseUnavailable:
            return False

    app = Starlette(lifespan=lifespan, routes=health_routes({"database": database_is_ready}))
    return Edge(app, _NO_BASE_URL, SystemEntropy())

"""The sandbox as an ASGI app."""

import contextlib
from collections.abc import AsyncIterator

import httpx2
from starlette.applications import Starlette
from starlette.routing import Route

from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.asgi import AsgiApp
from soundmark.kit.http.requests.health import health_routes
from soundmark.sandbox.accounting.api import AccountingApi
from soundmark.sandbox.card.pages import CardPages
from soundmark.sandbox.control.routes import Control
from soundmark.sandbox.desk.api import DeskApi
from soundmark.sandbox.guard import LocalOnly
from soundmark.sandbox.local.api import LocalApi
from soundmark.sandbox.local.pages import LocalPages
from soundmark.sandbox.options import SandboxOptions
from soundmark.sandbox.overview import Overview
from soundmark.sandbox.pages import style
from soundmark.sandbox.systems import Systems, make_systems


def create_app(
    options: SandboxOptions, *, clock: Clock | None = None, transport: httpx2.AsyncBaseTransport | None = None
) -> AsgiApp:
    """Return the app. `transport` carries webhooks in place of the network, for tests."""
    systems = make_systems(options, clock or SystemClock(), SystemEntropy(), transport)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await systems.deliveries.aclose()

    app = Starlette(lifespan=lifespan, routes=make_routes(systems))
    app.router.redirect_slashes = False
    return LocalOnly(app)


def make_routes(systems: Systems) -> list[Route]:
    """Return every route: the APIs, the pages and `/control`."""
    options, shared = systems.options, systems.shared
    local_api = LocalApi(systems.local, options.secret("LOCAL_PUBLIC_KEY"), options.secret("LOCAL_SECRET_KEY"), shared)
    accounting_api = AccountingApi(
        systems.accounting,
        options.secret("ACCOUNTING_API_KEY"),
        shared,
        entity=options.accounting_entity_id,
        refusal_pause_s=options.refusal_pause_s,
    )
    desk_api = DeskApi(systems.desk, options.secret("SUPPORT_API_KEY"), options.desk_mailbox_id, shared)
    return [
        *health_routes(),
        Route("/style.css", style),
        *Overview(systems).routes(),
        *Control(systems).routes(),
        *CardPages(systems.card).routes(),
        *LocalPages(systems.local).routes(),
        *systems.card_api.routes(),
        *local_api.routes(),
        *accounting_api.routes(),
        *desk_api.routes(),
    ]

"""Audience's composition root: settings → Context → ASGI app."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import structlog
from fastapi import FastAPI

from soundmark.audience.context import Context, ReportTurns
from soundmark.audience.features.entitlements import routes as entitlements
from soundmark.audience.features.integrations import routes as integrations
from soundmark.audience.features.legacy import routes as legacy
from soundmark.audience.features.operations import routes as operations
from soundmark.audience.features.purges import routes as purges
from soundmark.audience.features.reports import routes as reports
from soundmark.audience.features.suspensions import routes as suspensions
from soundmark.audience.features.usage import routes as usage
from soundmark.audience.hot.group import GroupCommit
from soundmark.audience.hot.ingest import PATH, Ingest
from soundmark.audience.secrets import token_key
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.entropy import Entropy, SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send
from soundmark.kit.http.limits.factory import make_rate_limit, make_shared_keys
from soundmark.kit.http.requests.bearer_auth import Guard, describe_caller, holds_credential
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.requests.edge import HttpEdge, install_problem_handlers
from soundmark.kit.http.requests.health import HealthCheck, health_routes
from soundmark.kit.http.requests.refusals import ClientAddresses, RefusalLimit
from soundmark.kit.http.requests.routes import NO_TELEMETRY, install_validation_handler
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.schema_version import is_current, require_current
from soundmark.kit.postgres.sessions import SessionOptions
from soundmark.kit.startup import explain_failures
from soundmark.kit.tracing.spans import trace_endpoint
from soundmark.settings import AudienceSettings

_REPORTS_AT_ONCE: Final = 2
_log: Final = structlog.get_logger()


def create_app(settings: AudienceSettings, *, clock: Clock | None = None, entropy: Entropy | None = None) -> AsgiApp:
    """Return the component as an ASGI app. It connects when its lifespan starts, and needs its database then."""
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    ctx = _context(settings, clock, entropy)
    group = GroupCommit(ctx.db, ctx.clock, ctx.sealer)
    clients = _clients(settings, ctx)
    refused = _refused_events(settings, clock)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with _running(ctx, group, settings.own_schema):
            try:
                yield
            finally:
                await refused.aclose()

    async def database_is_ready() -> bool:
        """Return whether the database answers and has every table that this release needs."""
        try:
            async with ctx.db.snapshot() as tx:
                return await is_current(tx, "soundmark.audience")
        except DatabaseUnavailable:
            return False

    app = _routes(lifespan)
    app.state.context = ctx
    install_problem_handlers(app, settings.base_url)
    install_validation_handler(app, settings.base_url)
    # In front, so that a probe is not matched against every other route.
    app.router.routes[:0] = health_routes(
        HealthCheck("database", database_is_ready, "shared"),
        HealthCheck("database_read_only", ctx.db.is_writable, "shared"),
    )
    is_core = partial(holds_credential, credentials=settings.audience_credential)
    private = HttpEdge(
        Guard(app, settings.audience_credential),
        settings.base_url,
        entropy,
        describe_refused=clients.describe_refused,
        describe_caller=describe_caller,
        is_trusted=is_core,
    )
    ingest = Ingest(
        entropy,
        group,
        base_url=settings.base_url,
        clients=clients,
        refused=refused,
        credentials=settings.audience_credential,
    )
    traced = trace_endpoint(ingest, PATH, entropy, lambda scope: is_core(scope) or clients.is_proxy(scope))
    return _front(traced, private)


def _front(ingest: AsgiApp, rest: AsgiApp) -> AsgiApp:
    """Return an app that serves events, which need no credential of ours, in front of the private routes."""

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH:
            await ingest(scope, receive, send)
        else:
            await rest(scope, receive, send)

    return front


def _routes(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]]) -> FastAPI:
    """Return every private route. Only Core calls them, so they are not published."""
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    for feature in (integrations, entitlements, suspensions, operations, usage, reports, legacy, purges):
        app.include_router(feature.router)
    return app


def _context(settings: AudienceSettings, clock: Clock, entropy: Entropy) -> Context:
    return Context(
        db=Database(
            settings.audience_database_url,
            pool_size=settings.database_pool_size,
            application_name="soundmark-audience",
            session=SessionOptions(settings.synchronous_commit, settings.database_options),
        ),
        clock=clock,
        entropy=entropy,
        sealer=Sealer(parse_master_key(settings.master_key.reveal()), entropy),
        report_turns=ReportTurns(
            _REPORTS_AT_ONCE,
            make_shared_keys(
                settings.rate_limit_url, key_prefix=b"soundmark:audience-reports:", clock=clock, entropy=entropy
            ),
        ),
    )


def _clients(settings: AudienceSettings, ctx: Context) -> ClientAddresses:
    is_shared = settings.rate_limit_url is not None
    digest = AddressDigest(ctx.entropy, ctx.sealer.derive("address digests") if is_shared else None)
    return ClientAddresses(AddressReader(settings.trusted_proxies), digest, ctx.clock)


def _refused_events(settings: AudienceSettings, clock: Clock) -> RefusalLimit:
    limit = make_rate_limit(
        settings.rate_limit_url,
        settings.refusal_rate_limit,
        settings.refusal_rate_window_s,
        key_prefix=b"soundmark:audience-refused-events:",
        clock=clock,
    )
    return RefusalLimit("events", limit)


@contextlib.asynccontextmanager
async def _running(ctx: Context, group: GroupCommit, schema: str | None) -> AsyncIterator[None]:
    """Open and close the database and the batcher of events."""
    async with contextlib.AsyncExitStack() as stack:
        with explain_failures("Audience", sealed="what Audience has stored"):
            await ctx.db.open()
            stack.push_async_callback(ctx.db.close)
            stack.push_async_callback(ctx.report_turns.aclose)
            await require_current(ctx.db, "soundmark.audience", schema=schema)
            key = await token_key(ctx.db, ctx.sealer, ctx.clock, ctx.entropy)
        group.start(key)
        stack.push_async_callback(group.aclose)
        _log.info("audience_started")
        yield

"""The composition root of the serving process: settings → RequestContext → ASGI app."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import structlog
from fastapi import FastAPI

import soundmark
from soundmark.core.access.credentials import Credentials
from soundmark.core.access.oidc import OidcAccess
from soundmark.core.access.operator import OperatorAccess
from soundmark.core.access.server_keys import ServerKeyAccess
from soundmark.core.context import RequestContext
from soundmark.core.edge.authentication import authenticate, describe_refused
from soundmark.core.edge.refusals import refine_problem
from soundmark.core.features.audience.events import routes as events
from soundmark.core.features.audience.integrations import routes as audience_control
from soundmark.core.features.audience.reports import routes as audience_reports
from soundmark.core.features.billing.accounting import routes as accounting
from soundmark.core.features.billing.catalog import routes as billing_catalog
from soundmark.core.features.billing.checkouts import routes as checkouts
from soundmark.core.features.billing.contracts import routes as contracts
from soundmark.core.features.billing.offers import routes as offers
from soundmark.core.features.billing.portal import routes as portal
from soundmark.core.features.billing.subscriptions import routes as subscriptions
from soundmark.core.features.billing.webhooks import routes as payment_webhooks
from soundmark.core.features.codes.campaigns import routes as campaigns
from soundmark.core.features.codes.code_audio import routes as code_audio
from soundmark.core.features.codes.codes import routes as codes
from soundmark.core.features.codes.decode_certificates import routes as decode_certificates
from soundmark.core.features.codes.issuance import routes as issuance
from soundmark.core.features.codes.issuance.shortcut import IssuanceShortcut
from soundmark.core.features.codes.offline_packs import routes as offline_packs
from soundmark.core.features.codes.resolution import routes as resolution
from soundmark.core.features.codes.signing_keys.service import ensure_active
from soundmark.core.features.codes.usage import routes as usage
from soundmark.core.features.log.integration.opening import open_log
from soundmark.core.features.log.publication import routes as log
from soundmark.core.features.platform.abuse import routes as abuse
from soundmark.core.features.platform.organizations import routes as platform_organizations
from soundmark.core.features.platform.queue import routes as platform_queue
from soundmark.core.features.platform.release import routes as release
from soundmark.core.features.platform.settings import routes as platform
from soundmark.core.features.platform.systems import routes as platform_systems
from soundmark.core.features.support.desk_webhook import routes as desk_webhook
from soundmark.core.features.support.tickets import routes as tickets
from soundmark.core.features.tenancy.allowed_hosts import routes as allowed_hosts
from soundmark.core.features.tenancy.api_keys import routes as api_keys
from soundmark.core.features.tenancy.audit_log import routes as audit_log
from soundmark.core.features.tenancy.caller import routes as caller
from soundmark.core.features.tenancy.closure import routes as closure
from soundmark.core.features.tenancy.exports import routes as exports
from soundmark.core.features.tenancy.invitations import routes as invitations
from soundmark.core.features.tenancy.members import routes as members
from soundmark.core.features.tenancy.organizations import routes as organizations
from soundmark.core.features.tenancy.projects import routes as projects
from soundmark.core.features.webhooks.delivery import routes as webhook_tests
from soundmark.core.features.webhooks.endpoints import routes as webhook_endpoints
from soundmark.core.hot.answers import Answers
from soundmark.core.hot.lookup import QUERY_TIMEOUT_S, BroadcastLookup
from soundmark.core.hot.resolve import PATH_PREFIX, PROOF_HEADER_NAME, ROUTE, Resolve
from soundmark.core.live.clock_offset import ClockOffset
from soundmark.core.live.draft_counts import DraftCounts
from soundmark.core.live.log_state import keep_reading_log_state
from soundmark.core.published.routes import publication_routes
from soundmark.core.steps.cells import CellsInUse
from soundmark.core.wiring import make_request_context
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.entropy import Entropy, SystemEntropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send
from soundmark.kit.http.limits.factory import make_rate_limit
from soundmark.kit.http.limits.local import RateLimit
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.requests.cross_origin import CrossOrigin, Preflight
from soundmark.kit.http.requests.edge import HttpEdge, install_problem_handlers
from soundmark.kit.http.requests.health import HealthCheck, health_routes
from soundmark.kit.http.requests.limited_path import HOUR_S, LimitedPath
from soundmark.kit.http.requests.public_limit import PublicRateLimit
from soundmark.kit.http.requests.refusals import ClientAddresses, RefusalLimit
from soundmark.kit.http.requests.routes import NO_TELEMETRY, install_validation_handler
from soundmark.kit.postgres.database_server import DESCRIBE_SERVER
from soundmark.kit.postgres.lease import RENEW_EVERY_S, Lease
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.schema_version import require_current
from soundmark.kit.postgres.shared_connection import Preface, SharedConnection
from soundmark.kit.slots import Slots
from soundmark.kit.startup import explain_failures
from soundmark.kit.tasks import running
from soundmark.kit.tracing.spans import trace_endpoint
from soundmark.settings import CoreSettings

# Web pages of any origin may read these, and resolutions. Contract, section 1.
_OPEN_PATHS: Final = ("/v1/keys", "/v1/keys/history", "/v1/log", "/openapi.json")
_REPORTS: Final = "/v1/abuse-reports"
_REPORTS_MAX: Final = 10  # Of one address in an hour: contract, section 13.
_OPEN_PREFIXES: Final = (
    *("/v1/deletion-certificates/", "/v1/decode-certificates/", "/v1/log/"),
    *("/schemas/", "/problems/"),
)
_log: Final = structlog.get_logger()


def create_app(settings: CoreSettings, *, clock: Clock | None = None, entropy: Entropy | None = None) -> AsgiApp:
    """Return Core as an ASGI app. It connects when its lifespan starts, and needs its database at that time."""
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    ctx = make_request_context(settings, clock=clock, entropy=entropy)
    preface = Preface(Call(DESCRIBE_SERVER), RENEW_EVERY_S if settings.database_options else 0.0, clock)
    connection = SharedConnection(ctx.db, timeout_s=QUERY_TIMEOUT_S, preface=preface, planning="once_by_index")
    lease = Lease(ctx.db, clock, ctx.promotions)
    clock_offset = ClockOffset(ctx.db, clock, ctx.promotions)
    lookup = BroadcastLookup(connection, lease, Answers(ctx.live_keyring, ctx.clock, entropy))
    addresses, digests = AddressReader(settings.trusted_proxies), _address_digest(settings, ctx.sealer, entropy)
    clients = ClientAddresses(addresses, digests, clock)
    limit = make_rate_limit(
        settings.rate_limit_url,
        settings.resolve_rate_limit,
        settings.resolve_rate_window_s,
        key_prefix=b"soundmark:resolve:",
        clock=clock,
    )
    reports_limit = make_rate_limit(
        settings.rate_limit_url, _REPORTS_MAX, HOUR_S, key_prefix=b"soundmark:abuse-reports:", clock=clock
    )
    refused_credentials = _refusal_limit(settings, clock, "credentials")
    refused_events = _refusal_limit(settings, clock, "events")
    tokens = _access_tokens(settings, clock)
    resolve = _resolve(settings, ctx, lookup, limit, addresses, digests)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        limits = (
            limit,
            reports_limit,
            refused_credentials,
            refused_events,
            ctx.local_notification_limit,
            ctx.log_proof_limit,
            ctx.webhook_test_limit,
            ctx.system_test_limit,
            ctx.certificate_limit,
            ctx.webhook_tests,
            ctx.system_tests,
            ctx.exports,
            ctx.packs,
        )
        async with _running(ctx, clock_offset, lease, lookup, limits):
            if tokens is not None:
                tokens.start()
            try:
                yield
            finally:
                if tokens is not None:
                    await tokens.aclose()

    app = bare_app(lifespan)
    app.state.context = ctx
    keys = ServerKeyAccess(ctx.db, ctx.reads, clock)
    operator = OperatorAccess(settings.operator_token, trusted_proxies=settings.trusted_proxies)
    app.state.credentials = Credentials(operator, keys, tokens)
    app.state.authenticate = authenticate
    app.state.clients = clients
    app.state.refused_credentials = refused_credentials
    app.state.refused_events = refused_events
    install_problem_handlers(app, settings.base_url)
    install_validation_handler(app, settings.base_url, refine=refine_problem)
    app.router.routes.extend(publication_routes(app, settings.base_url))
    # First, so that a probe is not compared with every other route.
    app.router.routes[:0] = health_routes(
        HealthCheck("database", ctx.db.is_ready, "shared"),
        HealthCheck("database_read_only", ctx.db.is_writable, "shared"),
        HealthCheck("clock", clock_offset.is_right, "process"),
        HealthCheck("signing_key", ctx.live_keyring.is_current, "process"),
        HealthCheck("cells", CellsInUse(ctx).are_listed, "process"),
        HealthCheck("audience", ctx.cells.are_ready, "shown"),
        HealthCheck("audio", ctx.audio.is_ready, "shown"),
    )
    preflight = Preflight(PROOF_HEADER_NAME, entropy)
    describe = partial(describe_refused, clients)
    tenants = HttpEdge(IssuanceShortcut(app), settings.base_url, entropy, describe, is_trusted=clients.is_proxy)
    reports = LimitedPath(
        tenants,
        method="POST",
        path=_REPORTS,
        name="abuse",
        quota=_REPORTS_MAX,
        limit=reports_limit,
        clients=clients,
        base_url=settings.base_url,
        clock=clock,
        entropy=entropy,
    )
    reporting = CrossOrigin(reports, Preflight("Content-Type", entropy, method=b"POST"), (_REPORTS,), ())
    edge = CrossOrigin(reporting, preflight, _OPEN_PATHS, _OPEN_PREFIXES)
    return _front(trace_endpoint(resolve, ROUTE, entropy, clients.is_proxy), edge)


def bare_app(lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None) -> FastAPI:
    """Return an app with every route of the public API but nothing behind them, for the published documents."""
    app = FastAPI(
        title="Soundmark",
        version=soundmark.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        telemetry=NO_TELEMETRY,
        # A path with a trailing slash is a different path.
        redirect_slashes=False,
    )
    for feature in (
        issuance,  # First, because the framework tries routes in order, and these are the most frequent.
        caller,
        organizations,
        members,
        invitations,
        projects,
        allowed_hosts,
        closure,
        exports,
        api_keys,
        audit_log,
        campaigns,
        codes,
        code_audio,
        decode_certificates,
        offline_packs,
        audience_control,
        audience_reports,
        events,
        usage,
        webhook_tests,
        offers,
        billing_catalog,
        subscriptions,
        contracts,
        checkouts,
        portal,
        accounting,
        payment_webhooks,
        webhook_endpoints,
        tickets,
        desk_webhook,
        platform,
        platform_queue,
        platform_systems,
        platform_organizations,
        abuse,
        release,
        resolution,
        log,
    ):
        app.router.routes.extend(feature.operations.routes)
    return app


def _front(resolve: AsgiApp, rest: AsgiApp) -> AsgiApp:
    """Return an app that serves resolutions itself and leaves the rest to the framework."""

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(PATH_PREFIX):
            await resolve(scope, receive, send)
        else:
            await rest(scope, receive, send)

    return front


@contextlib.asynccontextmanager
async def _running(
    ctx: RequestContext,
    clock_offset: ClockOffset,
    lease: Lease,
    lookup: BroadcastLookup,
    limits: Iterable[RateLimit | RefusalLimit | PublicRateLimit | Slots],
) -> AsyncIterator[None]:
    """Run the background tasks of the process, from start to stop."""
    async with contextlib.AsyncExitStack() as stack:
        with explain_failures("Core", sealed="the stored signing keys"):
            await ctx.db.open()
            stack.push_async_callback(ctx.db.close)
            stack.push_async_callback(ctx.reads.aclose)
            stack.push_async_callback(ctx.roles.aclose)
            stack.push_async_callback(ctx.issuances.aclose)
            await require_current(ctx.db, "soundmark.core")
            await ensure_active(ctx)
            await open_log(ctx)
            await ctx.live_keyring.refresh()
            await ctx.chain.open()
            await clock_offset.measure()
        await stack.enter_async_context(running("live_keyring", ctx.live_keyring.keep_current()))
        await stack.enter_async_context(running("audit-chain", ctx.chain.keep_sealing()))
        await stack.enter_async_context(running("draft-counts", DraftCounts(ctx.db, ctx.clock).keep_counting()))
        await stack.enter_async_context(running("log-state", keep_reading_log_state(ctx.db)))
        await stack.enter_async_context(running("clock-offset", clock_offset.keep_measuring()))
        await stack.enter_async_context(running("lease", lease.keep_renewing()))
        stack.push_async_callback(lookup.aclose)
        stack.push_async_callback(ctx.audio.aclose)
        stack.push_async_callback(ctx.cells.aclose)
        stack.push_async_callback(ctx.card.aclose)
        stack.push_async_callback(ctx.local.aclose)
        stack.push_async_callback(ctx.accounting.aclose)
        stack.push_async_callback(ctx.webhooks.aclose)
        stack.push_async_callback(ctx.desk.aclose)
        stack.push_async_callback(ctx.witnesses.aclose)
        for limit in limits:
            stack.push_async_callback(limit.aclose)
        _log.info("core_started", base_url=ctx.base_url)
        yield


def _access_tokens(settings: CoreSettings, clock: Clock) -> OidcAccess | None:
    if settings.oidc_issuer is None or settings.oidc_client_id is None:
        return None
    return OidcAccess(settings.oidc_issuer, settings.oidc_client_id, clock, extra_ca_file=settings.extra_ca_file)


def _refusal_limit(settings: CoreSettings, clock: Clock, name: str) -> RefusalLimit:
    limit = make_rate_limit(
        settings.rate_limit_url,
        settings.refusal_rate_limit,
        settings.refusal_rate_window_s,
        key_prefix=f"soundmark:refused-{name}:".encode(),
        clock=clock,
    )
    return RefusalLimit(name, limit)


def _address_digest(settings: CoreSettings, sealer: Sealer, entropy: Entropy) -> AddressDigest:
    is_shared = settings.rate_limit_url is not None
    return AddressDigest(entropy, sealer.derive("address digests") if is_shared else None)


def _resolve(
    settings: CoreSettings,
    ctx: RequestContext,
    lookup: BroadcastLookup,
    limit: RateLimit,
    addresses: AddressReader,
    digests: AddressDigest,
) -> Resolve:
    return Resolve(
        base_url=settings.base_url,
        clock=ctx.clock,
        entropy=ctx.entropy,
        lookup=lookup,
        limit=limit,
        addresses=addresses,
        digests=digests,
        policy=b'"resolve";q=%d;w=%d' % (settings.resolve_rate_limit, settings.resolve_rate_window_s),
    )

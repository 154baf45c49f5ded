"""The console as an ASGI app."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlsplit

import httpx2
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from soundmark.console import documentation, front
from soundmark.console.context import Addresses, Console, Publisher
from soundmark.console.core_api import CoreApi
from soundmark.console.directory import Directory
from soundmark.console.disk_slots import DiskSlots
from soundmark.console.ended_sessions.ended_sessions import make_ended_sessions
from soundmark.console.headers import SecureHeaders, make_policy
from soundmark.console.pages.api_keys import routes as api_keys
from soundmark.console.pages.audit_log import routes as audit_log
from soundmark.console.pages.billing import routes as billing
from soundmark.console.pages.campaigns import routes as campaigns
from soundmark.console.pages.codes import routes as codes
from soundmark.console.pages.design import routes as design
from soundmark.console.pages.integrations import routes as integrations
from soundmark.console.pages.listen import routes as listen
from soundmark.console.pages.members import invitations
from soundmark.console.pages.members import routes as members
from soundmark.console.pages.organizations import routes as organizations
from soundmark.console.pages.platform import routes as platform
from soundmark.console.pages.projects import routes as projects
from soundmark.console.pages.reports import routes as reports
from soundmark.console.pages.search import routes as search
from soundmark.console.pages.tickets import routes as tickets
from soundmark.console.pages.usage import routes as usage
from soundmark.console.pages.webhooks import routes as webhooks
from soundmark.console.sealed_cookies import CookieJar
from soundmark.console.session import Sessions
from soundmark.console.sign_in import local_ticket
from soundmark.console.sign_in import routes as sign_in
from soundmark.console.sign_in.context import make_sign_in
from soundmark.console.sign_in.kept_forms import KeptForms
from soundmark.console.static_files import STATIC_FOLDER, receiver_folder, serve_files
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.http.asgi import AsgiApp, Receive, Scope, Send
from soundmark.kit.http.outbound.tls import share_tls_context
from soundmark.kit.http.requests.client_address import AddressReader
from soundmark.kit.http.requests.health import HealthCheck, health_routes
from soundmark.settings import ConsoleSettings

PAGES: Final[tuple[BaseRoute, ...]] = (
    *front.routes,
    *local_ticket.routes,
    *sign_in.routes,
    *listen.routes,
    *search.routes,
    *organizations.routes,
    *projects.routes,
    *integrations.routes,
    *reports.routes,
    *usage.routes,
    *codes.routes,
    *campaigns.routes,
    *api_keys.routes,
    *billing.routes,
    *members.routes,
    *invitations.routes,
    *audit_log.routes,
    *tickets.routes,
    *webhooks.routes,
    *platform.routes,
    *design.routes,
)


def create_app(settings: ConsoleSettings) -> AsgiApp:
    """Return the console; its lifespan holds the connections to Core."""
    return assemble_app(make_console(settings, SystemClock(), _make_transport(settings)))


def make_console(settings: ConsoleSettings, clock: Clock, transport: httpx2.AsyncBaseTransport) -> Console:
    """Return the parts that all requests share; `transport` leads to Core."""
    is_secure = settings.console_url.startswith("https:")
    entropy = SystemEntropy()
    jar = CookieJar(Sealer(settings.sealing_key, entropy), _make_prefix(settings.console_url), is_secure)
    ended = make_ended_sessions(settings.console_state_path, settings.rate_limit_url, clock)
    sessions = Sessions(jar, clock, ended)
    return Console(
        addresses=Addresses(settings.console_url, settings.base_url),
        publisher=_find_publisher(settings),
        tickets=settings.console_tickets_path if settings.sign_in == "ticket" else None,
        proxies=AddressReader(settings.trusted_proxies),
        core=CoreApi(settings.core_url, transport),
        jar=jar,
        sessions=sessions,
        directory=Directory(clock),
        clock=clock,
        entropy=entropy,
        operator_token=None if settings.oidc_issuer is not None else settings.operator_token,
        sign_in=make_sign_in(settings, sessions, entropy),
        kept_forms=KeptForms(jar),
        disk_slots=DiskSlots(),
    )


def assemble_app(console: Console) -> AsgiApp:
    """Return the pages around these parts."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await console.core.aclose()
            await console.sessions.ended.aclose()
            if console.sign_in is not None:
                await console.sign_in.aclose()

    receiver = Mount("/static/receiver", serve_files(receiver_folder()))
    static = Mount("/static", serve_files(STATIC_FOLDER))
    # Without Core it still answers: its pages say what is wrong. Readiness is for those who watch it.
    health = health_routes(HealthCheck("core", console.core.is_reachable, "process"))
    routes = [*health, receiver, static, *documentation.routes, *PAGES]
    app = Starlette(lifespan=lifespan, routes=routes, exception_handlers=front.handlers)
    app.state.console = console
    app.router.redirect_slashes = False
    connect_to = [console.addresses.core, *([] if console.publisher is None else [console.publisher.url])]
    own = OwnCookies(app, console.jar.prefix)
    return SecureHeaders(own, make_policy(connect_to), is_secure=console.jar.is_secure)


def _make_prefix(console_url: str) -> str:
    """Return what the cookies' names begin with: it names the port, because cookies ignore ports."""
    parts = urlsplit(console_url)
    if parts.scheme == "https":
        return "__Host-soundmark-" if parts.port is None else f"__Host-soundmark-{parts.port}-"
    return f"soundmark-{parts.port or 80}-"


def _find_publisher(settings: ConsoleSettings) -> Publisher | None:
    if settings.publisher_url is None or settings.publisher_integration_id is None:
        return None
    return Publisher(settings.publisher_url, settings.publisher_integration_id)


def _make_transport(settings: ConsoleSettings) -> httpx2.AsyncBaseTransport:
    return httpx2.AsyncHTTPTransport(
        verify=share_tls_context(settings.extra_ca_file),
        trust_env=False,
        # uvicorn closes a connection after five idle seconds; a request sent just then would be lost.
        limits=httpx2.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=2.0),
    )


# Browsers keep some 180 cookies of one host, and other services of this host have theirs too.
_COOKIES_MAX: Final = 200


class OwnCookies:
    """An app whose requests carry the cookies with this prefix alone.

    The console writes no value that needs quotes. So a quoted one, which takes long to decode, is not ours, and each
    cookie has one spelling.
    """

    def __init__(self, app: AsgiApp, prefix: str) -> None:
        self._app: Final = app
        self._prefix: Final = prefix.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = b";".join(value for name, value in scope["headers"] if name == b"cookie")
            if given:
                headers = [header for header in scope["headers"] if header[0] != b"cookie"]
                if own := self._find_own(given):
                    headers.append((b"cookie", own))
                scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)

    def _find_own(self, given: bytes) -> bytes:
        """Return the cookies of ours; none if there are more than any browser sends."""
        if given.count(b";") >= _COOKIES_MAX:
            return b""
        cookies = [cookie.strip() for cookie in given.split(b";")]
        return b"; ".join(cookie for cookie in cookies if cookie.startswith(self._prefix) and b'"' not in cookie)

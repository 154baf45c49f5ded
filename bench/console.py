"""Benchmark of the console's pages against the calls that they make, and of what a first view transfers."""

import asyncio
import base64
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Final

import httpx2
import psycopg
from playwright.async_api import Response
from soundmark_sdk.client import Client, CodeFilters

from bench import seed
from bench.figures import Figure
from bench.next_paint import SHORTEST_MS, measure_next_paint, open_page
from bench.service import OPERATOR_TOKEN, Seeded, Service, core, free_port, process, seeded, until
from soundmark.console.sealed_cookies import CookieJar
from soundmark.console.session import Session
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer

_ROWS: Final = 100
_ENTRIES: Final = 50  # A page of the audit log has half as many.
_CODES: Final = 10_000
_LOADS: Final = 60
_WARM_LOADS: Final = 10
_CONSOLE_KEY: Final = bytes(range(32, 64))
_HEADERS: Final = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
_ORGANIZATION: Final = f"/organizations/{seed.ORGANIZATION_ID}"
_PROJECT: Final = f"{_ORGANIZATION}/projects/{seed.PROJECT_ID}"
_ENDPOINT_ID: Final = "whe_0123456789abcdefghijkl"
_MS_MAX: Final = 300
_FIRST_VIEW_KB_MAX: Final = 150
# Half of what web.dev calls good.
_NEXT_PAINT_MS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class _Page:
    """A page, and the calls that it makes. Names in the heading are kept for some seconds, and cost no call then."""

    name: str
    path: str
    calls: Sequence[Callable[[Client], object]]
    rows: int = _ROWS


_PAGES: Final = (
    _Page("Projects", f"{_ORGANIZATION}/projects", [lambda core: core.projects.page()]),
    _Page(
        "Members",
        f"{_ORGANIZATION}/members",
        [lambda core: core.members.page(), lambda core: core.invitations.page()],
    ),
    # The second call gets the e-mail addresses of those who acted.
    _Page(
        "Audit log",
        f"{_ORGANIZATION}/audit-log",
        [lambda core: core.audit_log.page(limit=_ENTRIES), lambda core: core.members.page()],
        _ENTRIES,
    ),
    _Page(
        "Codes",
        f"{_PROJECT}/codes",
        [
            lambda core: core.codes.page(CodeFilters(project_id=seed.PROJECT_ID), include_intent=True),
            lambda core: core.campaigns.page(),
        ],
    ),
    _Page("Campaigns", f"{_PROJECT}/campaigns", [lambda core: core.campaigns.page()]),
    _Page("API keys", f"{_PROJECT}/api-keys", [lambda core: core.api_keys.page()]),
    _Page("Organisations", "/organizations", [lambda core: core.organizations.page()]),
    _Page("Invitations", f"{_ORGANIZATION}/members/invitations", [lambda core: core.invitations.page()]),
    _Page("Support tickets", f"{_ORGANIZATION}/tickets", [lambda core: core.tickets.page()]),
    # The second call gets what is used of the plan.
    _Page(
        "Subscriptions",
        f"{_ORGANIZATION}/billing",
        [lambda core: core.subscriptions.page(), lambda core: core.usage()],
    ),
    _Page(
        "Deliveries",
        f"{_ORGANIZATION}/webhooks/{_ENDPOINT_ID}/deliveries",
        [
            lambda core: core.webhooks.get(_ENDPOINT_ID),
            lambda core: core.webhooks.deliveries_page(_ENDPOINT_ID),
        ],
    ),
)


# What only other systems bring about: people who sign in, a desk's answers, payments and deliveries.
_ENDPOINT: Final = """
INSERT INTO webhook_endpoints (organization_id, id, url, enabled, description, sealed_secret, created_at)
VALUES (%(organization_id)s, %(endpoint_id)s, 'https://example.org/hook', false, '', '', now())
"""
_ROWS_OF_OTHERS: Final = (
    """
    INSERT INTO members (organization_id, subject_id, email, role, created_at)
    VALUES (%(organization_id)s, 'person-' || %(number)s, %(number)s || '@example.org', 'member', %(now)s)
    """,
    """
    INSERT INTO tickets (organization_id, id, subject_id, request_id, subject, status, conversation_id, mailbox_id,
                         post_after, created_at)
    VALUES (%(organization_id)s, 'tkt_' || %(number)s, 'operator', 'supreq_' || %(number)s, 'A question', 'active', 1,
            1, %(now)s, %(now)s)
    """,
    """
    INSERT INTO subscriptions (organization_id, id, plan_id, product, provider, status, cancel_at_period_end,
                               provider_reference, created_at, updated_at)
    VALUES (%(organization_id)s, 'bsu_' || %(number)s, 'plan_codes_starter', 'codes', 'card', 'cancelled', false,
            'sub_' || %(number)s, %(now)s, %(now)s)
    """,
    """
    INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)
    VALUES (%(organization_id)s, 'evn_' || %(number)s, 'code.issued', 'user', 'operator', '{}', %(now)s)
    """,
    """
    INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, event_id, event_type, status, attempts,
                                    created_at)
    VALUES (%(organization_id)s, 'whd_' || %(number)s, %(endpoint_id)s, 'evn_' || %(number)s, 'code.issued',
            'delivered', 1, %(now)s)
    """,
)


def console(cluster: RunningCluster) -> list[Figure]:
    """Measure lists of 100 rows against the same calls without the console, in turns; then a first view, and clicks."""
    database = seeded(cluster, _CODES)
    with core(database) as service, running_console(service.base_url) as url:
        _fill(service, database)
        figures = [figure for page in _PAGES for figure in _measure(page, service, url)]
        figures += [_first_view(url), *_next_paints(url)]
    return figures


def _measure(page: _Page, service: Service, url: str) -> list[Figure]:
    """Load a page and make its calls in turns, as a program makes them, each on a connection that stays open."""
    pages_ms, calls_ms = [], []
    core = Client(service.base_url, OPERATOR_TOKEN, organization_id=seed.ORGANIZATION_ID, project_id=seed.PROJECT_ID)
    with httpx2.Client(base_url=url, cookies=_cookies(url)) as browser, core:
        for number in range(_WARM_LOADS + _LOADS):
            calls = _time_ms(lambda: [call(core) for call in page.calls])
            shown = _time_ms(lambda: browser.get(page.path).raise_for_status())
            if number >= _WARM_LOADS:
                calls_ms.append(calls)
                pages_ms.append(shown)
        rows = browser.get(page.path).text.count("<tr")
    if rows < page.rows:
        raise RuntimeError(f"{page.name} shows {rows} rows")
    page_ms, call_ms = median(pages_ms), median(calls_ms)
    measured = f"p50 {page_ms:.1f} ms"
    reference = f"its calls by soundmark_sdk.client: p50 {call_ms:.1f} ms"
    return [
        Figure(f"{page.name}, {page.rows} rows", measured, reference, page_ms / call_ms, "at most", 2),
        Figure(f"{page.name}: the page itself", measured, "", page_ms, "at most", _MS_MAX, " ms"),
    ]


def _first_view(url: str) -> Figure:
    """Return what a browser that was never here transfers for a list with all its files."""
    transferred, requests = asyncio.run(_transfer(url))
    return Figure(
        "First view of the list of projects",
        f"{transferred / 1000:.1f} kB in {requests} answers, headers included",
        "",
        transferred / 1000,
        "at most",
        _FIRST_VIEW_KB_MAX,
        " kB",
    )


async def _transfer(url: str) -> tuple[int, int]:
    answers: list[Response] = []
    async with open_page(url, _cookies(url)) as page:
        # Playwright marks its handlers, which a built-in method does not allow.
        page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - see above
        await page.goto(f"{_ORGANIZATION}/projects", wait_until="networkidle")
        sizes = [await answer.request.sizes() for answer in answers]
    return sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes), len(sizes)


def _next_paints(url: str) -> list[Figure]:
    """Return the slowest interaction with each page that people work on."""
    code = f"{_PROJECT}/codes/{seed.xr_id_of(0)}"
    homes = [("Organisation", _ORGANIZATION), ("Project", _PROJECT), ("Issue Codes", f"{_PROJECT}/codes/issue")]
    pages = [*((each.name, each.path) for each in _PAGES), *homes, ("A Code", code)]
    measured = measure_next_paint(url, _cookies(url), [path for _, path in pages])
    return [
        Figure(
            f"{name}: interaction to next paint",
            f"slowest of {len(measured[path])} longer than {SHORTEST_MS} ms",
            "",
            max(measured[path], default=0),
            "at most",
            _NEXT_PAINT_MS_MAX,
            " ms",
        )
        for name, path in pages
    ]


def _time_ms(act: Callable[[], object]) -> float:
    begin_s = time.perf_counter()
    act()
    return (time.perf_counter() - begin_s) * 1e3


def _cookies(url: str) -> dict[str, str]:
    """Return the cookies of the operator's session, as the sign-in page would set them."""
    port = url.rpartition(":")[2]
    taken: dict[str, str] = {}

    class Taking:
        """A response that keeps its cookies."""

        def set_cookie(self, name: str, value: str, **_: Any) -> None:
            taken[name] = value

    jar = CookieJar(Sealer(_CONSOLE_KEY, SystemEntropy()), f"soundmark-{port}-", is_secure=False)
    session = Session("operator", "operator", "operator@localhost", "token", datetime.now(UTC), has_second_factor=True)
    jar.write(Taking(), "session", session)  # type: ignore[arg-type]  # it takes the cookies alone
    return taken


def _fill(service: Service, database: Seeded) -> None:
    """Bring every list to `_ROWS` rows."""
    with httpx2.Client(base_url=service.base_url, headers=_HEADERS) as api:
        tenant = {"organization_id": seed.ORGANIZATION_ID}
        project = {**tenant, "project_id": seed.PROJECT_ID}
        for number in range(_ROWS):
            for path, body in (
                ("/v1/organizations", {"name": f"Station {number}"}),
                ("/v1/projects", {**tenant, "name": f"Programme {number}"}),
                ("/v1/campaigns", {**project, "name": f"Campaign {number}"}),
                ("/v1/api-keys", {**project, "scopes": ["codes:read"]}),
                ("/v1/member-invitations", {**tenant, "email": f"invited-{number}@example.org", "role": "member"}),
            ):
                api.post(path, json=body).raise_for_status()
    # Core's own times have milliseconds, and so do the cursors of its lists.
    now = datetime.now(UTC).replace(microsecond=0)
    row = {"organization_id": seed.ORGANIZATION_ID, "endpoint_id": _ENDPOINT_ID, "now": now}
    with psycopg.connect(database.everything.reveal(), autocommit=True) as connection:
        connection.execute(_ENDPOINT, row)
        for number in range(_ROWS):
            for statement in _ROWS_OF_OTHERS:
                connection.execute(statement, {**row, "number": f"{number:022}"})


@contextlib.contextmanager
def running_console(base_url: str) -> Iterator[str]:
    """Run the console in front of the Core at this address, and yield its own."""
    with free_port() as port:
        url = f"http://127.0.0.1:{port}"
        environ = {
            **os.environ,
            "SOUNDMARK_BASE_URL": base_url,
            "SOUNDMARK_CONSOLE_URL": url,
            "SOUNDMARK_CONSOLE_KEY": base64.urlsafe_b64encode(_CONSOLE_KEY).decode().rstrip("="),
            "SOUNDMARK_OPERATOR_TOKEN": OPERATOR_TOKEN,
            "SOUNDMARK_LOG_LEVEL": "warning",
        }
        command = [sys.executable, "-m", "soundmark", "serve", "console", "--port", str(port), "--beside-others"]
        with process(command, environ):
            until(lambda: httpx2.get(f"{url}/healthz").status_code == httpx2.codes.OK)
            yield url

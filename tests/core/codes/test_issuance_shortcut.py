"""Single Codes are issued without the framework; every answer is the framework's to the byte, and logged as its own."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.api.core_settings import BASE_URL
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import INTENT, Tenant

from soundmark.core.features.codes.issuance import issue_group
from soundmark.kit.http.asgi import Receive, Scope, Send

PLAIN = {"Content-Type": "application/json", "X-Request-Id": "the-request"}
# The answer does not depend on it, and only the framework reads it.
UNUSUAL = {"Content-Type": "application/json; charset=utf-8"}
KEY = {"Idempotency-Key": "playout-2026-11-21~T18.00_a"}
MEMBERS = ("organization_id", "project_id", "campaign_id", "issuer", "expires_at", "intent", "audience", "unknown")
ODD_VALUES = (
    None, True, 0, -1, 7.0, 1.5, 2**53, "", "a", "a\x00b", "ä", "a" * 161, "a" * 5000, "2020-01-01T00:00:00Z",
    "2999-01-01T00:00:00+02:00", "2999-13-01T00:00:00Z", "org_" + "a" * 22, "prj_" + "a" * 22, "cmp_" + "a" * 22,
    [], [1], {}, {"enabled": True}, {"enabled": False}, {"enabled": False, "integration_id": "int_" + "a" * 22},
    {"enabled": True, "integration_id": "int_" + "a" * 22}, INTENT, INTENT | {"type": "x" * 200}, INTENT | {"more": 1},
    INTENT | {"resource": {"n": 2**60}}, INTENT | {"resource": {"t": "x" * 16384}}, INTENT | {"resource": []},
    {str(number): number for number in range(65)},
)  # fmt: skip
RAW_BODIES = (
    b"", b"{", b"null", b"[]", b'"text"', b"1e999", b"\xff", b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":"\\ud800"}',
    b"[" * 300 + b"]" * 300, b'{"organization_id":' + b"[" * 40 + b"]" * 40 + b"}", b" " * 9000 + b"{}",
    b'{"a":[' + b"1," * 30000 + b"1]}", b"[" + b"1," * 600000 + b"1]", b"x" * 1100000,
)  # fmt: skip


class Framework:
    """Counts the requests that reach the framework."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests_count = 0
        call = FastAPI.__call__

        async def count(app: FastAPI, scope: Scope, receive: Receive, send: Send) -> None:
            self.requests_count += 1
            await call(app, scope, receive, send)

        monkeypatch.setattr(FastAPI, "__call__", count)


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Framework:
    """The framework, which counts."""
    return Framework(monkeypatch)


@pytest.fixture
def restart_ids(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> Callable[[], None]:
    """Issued ids and tokens, which are the same after each call of this, at one time."""
    clock.freeze()
    numbers: list[Iterator[int]] = []
    true_mint = issue_group.mint

    def mint(entropy: Any, prefix: str, chars: int = 22) -> str:
        true_mint(entropy, prefix, chars)
        return f"{prefix}{next(numbers[-1]):0{chars}}"

    monkeypatch.setattr(issue_group, "mint", mint)
    return lambda: numbers.append(iter(range(1000)))


async def in_parts(content: bytes, size: int) -> AsyncIterator[bytes]:
    for begin in range(0, len(content), size):
        yield content[begin : begin + size]


async def answer(
    api: Api, content: bytes, headers: Mapping[str, str], query: str, part_bytes: int | None = None
) -> tuple[Any, ...]:
    """Send a request; return the status, headers and body of the answer, and what was logged of the request."""
    transport = httpx2.ASGITransport(app=api.app, client=(api.peer, 40000), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        auth = {} if api.token is None else {"Authorization": f"Bearer {api.token}"}
        with capture_logs() as logs:
            response = await client.post(
                "/v1/codes" + query,
                content=content if part_bytes is None else in_parts(content, part_bytes),
                headers={"Content-Length": str(len(content)), **auth, **headers},
            )
    lines = [{**line, "duration_ms": None} for line in logs if line["event"] == "request"]
    return response.status_code, response.headers.raw, response.content, lines


async def compare(
    api: Api,
    rival: Rival,
    restart_ids: Callable[[], None],
    content: bytes,
    *,
    headers: Mapping[str, str] = PLAIN,
    query: str = "",
    part_bytes: int | None = None,
) -> int:
    """Send the same request to the shortcut and to the framework; return the status of their equal answers."""
    answers = []
    for more in ({}, UNUSUAL):
        restart_ids()
        answers.append(await answer(api, content, {**headers, **more}, query, part_bytes))
        for table in ("broadcasts", "codes", "code_usage_days", "issuance_receipts"):
            await rival.run(f"DELETE FROM {table}")
    assert answers[0] == answers[1]
    assert [line["route"] for line in answers[0][-1]] == ["/v1/codes"]
    status: int = answers[0][0]
    return status


async def test_valid_requests_do_not_reach_the_framework(
    tenant: Tenant, rival: Rival, framework: Framework, restart_ids: Callable[[], None]
) -> None:
    campaign = await tenant.make_campaign()
    key = await tenant.make_key()
    owner, machine = tenant.api, tenant.api.other(token=key["secret"])
    before = framework.requests_count
    for api in (owner, machine):
        for changes in ({}, {"campaign_id": campaign["id"]}, {"audience": None}, {"audience": {"enabled": False}}):
            body = json.dumps(tenant.code_body(**changes)).encode()
            for headers in (PLAIN, PLAIN | KEY):
                assert await compare(api, rival, restart_ids, body, headers=headers) == 201
    assert framework.requests_count - before == 16  # The half that was sent to it.


async def test_every_odd_body_is_answered_as_by_the_framework(
    tenant: Tenant, rival: Rival, restart_ids: Callable[[], None], subtests: pytest.Subtests
) -> None:
    valid = tenant.code_body()
    bodies = [{name: value for name, value in valid.items() if name != left_out} for left_out in valid]
    bodies += [valid | {name: value} for name in MEMBERS for value in ODD_VALUES]
    statuses = set()
    for content in [json.dumps(body).encode() for body in bodies] + list(RAW_BODIES):
        with subtests.test(content[:200]):
            statuses.add(await compare(tenant.api, rival, restart_ids, content))
    assert statuses >= {201, 400, 404, 413, 422}


async def test_a_body_that_comes_in_parts_is_read_whole(
    tenant: Tenant, rival: Rival, restart_ids: Callable[[], None], framework: Framework
) -> None:
    valid = json.dumps(tenant.code_body()).encode()
    not_valid, not_json = json.dumps(tenant.code_body(issuer="")).encode(), valid[:-1]
    before = framework.requests_count
    for part_bytes in (1, 50, len(valid) - 1):
        assert await compare(tenant.api, rival, restart_ids, valid, part_bytes=part_bytes) == 201
    assert framework.requests_count - before == 3  # The half that was sent to it.
    for part_bytes in (1, 50, len(valid) - 2):
        # The framework reads again what the shortcut has read.
        assert await compare(tenant.api, rival, restart_ids, not_valid, part_bytes=part_bytes) == 422
        assert await compare(tenant.api, rival, restart_ids, not_json, part_bytes=part_bytes) == 400


@pytest.mark.parametrize("more", [{}, UNUSUAL], ids=["shortcut", "framework"])
async def test_a_client_that_goes_within_its_body_issues_nothing(
    tenant: Tenant, rival: Rival, framework: Framework, more: dict[str, str]
) -> None:
    body = json.dumps(tenant.code_body()).encode()
    headers = {**PLAIN, **more, "Content-Length": str(len(body)), "Authorization": f"Bearer {tenant.api.token}"}
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": body[:50], "more_body": True},
        {"type": "http.disconnect"},
    ]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/codes",
        "raw_path": b"/v1/codes",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": (tenant.api.peer, 40000),
        "server": ("core.test", 80),
        "state": {},
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if len(messages) > 1 else messages[0]

    async def send(message: Any) -> None:
        sent.append(message)

    await tenant.api.app(scope, receive, send)  # type: ignore[arg-type]  # the protocol's loose dicts
    assert framework.requests_count == 1, "the framework decides what becomes of it"
    assert await rival.rows("SELECT xr_id FROM codes") == []
    assert [message["status"] for message in sent if message["type"] == "http.response.start"] == [499], (
        "nobody reads it"
    )


async def test_callers_that_go_away_get_nobody_elses_code(tenant: Tenant, rival: Rival) -> None:
    """They leave at any moment: while the body is judged, between the statements, and before the answer."""
    chance = random.Random(1)  # noqa: S311 - no secret
    await tenant.make_quota(rival, 10_000)

    async def issue(number: int) -> tuple[int, Any]:
        made = await tenant.api.post("/v1/codes", json=tenant.code_body(issuer=f"Radio {number}"))
        return number, made.json

    answered: list[tuple[int, Any]] = []
    for first in range(0, 600, 30):
        tasks = [asyncio.create_task(issue(number)) for number in range(first, first + 30)]
        for task in chance.sample(tasks, 20):
            await asyncio.sleep(chance.uniform(0, 0.002))
            task.cancel()
        answered += [each for each in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(each, tuple)]
    assert 200 <= len(answered) < 600
    assert [made["issuer"] for _, made in answered] == [f"Radio {number}" for number, _ in answered]
    stored = dict(await rival.rows("SELECT xr_id, issuer FROM codes"))
    assert len(set(stored.values())) == len(stored), "each caller issues once at most"
    assert {made["xr_id"]: made["issuer"] for _, made in answered}.items() <= stored.items()
    counted = await rival.rows("SELECT sum(issued_count)::int FROM code_usage_days")
    assert counted == [(len(stored),)]


async def test_odd_headers_and_queries_are_answered_as_by_the_framework(
    tenant: Tenant, rival: Rival, restart_ids: Callable[[], None], subtests: pytest.Subtests
) -> None:
    valid = json.dumps(tenant.code_body()).encode()
    no_canonical_form = json.dumps(tenant.code_body(intent=INTENT | {"resource": {"t": "x" * 16384}})).encode()
    organization = {"X-Svc-Organization-Id": tenant.organization_id}
    for headers, query in (
        ({"Idempotency-Key": "short"}, ""),
        ({"Idempotency-Key": ""}, ""),
        (organization, ""),
        ({"X-Svc-Organization-Id": "another"}, ""),
        ({"Authorization": ""}, ""),
        ({"Authorization": "Bearer xak_" + "a" * 43}, ""),
        ({"Cookie": "a=b", "Origin": "https://example.org"}, ""),
        ({}, "?"),
        ({}, f"?organization_id={tenant.organization_id}"),
        ({}, "?dry_run=true"),
        (KEY, "?dry_run=true"),
        ({}, "?unknown=1"),
    ):
        for content in (valid, no_canonical_form, b"{}", b"{"):
            with subtests.test(headers=headers, query=query, content=content[:20]):
                whole = PLAIN | headers
                assert await compare(tenant.api, rival, restart_ids, content, headers=whole, query=query) < 500


async def test_callers_without_the_right_are_answered_as_by_the_framework(
    people: People, rival: Rival, restart_ids: Callable[[], None], subtests: pytest.Subtests
) -> None:
    tenant, foreign = await people.tenant_of("owner"), await people.tenant_of("owner")
    keys = {
        "without the scope": await tenant.make_key(scopes=["codes:read"]),
        "of another organisation": await foreign.make_key(),
        "that was revoked": await tenant.make_key(),
    }
    await tenant.api.post(f"/v1/api-keys/{keys['that was revoked']['id']}/revoke", params=tenant.query)
    callers = {name: tenant.api.other(token=key["secret"]) for name, key in keys.items()}
    callers["stranger"] = people.person("stranger")
    callers["nobody"] = tenant.api.other(token=None)
    for name, api in callers.items():
        for project_id in (tenant.project_id, foreign.project_id, "prj_" + "a" * 22):
            with subtests.test(name, project_id=project_id):
                content = json.dumps(tenant.code_body(project_id=project_id)).encode()
                assert await compare(api, rival, restart_ids, content) in {401, 403, 404}


async def test_a_used_up_quota_and_a_used_key_are_answered_as_by_the_framework(
    tenant: Tenant, rival: Rival, restart_ids: Callable[[], None]
) -> None:
    valid, other = (json.dumps(tenant.code_body(issuer=issuer)).encode() for issuer in ("one", "other"))
    restart_ids()
    first = await answer(tenant.api, valid, PLAIN | KEY, "")
    for headers in (PLAIN, PLAIN | UNUSUAL):
        assert await answer(tenant.api, valid, headers | KEY, "") == first
    refused = [await answer(tenant.api, other, headers | KEY, "") for headers in (PLAIN, PLAIN | UNUSUAL)]
    assert refused[0] == refused[1]
    assert refused[0][0] == 409
    await tenant.make_quota(rival, 0)
    assert await compare(tenant.api, rival, restart_ids, other) == 429

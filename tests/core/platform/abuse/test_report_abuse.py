"""`POST /v1/abuse-reports`: from everybody, about any Code, with the same answer whether there is one."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from ipaddress import IPv4Address
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.outside.redis_server import running_redis
from support.processes.running_apps import running_core
from support.tenancy.suspension import suspend
from support.tenancy.tenant import Tenant

from soundmark.core.features.platform.abuse.service import CLAIMS_AT_ONCE
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits import shared_server
from soundmark.kit.text.timestamps import format_timestamp

PATH, LIST = "/v1/abuse-reports", "/v1/platform/abuse-reports"
TEXT, CONTACT = "It offers a fake update.", "listener@example.org"
UNKNOWN = {"token": "brd_" + "A" * 16}
_peers = itertools.count()


def new_peer() -> str:
    """Return an address that has sent nothing yet: every test shares the Core under test."""
    return str(IPv4Address("198.18.0.0") + next(_peers))


async def report(api: Api, body: Any = None, *, peer: str | None = None, **changes: Any) -> Answer:
    peer = new_peer() if peer is None else peer
    sent = {**UNKNOWN, "category": "malware", "text": TEXT, **changes} if body is None else body
    return await api.other(token=None, peer=peer).post(PATH, json=sent)


async def about(api: Api, name: dict[str, str], *, peer: str | None = None, **changes: Any) -> Answer:
    return await report(api, {**name, "category": "malware", "text": TEXT, **changes}, peer=peer)


async def listed(api: Api) -> list[dict[str, Any]]:
    answer = await api.get(LIST)
    assert answer.status == 200, answer.body
    return list(answer.json["data"])


async def test_a_report_is_stored_with_its_code_whichever_way_it_is_named(tenant: Tenant, rival: Rival) -> None:
    """Without an address, a digest or a user agent, and what was written is sealed."""
    code = await tenant.make_code()
    now, peer = format_timestamp(tenant.api.clock.freeze()), new_peer()
    for name in ({"token": code["broadcast_token"]}, {"xr_id": code["xr_id"]}):
        answer = await about(tenant.api, name, contact=CONTACT, peer=peer)
        assert (answer.status, answer.body) == (202, b"{}")
        (stored,) = await listed(tenant.api)
        assert stored == {
            "id": stored["id"],
            "xr_id": code["xr_id"],
            "organization_id": tenant.organization_id,
            "category": "malware",
            "text": TEXT,
            "contact": CONTACT,
            "status": "open",
            "note": None,
            "created_at": now,
            "closed_at": None,
        }
        assert stored["id"].startswith("abr_")
        assert len(stored["id"]) == 26
        (row,) = await rival.rows("SELECT r::text FROM abuse_reports r")
        words = (TEXT, CONTACT, peer, "httpx")
        assert not any(form in row[0] for word in words for form in (word, word.encode().hex()))
        await rival.run("DELETE FROM abuse_reports")


async def test_codes_in_every_state_can_be_reported(tenant: Tenant) -> None:
    revoked, expired, active = await tenant.make_code(), await tenant.make_code(lifetime_s=1), await tenant.make_code()
    await tenant.revoke(revoked["xr_id"])
    tenant.api.clock.advance(seconds=2)
    await suspend(tenant.api, tenant.organization_id)
    for code in (revoked, expired, active):
        await about(tenant.api, {"token": code["broadcast_token"]}, text="")
    reports = await listed(tenant.api)
    assert {each["xr_id"] for each in reports} == {code["xr_id"] for code in (revoked, expired, active)}
    assert {each["text"] for each in reports} == {""}


async def test_what_fits_no_code_is_answered_alike_and_not_stored(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    known = await about(tenant.api, {"token": code["broadcast_token"]})
    for name in (UNKNOWN, {"xr_id": "xr_" + "A" * 22}):
        unknown = await about(tenant.api, name)
        assert (unknown.status, unknown.body) == (known.status, known.body)
        assert unknown.headers.keys() == known.headers.keys()
    assert len(await listed(tenant.api)) == 1
    assert await rival.rows("SELECT count(*) FROM abuse_reports") == [(1,)]


def counted() -> dict[str, float]:
    """Return how many reports were counted, by outcome."""
    found = {
        outcome: REGISTRY.get_sample_value("soundmark_abuse_reports_total", {"outcome": outcome})
        for outcome in ("stored", "unknown")
    }
    return {outcome: value or 0.0 for outcome, value in found.items()}


async def test_reports_are_counted_once_by_what_became_of_them(tenant: Tenant) -> None:
    code, before = await tenant.make_code(), counted()

    def added() -> tuple[float, float]:
        now = counted()
        return now["stored"] - before["stored"], now["unknown"] - before["unknown"]

    await about(tenant.api, {"token": code["broadcast_token"]})
    assert added() == (1, 0)
    await about(tenant.api, UNKNOWN)
    assert added() == (1, 1)
    for xr_id in (code["xr_id"], "xr_" + "A" * 22):
        await about(tenant.api, {"xr_id": xr_id})
    assert added() == (1, 1), "nobody has looked for these Codes yet"
    for _ in range(2):
        await listed(tenant.api)
        assert added() == (2, 2)
    assert (await report(tenant.api, category="boring")).status == 422
    assert added() == (2, 2), "a malformed one is none"


async def test_nothing_that_people_wrote_and_no_address_reaches_a_log(tenant: Tenant) -> None:
    code, note, peer = await tenant.make_code(), "We asked the police.", new_peer()
    with capture_logs() as logs:
        for name in ({"token": code["broadcast_token"]}, {"xr_id": code["xr_id"]}, UNKNOWN):
            await about(tenant.api, name, contact=CONTACT, peer=peer)
        assert (await about(tenant.api, UNKNOWN, contact=CONTACT + "x" * 254, peer=peer)).status == 422
        for each in await listed(tenant.api):
            changed = await tenant.api.put(f"{LIST}/{each['id']}", json={"status": "closed", "note": note})
            assert changed.status == 200
    events = [line["event"] for line in logs]
    assert (events.count("abuse_reported"), events.count("abuse_report_changed")) == (2, 2)
    assert not any(written in repr(line) for line in logs for written in (TEXT, CONTACT, note, peer))


async def test_a_report_by_id_reads_no_organisation_during_the_request(tenant: Tenant, rival: Rival) -> None:
    """It would cost the more, the more organisations there are; so a job and the platform's list do, for a few."""
    code = await tenant.make_code()
    async with rival.holding("LOCK TABLE organizations, codes, broadcasts IN ACCESS EXCLUSIVE MODE"):
        for xr_id in (code["xr_id"], "xr_" + "A" * 22):
            assert (await about(tenant.api, {"xr_id": xr_id})).status == 202
    (stored,) = await listed(tenant.api)
    assert stored["xr_id"] == code["xr_id"]


async def test_claims_are_settled_a_few_at_a_time_the_oldest_first(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    for xr_id in (*(f"xr_{number:022}" for number in range(CLAIMS_AT_ONCE)), code["xr_id"]):
        await about(tenant.api, {"xr_id": xr_id})
        tenant.api.clock.advance(seconds=1)
    assert await listed(tenant.api) == []
    assert await rival.rows("SELECT xr_id FROM abuse_reports") == [(code["xr_id"],)]
    assert len(await listed(tenant.api)) == 1
    assert await rival.rows("SELECT is_claim FROM abuse_reports") == [(False,)]


async def test_a_claim_is_no_report_that_can_be_closed(tenant: Tenant, rival: Rival) -> None:
    await about(tenant.api, {"xr_id": "xr_" + "A" * 22})
    ((report_id,),) = await rival.rows("SELECT id FROM abuse_reports")
    closed = await tenant.api.put(f"{LIST}/{report_id}", json={"status": "closed", "note": None})
    assert (closed.status, closed.code) == (404, "abuse_report_not_found")


@pytest.mark.parametrize(
    "changes",
    [
        {"xr_id": "xr_" + "A" * 22},
        {"token": None},
        {"token": "brd_short"},
        {"token": "XRC1:brd_" + "A" * 16},
        {"category": "boring"},
        {"category": None},
        {"text": None},
        {"text": "a" * 2001},
        {"contact": ""},
        {"contact": "a" * 255},
        {"reporter": "me"},
    ],
)
async def test_a_malformed_report_is_refused(api: Api, changes: dict[str, Any]) -> None:
    answer = await report(api, **changes)
    assert (answer.status, answer.code) == (422, "validation_failed")


@pytest.mark.parametrize("body", [{"category": "spam", "text": ""}, {**UNKNOWN, "category": "spam"}, {}, [], "x"])
async def test_members_are_required_and_the_code_named_once(api: Api, body: Any) -> None:
    assert (await report(api, body)).status == 422


async def test_the_longest_report_is_taken(tenant: Tenant) -> None:
    code = await tenant.make_code()
    text, contact = "ä\0" * 1000, "é" * 254
    assert (await about(tenant.api, {"token": code["broadcast_token"]}, text=text, contact=contact)).status == 202
    (stored,) = await listed(tenant.api)
    assert (stored["text"], stored["contact"]) == (text, contact)


async def test_ten_an_hour_of_the_clock_from_one_address(api: Api) -> None:
    """Refused ones count, and every answer says what is left; the eleventh has to wait until the hour ends."""
    api.clock.freeze()
    api.clock.advance(seconds=3600 - api.clock.now().timestamp() % 3600 + 600)
    peer = new_peer()
    for number in range(10):
        answer = await report(api, None if number % 2 else {}, peer=peer)
        assert answer.status == (202 if number % 2 else 422)
        assert answer.headers["ratelimit-policy"] == '"abuse";q=10;w=3600'
        assert answer.headers["ratelimit"] == f'"abuse";r={9 - number};t=3000'
    limited = await report(api, peer=peer)
    assert (limited.status, limited.code, limited.headers["retry-after"]) == (429, "rate_limited", "3000")
    assert limited.headers["ratelimit"] == '"abuse";r=0;t=3000'
    assert (await report(api)).status == 202
    assert (await api.other(token=None, peer=peer).get("/v1/resolve/brd_x")).status == 404
    api.clock.advance(seconds=2999)
    assert (await report(api, peer=peer)).status == 429
    api.clock.advance(seconds=1)
    assert (await report(api, peer=peer)).headers["ratelimit"] == '"abuse";r=9;t=3600'


async def test_a_page_of_any_origin_may_send_it(api: Api) -> None:
    origin = {"Origin": "https://listen.example"}
    asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    allowed = await api.other(token=None).call("OPTIONS", PATH, headers=asked)
    assert allowed.status == 204
    assert allowed.headers["access-control-allow-methods"] == "POST"
    assert allowed.headers["access-control-allow-headers"] == "Content-Type"
    assert "ratelimit" not in allowed.headers
    stranger = api.other(token=None, peer=new_peer())
    for status in [422] * 10 + [429]:
        answer = await stranger.post(PATH, json={}, headers=origin)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, "*")
        assert "RateLimit" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers


async def test_a_credential_is_not_read(api: Api) -> None:
    """A wrong one is no reason to refuse a report."""
    for token in (None, "xak_" + "A" * 43, "nonsense"):
        stranger = api.other(token=token, peer=new_peer())
        answer = await stranger.post(PATH, json={**UNKNOWN, "category": "spam", "text": ""})
        assert answer.status == 202


async def test_reports_by_the_thousand_from_many_addresses(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    name = {"token": code["broadcast_token"]}
    gate = asyncio.Semaphore(8)

    async def send() -> int:
        async with gate:
            return (await about(tenant.api, name)).status

    assert set(await asyncio.gather(*(send() for _ in range(1000)))) == {202}
    assert await rival.rows("SELECT count(*) FROM abuse_reports") == [(1000,)]
    found, cursor = set[str](), None
    while True:
        answer = await tenant.api.get(LIST, params={"limit": 100, **({"cursor": cursor} if cursor else {})})
        found |= {each["id"] for each in answer.json["data"]}
        cursor = answer.json["next_cursor"]
        if cursor is None:
            break
    assert len(found) == 1000


async def test_a_report_of_an_organisation_that_is_deleted_meanwhile_is_dropped(tenant: Tenant, rival: Rival) -> None:
    """Otherwise it would keep the name of an organisation that has left."""
    code = await tenant.make_code()
    await rival.run("DELETE FROM codes")
    async with rival.committing("DELETE FROM organizations WHERE id = %s", tenant.organization_id):
        reporting = await rival.while_waiting(about(tenant.api, {"token": code["broadcast_token"]}))
    assert (await reporting).status == 202
    assert await rival.rows("SELECT FROM abuse_reports") == []


async def test_a_report_that_is_killed_while_it_is_stored_leaves_nothing(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    async with rival.holding("LOCK TABLE abuse_reports IN SHARE MODE"):
        reporting = await rival.while_waiting(about(tenant.api, {"token": code["broadcast_token"]}))
        await rival.kill_waiting_sessions()
        assert (await reporting).code == "database_unavailable"
    assert await rival.rows("SELECT FROM abuse_reports") == []


@pytest.fixture
async def sharing(database_url: Secret) -> AsyncIterator[tuple[Api, Api]]:
    """Two processes of Core that count in one place."""
    async with running_redis() as server:
        settings = core_settings(database_url, rate_limit_url=server.url)
        async with running_core(settings) as one, running_core(settings, one.clock) as two:
            yield one, two


async def test_processes_that_share_their_limits_count_together(
    sharing: tuple[Api, Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_server, "_TIMEOUT_S", 10)  # A busy machine is not a server that is away.
    peer = new_peer()
    statuses = [(await report(sharing[number % 2], peer=peer)).status for number in range(12)]
    assert statuses == [202] * 10 + [429] * 2

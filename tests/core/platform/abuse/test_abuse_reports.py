"""The platform's list of abuse reports, what it does with one, and how long what people wrote is kept."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.platform.abuse_report import AbuseReport, OpenedReport
from soundmark.core.features.platform.abuse.service import (
    CLAIMS_AT_ONCE,
    forget_reports,
    settle_claims,
    settle_waiting_claims,
)
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

LIST = "/v1/platform/abuse-reports"
ABSENT = "abr_" + "A" * 22
_peers = itertools.count()


async def put(api: Api, report_id: str, status: Any = "closed", note: Any = "Suspended.") -> Answer:
    return await api.put(f"{LIST}/{report_id}", json={"status": status, "note": note})


async def listed(api: Api, **params: Any) -> list[dict[str, Any]]:
    answer = await api.get(LIST, params=params)
    assert answer.status == 200, answer.body
    return list(answer.json["data"])


async def make_report(tenant: Tenant, text: str = "It is spam.", contact: str | None = "me@example.org") -> str:
    """Report a new Code, from an address of its own, and return the report's id."""
    code = await tenant.make_code()
    body = {"xr_id": code["xr_id"], "category": "spam", "text": text, "contact": contact}
    peer = str(IPv4Address("198.19.0.0") + next(_peers))
    answer = await tenant.api.other(token=None, peer=peer).post("/v1/abuse-reports", json=body)
    assert answer.status == 202, answer.body
    return str((await listed(tenant.api))[0]["id"])


@pytest.fixture
async def work(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    async with make_worker(database_url, clock) as ctx:
        yield ctx


async def test_a_report_is_closed_reopened_and_noted(tenant: Tenant) -> None:
    """Closing it again keeps the time, and each note replaces the one before."""
    api = tenant.api
    report_id = await make_report(tenant)
    (opened,) = await listed(api)
    now = format_timestamp(api.clock.freeze())
    closed = {**opened, "status": "closed", "note": "Suspended.", "closed_at": now}
    assert (await put(api, report_id)).json == closed
    api.clock.advance(seconds=1)
    assert (await put(api, report_id, note="Asked them.")).json == {**closed, "note": "Asked them."}
    assert (await put(api, report_id, "open", None)).json == opened
    assert await listed(api) == [opened]


async def test_lists_are_newest_first_and_by_status(tenant: Tenant) -> None:
    ids = []
    for _ in range(3):
        ids.append(await make_report(tenant))
        tenant.api.clock.advance(milliseconds=1)
    await put(tenant.api, ids[1])
    assert [each["id"] for each in await listed(tenant.api)] == ids[::-1]
    assert [each["id"] for each in await listed(tenant.api, status="open")] == [ids[2], ids[0]]
    assert [each["id"] for each in await listed(tenant.api, status="closed")] == [ids[1]]
    first = await tenant.api.get(LIST, params={"limit": 1, "status": "open"})
    other = await tenant.api.get(LIST, params={"limit": 1, "cursor": first.json["next_cursor"]})
    assert (other.status, other.code) == (422, "invalid_cursor")


@pytest.mark.parametrize("report_id", [ABSENT, "nobody", "abr_'; --"])
async def test_an_unknown_report_is_not_found(api: Api, report_id: str) -> None:
    answer = await put(api, report_id)
    assert (answer.status, answer.code) == (404, "abuse_report_not_found")


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"status": "closed"},
        {"note": None},
        {"status": "done", "note": None},
        {"status": "open", "note": ""},
        {"status": "open", "note": "a" * 2001},
        {"status": "open", "note": None, "text": "x"},
    ],
)
async def test_a_malformed_change_is_refused(tenant: Tenant, body: Any) -> None:
    report_id = await make_report(tenant)
    assert (await tenant.api.put(f"{LIST}/{report_id}", json=body)).status == 422


@pytest.mark.parametrize(("is_closed", "kept_days"), [(True, 90), (False, 365)])
async def test_what_people_wrote_is_deleted_after_its_time(
    tenant: Tenant, work: Context, clock: FakeClock, *, is_closed: bool, kept_days: int
) -> None:
    """90 days after closing, and 365 after the report. Reopening restores nothing."""
    clock.freeze()
    report_id = await make_report(tenant)
    if is_closed:
        await put(tenant.api, report_id)
    (before,) = await listed(tenant.api)
    clock.advance(seconds=timedelta(days=kept_days).total_seconds(), milliseconds=-1)
    assert await forget_reports(work) == 0
    assert await listed(tenant.api) == [before]
    clock.advance(milliseconds=1)
    assert await forget_reports(work) == 1
    forgotten = {**before, "text": None, "contact": None, "note": None}
    assert await listed(tenant.api) == [forgotten]
    assert await forget_reports(work) == 0
    reopened = (await put(tenant.api, report_id, "open", None)).json
    assert (reopened["status"], reopened["text"], reopened["contact"]) == ("open", None, None)


async def test_a_year_is_the_end_however_late_a_report_is_closed(
    tenant: Tenant, work: Context, clock: FakeClock
) -> None:
    clock.freeze()
    report_id = await make_report(tenant)
    clock.advance(days=300)
    await put(tenant.api, report_id)
    clock.advance(days=65)
    assert await forget_reports(work) == 1


async def test_a_thousand_old_reports_are_forgotten_in_steps(work: Context, rival: Rival, api: Api) -> None:
    await rival.run(
        "INSERT INTO abuse_reports (id, xr_id, category, status, created_at, sealed_text)"
        " SELECT 'abr_' || n, 'xr_1', 'spam', 'open', now() - interval '400 days', 'x' FROM generate_series(1, 1001) n"
    )
    assert await forget_reports(work) == 1001
    assert await rival.rows("SELECT FROM abuse_reports WHERE sealed_text IS NOT NULL") == []
    assert (await api.get(LIST, params={"limit": 1})).json["data"][0]["text"] is None


async def test_deleting_the_organisation_closes_its_reports_and_takes_its_name_out(tenant: Tenant) -> None:
    """The rows are the platform's and stay; no certificate counts them."""
    api = tenant.api
    first, second = await make_report(tenant), await make_report(tenant)
    await put(api, first)
    before = {each["id"]: each for each in await listed(api)}
    now = format_timestamp(api.clock.freeze())
    body = {"confirmation": tenant.organization_id}
    deleted = await api.call("DELETE", f"/v1/organizations/{tenant.organization_id}", json=body)
    assert deleted.status == 204, deleted.body
    after = {each["id"]: each for each in await listed(api)}
    assert after[first] == {**before[first], "organization_id": None}
    assert after[second] == {**before[second], "organization_id": None, "status": "closed", "closed_at": now}
    certificate = await api.get(deleted.headers["location"])
    assert "report" not in certificate.body.decode()


@pytest.mark.parametrize("what", ["organisation", "project"])
async def test_a_deletion_does_not_outrun_a_report_that_names_its_code_by_id(
    tenant: Tenant, work: Context, what: str
) -> None:
    """Nobody has looked for the Code yet; a claim whose Code is gone would be dropped."""
    api, code = tenant.api, await tenant.make_code()
    body = {"xr_id": code["xr_id"], "category": "illegal", "text": "Look at this.", "contact": None}
    peer = str(IPv4Address("198.19.0.0") + next(_peers))
    assert (await api.other(token=None, peer=peer).post("/v1/abuse-reports", json=body)).status == 202
    subject = tenant.organization_id if what == "organisation" else tenant.project_id
    path = f"/v1/organizations/{subject}" if what == "organisation" else f"/v1/projects/{subject}"
    deleted = await api.call("DELETE", path, params=tenant.query, json={"confirmation": subject})
    assert deleted.status == 204, deleted.body
    await settle_waiting_claims(work)
    (report,) = await listed(api)
    assert report["text"] == "Look at this."
    assert (report["xr_id"], report["status"], report["organization_id"]) == (
        (code["xr_id"], "closed", None) if what == "organisation" else (code["xr_id"], "open", tenant.organization_id)
    )


async def test_exports_hold_no_report(tenant: Tenant) -> None:
    report_id = await make_report(tenant)
    exported = await tenant.api.get(f"/v1/organizations/{tenant.organization_id}/export")
    assert exported.status == 200
    assert report_id not in exported.body.decode()


async def test_the_worker_settles_all_that_wait(tenant: Tenant, work: Context) -> None:
    code = await tenant.make_code()
    for xr_id in (*(f"xr_{number:022}" for number in range(CLAIMS_AT_ONCE)), code["xr_id"]):
        peer = str(IPv4Address("198.19.0.0") + next(_peers))
        await tenant.api.other(token=None, peer=peer).post(
            "/v1/abuse-reports", json={"xr_id": xr_id, "category": "spam", "text": ""}
        )
    assert await settle_waiting_claims(work) == CLAIMS_AT_ONCE + 1
    assert await settle_waiting_claims(work) == 0
    assert len(await listed(tenant.api)) == 1


async def test_two_workers_settle_each_claim_once(tenant: Tenant, work: Context) -> None:
    code = await tenant.make_code()
    for xr_id in (code["xr_id"], "xr_" + "A" * 22):
        peer = str(IPv4Address("198.19.0.0") + next(_peers))
        body = {"xr_id": xr_id, "category": "spam", "text": ""}
        assert (await tenant.api.other(token=None, peer=peer).post("/v1/abuse-reports", json=body)).status == 202
    counts = await asyncio.gather(settle_claims(work), settle_claims(work))
    assert max(counts) == 2
    assert await settle_claims(work) == 0
    (stored,) = await listed(tenant.api)
    assert (stored["xr_id"], stored["organization_id"]) == (code["xr_id"], tenant.organization_id)


def test_no_log_shows_what_people_wrote() -> None:
    report = AbuseReport(
        "abr_1", None, "xr_1", "spam", "open", datetime(2026, 11, 28, tzinfo=UTC), None, *[b"MARK"] * 3
    )
    assert "MARK" not in repr(OpenedReport(report, *["MARK"] * 3))

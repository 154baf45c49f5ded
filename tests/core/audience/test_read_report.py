"""Reports through Core: what it checks itself, what it asks Audience, and how it handles an Audience that fails."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from support.api.core_client import Answer, Api
from support.audience.faults import KINDS, core_beside, failing_audience
from support.audience.measured_tenant import MeasuredTenant, measure_tenant
from support.audience.recorded_events import RecordedEvent, assert_reconciles, cells, store_events
from support.database.rival import Rival
from support.outside.misbehaving_server import answer, misbehaving_server
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

UNKNOWN = {"campaign_id": "cmp_" + "u" * 22, "xr_id": "xr_" + "u" * 22}
NOT_FOUND = {"campaign_id": "campaign_not_found", "xr_id": "code_not_found"}


def refused(answered: Answer) -> tuple[int, str | None]:
    return answered.status, answered.code


@pytest.fixture
async def measured(tenant: Tenant, beside_core_url: Secret) -> MeasuredTenant:
    """A tenant with measured events."""
    return await measure_tenant(tenant, beside_core_url)


async def test_a_report_shows_what_was_measured(measured: MeasuredTenant) -> None:
    now = measured.tenant.api.clock.freeze()
    answered = await measured.report()

    content = answered.json
    assert (answered.status, answered.headers["cache-control"], answered.headers["vary"]) == (200, "no-store", "Accept")
    assert_reconciles(content)
    assert (content["integration_id"], content["mode"]) == (measured.integration["id"], "demo")
    assert content["period"]["to"] == format_timestamp(now)
    assert (content["events"], content["estimated_reach"], content["average_frequency"]) == (3, 2, 1.5)
    assert content["by_campaign"] == [
        {"campaign_id": measured.campaign["id"], "events": 2, "estimated_reach": 2},
        {"campaign_id": None, "events": 1, "estimated_reach": 1},
    ]
    assert content["by_frequency"] == [{"frequency": 2, "tokens": 1}, {"frequency": 1, "tokens": 1}]
    assert content["integrity_signals"]["event_replays"] == 3


@pytest.mark.parametrize(("named", "events"), [(("campaign_id",), 2), (("xr_id",), 2), (("campaign_id", "xr_id"), 2)])
async def test_filters_combine_as_an_intersection(
    measured: MeasuredTenant, named: tuple[str, ...], events: int
) -> None:
    filters = {"campaign_id": measured.campaign["id"], "xr_id": measured.in_campaign["xr_id"]}
    query = {name: filters[name] for name in named}

    content = (await measured.report(**query)).json

    assert content["events"] == events
    assert content["filters"] == {"campaign_id": None, "xr_id": None, **query}
    assert content["integrity_signals"]["event_replays"] == 3


async def test_a_code_outside_the_campaign_leaves_nothing(measured: MeasuredTenant) -> None:
    content = await measured.report(campaign_id=measured.campaign["id"], xr_id=measured.alone["xr_id"])

    assert (content.status, content.json["events"]) == (200, 0)


async def test_an_archived_campaign_and_a_revoked_code_stay_reportable(measured: MeasuredTenant) -> None:
    tenant = measured.tenant
    stopped = await tenant.api.post(f"/v1/campaigns/{measured.campaign['id']}/stop", params=tenant.query)
    assert (stopped.status, stopped.json["revoked_count"]) == (200, 1)

    content = await measured.report(campaign_id=measured.campaign["id"], xr_id=measured.in_campaign["xr_id"])

    assert content.json["events"] == 2


async def test_a_revoked_integration_stays_reportable(measured: MeasuredTenant) -> None:
    assert (await measured.tenant.change_integration("revoke", measured.integration["id"])).status == 200

    assert (await measured.report()).json["events"] == 3


async def test_the_period_is_passed_on(measured: MeasuredTenant) -> None:
    now = measured.tenant.api.clock.now()
    begin, end = now - timedelta(hours=2), now - timedelta(minutes=30)

    content = (await measured.report(**{"from": format_timestamp(begin), "to": format_timestamp(end)})).json

    assert content["period"] == {"from": format_timestamp(begin), "to": format_timestamp(end)}
    assert content["events"] == 2


async def test_the_csv_has_the_same_numbers(measured: MeasuredTenant) -> None:
    answered = await measured.report(accept="text/csv")

    rows = cells(answered.body)
    assert answered.headers["content-type"].startswith("text/csv")
    assert ("total", "", "events", "3") in rows
    assert ("by_campaign", measured.campaign["id"], "estimated_reach", "2") in rows
    assert ("by_country", "", "events", "1") in rows


@pytest.fixture
async def unasked(
    measured: MeasuredTenant, database_url: Secret, clock: FakeClock
) -> Callable[..., Awaitable[tuple[Answer, int]]]:
    """A function that asks a Core for a report and asserts that its Audience was not called."""

    async def ask(path: str | None = None, **query: str) -> tuple[Answer, int]:
        async with (
            misbehaving_server(answer(b"{}")) as server,
            core_beside(server.url, database_url, clock) as core,
        ):
            requested = len(server.requests)
            params = {**measured.tenant.in_project, **query}
            answered = await core.get(path or measured.path, params=params)
            return answered, len(server.requests) - requested

    return ask


async def test_a_resource_outside_the_project_is_not_found_without_a_call(
    api: Api, measured: MeasuredTenant, unasked: Callable[..., Awaitable[tuple[Answer, int]]]
) -> None:
    """Unknown, malformed, of another tenant or project, and a Code that another integration measures."""
    tenant = measured.tenant
    foreign = await make_tenant(api)
    project = await api.post("/v1/projects", json={**tenant.query, "name": "Evening show"})
    neighbour = replace(tenant, project_id=project.json["id"])
    other = await tenant.make_integration()
    wrong: list[tuple[str, str]] = []
    for owner in (foreign, neighbour):
        wrong += [
            ("campaign_id", (await owner.make_campaign(name="Elsewhere"))["id"]),
            ("xr_id", (await owner.make_code())["xr_id"]),
        ]
    wrong += [
        ("xr_id", (await tenant.make_code())["xr_id"]),
        ("xr_id", (await tenant.make_code(audience={"enabled": True, "integration_id": other["id"]}))["xr_id"]),
        *UNKNOWN.items(),
        ("campaign_id", "summer"),
        ("xr_id", "xr_\x00"),
    ]
    for name, value in wrong:
        answered, requested = await unasked(**{name: value})
        assert (refused(answered), requested) == ((404, NOT_FOUND[name]), 0), (name, value)
    answered, requested = await unasked(campaign_id=UNKNOWN["campaign_id"], xr_id=measured.alone["xr_id"])
    assert (refused(answered), requested) == ((404, "campaign_not_found"), 0)


@pytest.mark.parametrize(
    "query",
    [
        {"from": "2026-11-02T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
        {"from": "2026-11-03T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
        {"from": "9999-01-01T00:00:00Z"},
        {"from": "2026-11-02T00:00:00"},
        {"xr_id": "x" * 161},
    ],
)
async def test_a_malformed_query_is_refused_without_a_call(
    unasked: Callable[..., Awaitable[tuple[Answer, int]]], query: dict[str, str]
) -> None:
    answered, requested = await unasked(**query)

    assert (refused(answered), requested) == ((422, "validation_failed"), 0)


async def test_a_malformed_integration_id_is_not_found_without_a_call(
    unasked: Callable[..., Awaitable[tuple[Answer, int]]],
) -> None:
    for wrong in ("int_short", "xr_" + "a" * 22, "int_with.dots.and~tildes", "int_" + "a" * 150):
        answered, requested = await unasked(path=f"/v1/audience/reports/{wrong}")
        assert (refused(answered), requested) == ((404, "integration_not_found"), 0), wrong


async def test_a_report_that_is_too_large_is_refused(measured: MeasuredTenant, beside_core_url: Secret) -> None:
    at = measured.tenant.api.clock.now() - timedelta(hours=1)
    events = [RecordedEvent(at, 7, f"xr_{number:022d}") for number in range(10_000)]
    await asyncio.to_thread(store_events, beside_core_url, measured.integration["id"], events)

    assert refused(await measured.report()) == (422, "report_too_large")
    assert (await measured.report(xr_id=measured.alone["xr_id"])).json["events"] == 1


async def test_an_unsupported_media_type_is_not_acceptable(measured: MeasuredTenant) -> None:
    assert refused(await measured.report(accept="text/html")) == (406, "not_acceptable")


@pytest.mark.parametrize("fault", KINDS)
async def test_a_failing_audience_has_no_report(
    database_url: Secret, clock: FakeClock, tenant: Tenant, rival: Rival, fault: str
) -> None:
    """Within the deadline, which is a second here, and the rest of Core keeps working."""
    await tenant.give_cell(rival)
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as core, asyncio.timeout(3.5):
        report, legacy, codes = await asyncio.gather(
            core.get("/v1/audience/reports/int_" + "a" * 22, params=tenant.in_project),
            core.get("/v1/audience/legacy-report", params=tenant.in_project),
            core.get("/v1/codes", params=tenant.query),
        )
    assert refused(report) == refused(legacy) == (503, "audience_unavailable")
    assert codes.status == 200


async def test_a_report_of_another_integration_is_not_accepted(
    measured: MeasuredTenant, database_url: Secret, clock: FakeClock
) -> None:
    """Of another integration, filter or period; with a member too many, or one too few."""
    clock.freeze()
    genuine = (await measured.report()).json
    wrong = [
        {**genuine, "integration_id": "int_" + "x" * 22},
        {**genuine, "filters": {"campaign_id": measured.campaign["id"], "xr_id": None}},
        {**genuine, "period": {**genuine["period"], "to": "2026-11-02T00:00:00.000Z"}},
        {**genuine, "tokens": ["mt_" + "t" * 43]},
        {**genuine, "by_day": genuine["by_day"] * 10_001},
        {**genuine, "events": -1},
        {**genuine, "average_frequency": float("inf")},
        {name: value for name, value in genuine.items() if name != "by_country"},
    ]
    for body in [genuine, *wrong]:
        async with (
            misbehaving_server(answer(json.dumps(body).encode())) as server,
            core_beside(server.url, database_url, clock) as core,
        ):
            answered = await core.get(measured.path, params=measured.tenant.in_project)
        if body is genuine:
            assert answered.json == genuine
        else:
            assert refused(answered) == (503, "audience_unavailable")


async def test_the_legacy_report_is_labelled_as_legacy(
    measured: MeasuredTenant, measuring: Rival, clock: FakeClock
) -> None:
    """Without reach, for this project only, and for the days that the period touches."""
    tenant = measured.tenant
    today = clock.freeze().date()
    rows = [(tenant.project_id, today - timedelta(days=days), 10 + days) for days in (0, 1, 40)]
    for project_id, day, events in [*rows, ("prj_" + "f" * 22, today, 99)]:
        await measuring.run(
            "INSERT INTO legacy_days VALUES (%s, %s, %s, %s)", tenant.organization_id, project_id, day, events
        )

    whole = await tenant.api.get("/v1/audience/legacy-report", params=tenant.in_project)
    recent = await tenant.api.get(
        "/v1/audience/legacy-report",
        params={**tenant.in_project, "from": format_timestamp(clock.now() - timedelta(days=1))},
    )
    as_csv = await tenant.api.call(
        "GET", "/v1/audience/legacy-report", params=tenant.in_project, headers={"Accept": "text/csv"}
    )

    assert whole.status == 200
    assert whole.json["label"] == "legacy_unverified_aggregate"
    assert whole.json["reach_comparable_to_xr_v1"] is False
    assert "estimated_reach" not in whole.body.decode()
    assert (whole.json["organization_id"], whole.json["project_id"]) == (tenant.organization_id, tenant.project_id)
    assert whole.json["by_day"] == [
        {"day": day.isoformat(), "events": events} for _, day, events in sorted(rows, key=lambda row: row[1])
    ]
    assert whole.json["events"] == 71
    assert recent.json["events"] == 21
    assert ("by_day", today.isoformat(), "events", "10") in cells(as_csv.body)

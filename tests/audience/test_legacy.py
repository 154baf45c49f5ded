"""Aggregates from before XR v1: replaced day by day, labelled, and of one project."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.client import ORGANIZATION, PROJECT, AudienceApi
from support.database.rival import Rival

QUERY = {"organization_id": ORGANIZATION, "project_id": PROJECT}


async def put(audience: AudienceApi, days: Any, **changes: Any) -> Answer:
    if isinstance(days, dict):
        days = [{"day": day, "events": events} for day, events in days.items()]
    return await audience.call("PUT", "/v1/legacy-days", json={**QUERY, "days": days, **changes})


async def report(audience: AudienceApi, **query: str) -> Answer:
    return await audience.call("GET", "/v1/legacy-report", params={**QUERY, **query})


async def test_the_report_says_what_it_is(audience: AudienceApi) -> None:
    assert (await put(audience, {"2026-03-02": 5, "2026-03-01": 7})).json == {"days": 2}

    answer = await report(audience, to="2026-04-01T00:00:00.000Z")

    assert answer.status == 200
    assert answer.json == {
        "label": "legacy_unverified_aggregate",
        "reach_comparable_to_xr_v1": False,
        **QUERY,
        "period": {"from": "2026-03-01T00:00:00.000Z", "to": "2026-04-01T00:00:00.000Z"},
        "by_day": [{"day": "2026-03-01", "events": 7}, {"day": "2026-03-02", "events": 5}],
        "events": 12,
    }
    assert "estimated_reach" not in answer.body.decode()


async def test_a_day_that_is_put_again_is_replaced_and_the_others_stay(audience: AudienceApi) -> None:
    await put(audience, {"2026-03-01": 7, "2026-03-02": 5})
    for _ in range(2):
        await put(audience, {"2026-03-02": 6})

    answer = (await report(audience)).json
    assert [day["events"] for day in answer["by_day"]] == [7, 6]
    assert answer["events"] == 13


async def test_whole_days_that_the_period_touches_are_counted(audience: AudienceApi) -> None:
    await put(audience, {f"2026-03-0{day}": day for day in range(1, 6)})

    async def days(**query: str) -> list[str]:
        return [row["day"][-2:] for row in (await report(audience, **query)).json["by_day"]]

    assert await days() == ["01", "02", "03", "04", "05"]
    assert await days(**{"from": "2026-03-02T00:00:00.000Z"}) == ["02", "03", "04", "05"]
    assert await days(**{"from": "2026-03-02T23:59:59.999Z"}) == ["02", "03", "04", "05"]
    assert await days(to="2026-03-04T00:00:00.000Z") == ["01", "02", "03"]
    assert await days(to="2026-03-04T00:00:00.001Z") == ["01", "02", "03", "04"]
    assert await days(**{"from": "2026-03-03T01:00:00+02:00", "to": "2026-03-03T00:00:00.000Z"}) == ["02"]


async def test_without_aggregates_the_report_is_empty(audience: AudienceApi) -> None:
    audience.clock.freeze()

    answer = (await report(audience)).json

    assert (answer["by_day"], answer["events"]) == ([], 0)
    assert answer["period"]["from"] < answer["period"]["to"]


async def test_other_tenants_and_projects_have_their_own(audience: AudienceApi) -> None:
    await put(audience, {"2026-03-01": 1})
    await put(audience, {"2026-03-01": 2}, organization_id="org_another")
    await put(audience, {"2026-03-01": 3}, project_id="prj_another")

    assert (await report(audience)).json["events"] == 1
    assert (await report(audience, organization_id="org_another")).json["events"] == 2
    assert (await report(audience, project_id="prj_another")).json["events"] == 3
    assert (await report(audience, organization_id="org_third")).json["events"] == 0


async def test_a_period_must_begin_before_it_ends(audience: AudienceApi) -> None:
    moment = "2026-03-01T00:00:00.000Z"
    first = "0001-01-01T00:00:00.000Z"
    wrong = (
        {"from": moment, "to": moment},
        {"from": "2126-01-01T00:00:00.000Z"},
        {"from": "2026-03-01"},
        {"to": first},
    )
    for query in wrong:
        answer = await report(audience, **query)
        assert (answer.status, answer.json["code"]) == (422, "validation_failed")
        assert answer.json["errors"][0]["pointer"] == "/from"


async def test_more_than_ten_thousand_days_are_refused(audience: AudienceApi, audience_rival: Rival) -> None:
    await audience_rival.run(
        "INSERT INTO legacy_days SELECT %s, %s, DATE '1990-01-01' + n, 1 FROM generate_series(0, 10000) AS n",
        ORGANIZATION,
        PROJECT,
    )

    answer = await report(audience)
    assert (answer.status, answer.json["code"]) == (422, "report_too_large")
    assert len((await report(audience, **{"from": "1990-01-02T00:00:00Z"})).json["by_day"]) == 10_000


async def test_a_malformed_list_of_days_changes_nothing(
    audience: AudienceApi, audience_rival: Rival, subtests: pytest.Subtests
) -> None:
    for days in [
        [],
        None,
        [{"day": "2026-03-01"}],
        [{"events": 1}],
        [{"day": "2026-03-01", "events": -1}],
        [{"day": "2026-03-01", "events": 1.5}],
        [{"day": "2026-03-01", "events": "1"}],
        [{"day": "2026-03-01", "events": 2**53}],
        [{"day": "2026-03-01", "events": 1, "reach": 1}],
        [{"day": "2026-02-29", "events": 1}],
        [{"day": "2026-3-1", "events": 1}],
        [{"day": "2026-03-01T00:00:00Z", "events": 1}],
        [{"day": 20260301, "events": 1}],
        [{"day": "2126-03-01", "events": 1}],
        [{"day": "2026-03-01", "events": 1}, {"day": "2026-03-01", "events": 2}],
        [{"day": "2026-03-01", "events": 1}] * 10_001,
    ]:
        with subtests.test(days=days):
            answer = await put(audience, days)

            assert (answer.status, answer.json["code"]) == (422, "validation_failed")
            assert await audience_rival.rows("SELECT FROM legacy_days") == []


async def test_today_may_be_counted_and_tomorrow_may_not(audience: AudienceApi) -> None:
    today = audience.clock.freeze().date()

    assert (await put(audience, {today.isoformat(): 1})).status == 200
    answer = await put(audience, {"2026-03-01": 1, (today + timedelta(days=1)).isoformat(): 1})
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (422, "/days/1/day")


async def test_two_at_once_end_with_one_of_them(audience: AudienceApi, audience_rival: Rival) -> None:
    """Whichever order each names its days in, they never deadlock."""
    await put(audience, {"2026-03-01": 0, "2026-03-02": 0})
    async with audience_rival.holding("SELECT FROM legacy_days FOR UPDATE"):
        asking = [
            asyncio.create_task(put(audience, {"2026-03-01": 1, "2026-03-02": 1})),
            asyncio.create_task(put(audience, {"2026-03-02": 2, "2026-03-01": 2})),
        ]
        await audience_rival.until_someone_waits(2)
    assert [(await one).status for one in asking] == [200, 200]

    counts = [day["events"] for day in (await report(audience)).json["by_day"]]
    assert counts in ([1, 1], [2, 2])


async def test_an_import_that_dies_midway_changes_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    await put(audience, {"2026-03-02": 5})
    async with audience_rival.holding("SELECT FROM legacy_days FOR UPDATE"):
        dying = await audience_rival.while_waiting(put(audience, {"2026-03-01": 1, "2026-03-02": 1}))
        await audience_rival.kill_waiting_sessions()
        assert (await dying).status == 503

    assert (await report(audience)).json["events"] == 5

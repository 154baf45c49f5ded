"""The scope of a report: its period, its filters, and the integrity signals of its days."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.audience.client import AudienceIntegration
from support.audience.recorded_events import (
    expected_report,
    midnight,
    read_report,
    store_events,
    store_integrity_days,
)
from support.audience.report_events import CAMPAIGNS, RETENTION_DAYS, XR, make_event, refused

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

EMPTY: dict[str, Any] = {"events": 0, "estimated_reach": 0, "average_frequency": 0}


async def test_an_integration_without_events_has_an_empty_report(
    integration: AudienceIntegration, now: datetime
) -> None:
    answer = await read_report(integration)

    assert answer.status == 200
    assert answer.json == expected_report(integration.view, [], {}, integrity={}, now=now)
    assert {name: answer.json[name] for name in EMPTY} == EMPTY


async def test_a_report_begins_where_retention_begins_and_ends_now(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """Aged events do not count even while they are still stored; an event of this very moment does not count yet."""
    start = midnight(now.date() - timedelta(days=RETENTION_DAYS))
    moments = [start - timedelta(milliseconds=1), start, now - timedelta(milliseconds=1), now]
    store_events(audience_url, integration.id, [make_event(at, token) for token, at in enumerate(moments)])

    report = (await read_report(integration)).json
    with_an_earlier_start = (await read_report(integration, **{"from": "2020-01-01T00:00:00Z"})).json

    assert report["period"] == {"from": format_timestamp(start), "to": format_timestamp(now)}
    assert report["events"] == with_an_earlier_start["events"] == 2
    assert with_an_earlier_start["period"]["from"] == "2020-01-01T00:00:00.000Z"


async def test_a_period_that_ended_before_retention_begins_is_empty(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """Without `from`, it begins where retention began at its end."""
    end = now - timedelta(days=RETENTION_DAYS * 3)
    store_events(audience_url, integration.id, [make_event(end - timedelta(hours=1))])

    report = (await read_report(integration, to=format_timestamp(end))).json

    assert report["period"]["from"] == format_timestamp(midnight(end.date() - timedelta(days=RETENTION_DAYS)))
    assert (report["events"], report["integrity_signals"]["by_day"]) == (0, [])


@pytest.mark.parametrize(
    "query",
    [
        {"to": "9999-12-31T23:59:59.999Z"},
        {"from": "0001-01-01T00:00:00Z", "to": "9999-12-31T23:59:59.999Z"},
        {"from": "9999-01-01T00:00:00Z", "to": "9999-12-31T23:59:59.999Z"},
        {"from": "0001-01-01T00:00:00Z", "to": "0001-01-01T00:00:00.001Z"},
    ],
)
async def test_a_period_of_thousands_of_years_is_as_quick_as_any(
    integration: AudienceIntegration, audience_url: Secret, now: datetime, query: dict[str, str]
) -> None:
    """Only days that may have events are read: for a receiver whose clock is ahead, that includes tomorrow."""
    events = [make_event(now - timedelta(hours=1)), make_event(now + timedelta(hours=12, minutes=1), 2)]
    store_events(audience_url, integration.id, events)

    async with asyncio.timeout(5):  # Core's deadline. Reading each day of them took ten seconds and more.
        answer = await read_report(integration, **query)

    assert answer.json == expected_report(integration.view, events, query, integrity={}, now=now)


async def test_a_period_at_the_beginning_of_the_calendar_is_accepted(integration: AudienceIntegration) -> None:
    early = (await read_report(integration, to="0001-01-03T00:00:00Z")).json
    nothing = await read_report(integration, to="0001-01-01T00:00:00Z")

    assert (early["period"]["from"], early["events"]) == ("0001-01-01T00:00:00.000Z", 0)
    assert refused(nothing) == (422, "validation_failed")


async def test_bounds_are_exact_to_the_millisecond(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """`occurred_at >= from` and `occurred_at < to`, to the millisecond, on one day and on two."""
    begin, end = now - timedelta(days=1, hours=3), now - timedelta(days=1, hours=1)
    step = timedelta(milliseconds=1)
    moments = [begin - step, begin, end - step, end]
    store_events(audience_url, integration.id, [make_event(at, token) for token, at in enumerate(moments)])

    of_a_day = await read_report(integration, **{"from": format_timestamp(begin), "to": format_timestamp(end)})
    with_an_offset = await read_report(integration, **{"from": begin.astimezone(None).isoformat()})

    assert of_a_day.json["events"] == 2
    assert with_an_offset.json["events"] == 3


async def test_a_malformed_query_is_refused(integration: AudienceIntegration, subtests: pytest.Subtests) -> None:
    for query in [
        {"from": "2026-11-02T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
        {"from": "2026-11-03T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
        {"from": "9999-01-01T00:00:00Z"},
        {"from": "2026-11-02"},
        {"to": "yesterday"},
        {"campaign_id": "summer"},
        {"xr_id": "xr_short"},
        {"project_id": "no project"},
    ]:
        with subtests.test(query=query):
            assert refused(await read_report(integration, **query)) == (422, "validation_failed")


async def test_filters_combine_as_an_intersection(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """A Code of another campaign than the requested one leaves nothing."""
    at = now - timedelta(hours=1)
    store_events(audience_url, integration.id, [make_event(at, token, xr_id) for token, xr_id in enumerate(XR)])

    both = (await read_report(integration, campaign_id=CAMPAIGNS[0], xr_id=XR[1])).json
    neither = (await read_report(integration, campaign_id=CAMPAIGNS[1], xr_id=XR[1])).json

    assert (both["events"], both["filters"]) == (1, {"campaign_id": CAMPAIGNS[0], "xr_id": XR[1]})
    assert neither["events"] == 0


async def test_integrity_signals_are_of_whole_days_and_of_the_whole_integration(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """They are counted per integration, not per campaign or Code, and a day is not divided."""
    yesterday = now.date() - timedelta(days=1)
    days = {now.date(): (1, 2, 3), yesterday: (10, 20, 30), yesterday - timedelta(days=1): (100, 200, 300)}
    store_integrity_days(audience_url, integration.id, days)
    begin, end = midnight(yesterday) + timedelta(hours=23), midnight(now.date())

    narrowed = await read_report(
        integration,
        **{"from": format_timestamp(begin), "to": format_timestamp(end)},
        xr_id=XR[0],
        campaign_id=CAMPAIGNS[0],
    )
    a_moment_more = await read_report(
        integration, **{"from": format_timestamp(begin), "to": format_timestamp(end + timedelta(milliseconds=1))}
    )

    assert narrowed.json["integrity_signals"] == {
        "scope": "integration_period",
        "event_replays": 10,
        "code_token_duplicates": 20,
        "proof_replays": 30,
        "by_day": [
            {
                "day": yesterday.isoformat(),
                "event_replays": 10,
                "code_token_duplicates": 20,
                "proof_replays": 30,
            }
        ],
    }
    assert a_moment_more.json["integrity_signals"]["event_replays"] == 11

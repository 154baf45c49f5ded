"""Reading a report: what it counts, of whom and of when, and what it never says."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.audience_client import ORGANIZATION, AudienceApi, AudienceIntegration, entitlement_body
from support.core_client import Answer
from support.recorded_events import (
    RecordedEvent,
    assert_reconciles,
    cells,
    expected_report,
    midnight,
    read_report,
    store_events,
    store_integrity_days,
)
from support.rival import Rival

from soundmark.audience.domain.aggregation import Codes, tally
from soundmark.audience.features.reports import service
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.audience_report import DIMENSION_MAX
from soundmark.wire.private.problems import ReportTooLarge

XR = [f"xr_{letter * 22}" for letter in "ABCDE"]
CAMPAIGNS = ["cmp_" + "a" * 22, "cmp_" + "b" * 22]
# Some Codes belong to campaigns and some to none.
CAMPAIGN_OF = dict(zip(XR, [CAMPAIGNS[0], CAMPAIGNS[0], CAMPAIGNS[1], None, None], strict=True))
RETENTION_DAYS = 6
EMPTY: dict[str, Any] = {"events": 0, "estimated_reach": 0, "average_frequency": 0}


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json["code"]


def event(at: datetime, token: int = 1, xr_id: str = XR[0], **changes: Any) -> RecordedEvent:
    return RecordedEvent(at=at, token=token, xr_id=xr_id, campaign_id=CAMPAIGN_OF[xr_id], **changes)


@pytest.fixture
async def integration(audience: AudienceApi) -> AudienceIntegration:
    return await audience.make_integration(
        mode="contract", retention_days=RETENTION_DAYS, entitlement=entitlement_body()
    )


@pytest.fixture
def now(audience: AudienceApi) -> datetime:
    """Noon of a day, and it stays so."""
    frozen = audience.clock.freeze().replace(hour=12, minute=0, second=0)
    audience.clock.frozen_at = frozen
    return frozen


def some_events(chance: Random, now: datetime) -> list[RecordedEvent]:
    """Events of few tokens, so that many are seen again, on the same days and on others."""
    tokens = [chance.choice([-(2**63), 2**63 - 1, 0, chance.getrandbits(64) - 2**63]) for _ in range(12)]
    made: dict[tuple[date, int, str], RecordedEvent] = {}
    for _ in range(chance.choice([0, 1, 20, 150])):
        at = now - timedelta(milliseconds=chance.randrange(RETENTION_DAYS * 2 * 86_400_000))
        if chance.random() < 0.3:
            at = midnight(at.date()) - timedelta(milliseconds=chance.choice([0, 1]))
        one = event(
            at,
            chance.choice(tokens),
            chance.choice(XR),
            receiver_class=chance.choice(["phone", "other", "kiosk"]),
            country=chance.choice(["TN", "FR", "AD", "ZW", None]),
        )
        made[at.date(), one.token, one.xr_id] = one
    return list(made.values())


def some_query(chance: Random, now: datetime, events: list[RecordedEvent]) -> dict[str, str]:
    """Any filters together; bounds often exactly at an event."""
    edges = [now - timedelta(days=days) for days in range(RETENTION_DAYS * 2)] + [one.at for one in events]
    edges += [midnight(edge.date()) for edge in edges]
    begin, end = sorted(chance.sample(edges, 2))
    query = {}
    if chance.random() < 0.6:
        query["from"] = format_timestamp(begin)
    if chance.random() < 0.6:
        query["to"] = format_timestamp(end if end > begin else end + timedelta(milliseconds=1))
    if chance.random() < 0.3:
        query["campaign_id"] = chance.choice([*CAMPAIGNS, "cmp_" + "z" * 22])
    if chance.random() < 0.3:
        query["xr_id"] = chance.choice([*XR, "xr_" + "Z" * 22])
    return query


@given(chance=st.randoms(use_true_random=True), at_once=st.sampled_from([1, 7, 250_000]))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_report_says_what_the_model_says(
    audience: AudienceApi, audience_url: Secret, now: datetime, chance: Random, at_once: int
) -> None:
    """Whatever was recorded, is asked, and however few events are counted at once, on one connection or two."""
    integration = await audience.make_integration(
        mode="contract", retention_days=RETENTION_DAYS, entitlement=entitlement_body()
    )
    events = some_events(chance, now)
    integrity = {
        now.date() - timedelta(days=days): (chance.randrange(4), chance.randrange(4), chance.randrange(4))
        for days in range(RETENTION_DAYS * 2)
        if chance.random() < 0.5
    }
    await asyncio.to_thread(store_events, audience_url, integration.id, events)
    await asyncio.to_thread(store_integrity_days, audience_url, integration.id, integrity)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(service, "_AT_ONCE", at_once)
        patched.setattr(service, "_RANGES_MAX", 40)
        for _ in range(6):
            query = some_query(chance, now, events)
            if (
                "to" in query
                and "from" not in query
                and query["to"] <= format_timestamp(midnight(now.date() - timedelta(days=RETENTION_DAYS)))
            ):
                continue  # A rule of its own, below.
            if query.get("from", "") >= query.get("to", format_timestamp(now)):
                assert refused(await read_report(integration, **query)) == (422, "validation_failed")
                continue
            answer = await read_report(integration, **query)
            assert answer.status == 200, answer.body
            assert answer.json == expected_report(integration, events, query, integrity=integrity, now=now), query
            assert_reconciles(answer.json)


async def test_an_integration_without_events_has_an_empty_report(
    integration: AudienceIntegration, now: datetime
) -> None:
    answer = await read_report(integration)

    assert answer.status == 200
    assert answer.json == expected_report(integration, [], {}, integrity={}, now=now)
    assert {name: answer.json[name] for name in EMPTY} == EMPTY


async def test_a_report_begins_where_retention_begins_and_ends_now(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """What has aged out is not told even while it still lies there; what happens now is not told yet."""
    start = midnight(now.date() - timedelta(days=RETENTION_DAYS))
    moments = [start - timedelta(milliseconds=1), start, now - timedelta(milliseconds=1), now]
    store_events(audience_url, integration.id, [event(at, token) for token, at in enumerate(moments)])

    said = (await read_report(integration)).json
    asked_for_more = (await read_report(integration, **{"from": "2020-01-01T00:00:00Z"})).json

    assert said["period"] == {"from": format_timestamp(start), "to": format_timestamp(now)}
    assert said["events"] == asked_for_more["events"] == 2
    assert asked_for_more["period"]["from"] == "2020-01-01T00:00:00.000Z"


async def test_a_period_that_ended_before_retention_begins_is_empty(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """Without a beginning it begins where retention began at its end."""
    end = now - timedelta(days=RETENTION_DAYS * 3)
    store_events(audience_url, integration.id, [event(end - timedelta(hours=1))])

    said = (await read_report(integration, to=format_timestamp(end))).json

    assert said["period"]["from"] == format_timestamp(midnight(end.date() - timedelta(days=RETENTION_DAYS)))
    assert (said["events"], said["integrity_signals"]["by_day"]) == (0, [])


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
    """Only days that may have events are looked at: for a receiver whose clock is ahead, that may be tomorrow."""
    events = [event(now - timedelta(hours=1)), event(now + timedelta(hours=12, minutes=1), 2)]
    store_events(audience_url, integration.id, events)

    async with asyncio.timeout(5):  # Core's deadline. Going through every day of them took ten seconds and more.
        answer = await read_report(integration, **query)

    assert answer.json == expected_report(integration, events, query, integrity={}, now=now)


async def test_a_period_at_the_beginning_of_the_calendar_is_a_period(integration: AudienceIntegration) -> None:
    early = (await read_report(integration, to="0001-01-03T00:00:00Z")).json
    nothing = await read_report(integration, to="0001-01-01T00:00:00Z")

    assert (early["period"]["from"], early["events"]) == ("0001-01-01T00:00:00.000Z", 0)
    assert refused(nothing) == (422, "validation_failed")


async def test_bounds_are_moments(integration: AudienceIntegration, audience_url: Secret, now: datetime) -> None:
    """`occurred_at >= from` and `occurred_at < to`, to the millisecond, on one day and on two."""
    begin, end = now - timedelta(days=1, hours=3), now - timedelta(days=1, hours=1)
    step = timedelta(milliseconds=1)
    moments = [begin - step, begin, end - step, end]
    store_events(audience_url, integration.id, [event(at, token) for token, at in enumerate(moments)])

    of_a_day = await read_report(integration, **{"from": format_timestamp(begin), "to": format_timestamp(end)})
    with_an_offset = await read_report(integration, **{"from": begin.astimezone(None).isoformat()})

    assert of_a_day.json["events"] == 2
    assert with_an_offset.json["events"] == 3


@pytest.mark.parametrize(
    "query",
    [
        {"from": "2026-11-02T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
        {"from": "2026-11-03T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
        {"from": "9999-01-01T00:00:00Z"},
        {"from": "2026-11-02"},
        {"to": "yesterday"},
        {"campaign_id": "summer"},
        {"xr_id": "xr_short"},
        {"project_id": "no project"},
    ],
)
async def test_a_malformed_question_is_refused(integration: AudienceIntegration, query: dict[str, str]) -> None:
    assert refused(await read_report(integration, **query)) == (422, "validation_failed")


async def test_filters_combine_as_an_intersection(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """A Code of another campaign than the one asked for leaves nothing."""
    at = now - timedelta(hours=1)
    store_events(audience_url, integration.id, [event(at, token, xr_id) for token, xr_id in enumerate(XR)])

    both = (await read_report(integration, campaign_id=CAMPAIGNS[0], xr_id=XR[1])).json
    neither = (await read_report(integration, campaign_id=CAMPAIGNS[1], xr_id=XR[1])).json

    assert (both["events"], both["filters"]) == (1, {"campaign_id": CAMPAIGNS[0], "xr_id": XR[1]})
    assert neither["events"] == 0


async def test_integrity_signals_are_of_whole_days_and_of_the_whole_integration(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """They know no campaign and no Code, and a day is not divided."""
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


async def test_a_revoked_integration_stays_reportable(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    store_events(audience_url, integration.id, [event(now - timedelta(hours=1))])
    assert (await integration.change("revoke")).status == 200

    assert (await read_report(integration)).json["events"] == 1


@pytest.mark.parametrize(
    "query", [{"organization_id": "org_" + "x" * 22}, {"project_id": "prj_" + "x" * 22}], ids=["tenant", "project"]
)
async def test_another_workspace_has_no_such_integration(
    integration: AudienceIntegration, query: dict[str, str]
) -> None:
    assert refused(await read_report(integration, **query)) == (404, "integration_not_found")


async def test_the_administration_need_not_know_whose_an_integration_is(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    store_events(audience_url, integration.id, [event(now - timedelta(hours=1), 7)])
    bounds = {"to": format_timestamp(now)}

    answer = await integration.api.call("GET", f"/v1/reports/{integration.id}", params=bounds)

    assert (answer.status, answer.json) == (200, (await read_report(integration, **bounds)).json)
    assert answer.json["events"] == 1
    for params, missing in (
        ({"organization_id": ORGANIZATION}, "/project_id"),
        ({"project_id": integration.query["project_id"]}, "/organization_id"),
    ):
        half = await integration.api.call("GET", f"/v1/reports/{integration.id}", params=params)
        assert (half.status, half.json["errors"][0]["pointer"]) == (422, missing)


async def test_an_unknown_integration_has_no_report(audience: AudienceApi, integration: AudienceIntegration) -> None:
    for name in ("int_" + "x" * 22, "int_%00", "int_short", "%C3%A4"):
        for params in (integration.query, {}):
            unknown = await audience.call("GET", f"/v1/reports/{name}", params=params)
            assert refused(unknown) == (404, "integration_not_found"), name


async def test_integrations_do_not_mix(audience: AudienceApi, audience_url: Secret, now: datetime) -> None:
    """The same tokens, Codes and days, of one tenant and of two."""
    at = now - timedelta(hours=1)
    mine = await audience.make_integration()
    beside = await audience.make_integration()
    foreign = await audience.make_integration(organization_id="org_" + "f" * 22)
    for place, one in enumerate((mine, beside, foreign)):
        store_events(audience_url, one.id, [event(at, token) for token in range(place + 1)])

    reports = [(await read_report(one)).json["events"] for one in (mine, beside, foreign)]

    assert reports == [1, 2, 3]
    assert foreign.view["organization_id"] != mine.view["organization_id"] == ORGANIZATION


async def test_nobody_else_reads_a_report(audience: AudienceApi, integration: AudienceIntegration) -> None:
    """It is Audience's own administration route, for the holder of its credential."""
    for credential in (None, "audience-credential-of-others", integration.hmac_secret):
        stranger = AudienceApi(audience.app, audience.clock, credential)
        answer = await stranger.call("GET", f"/v1/reports/{integration.id}", params=integration.query)
        assert refused(answer) == (401, "unauthenticated")


async def test_the_csv_says_the_same(integration: AudienceIntegration, audience_url: Secret, now: datetime) -> None:
    at = now - timedelta(hours=5)
    events = [event(at, 99, XR[3], country=None), *[event(at, token % 7, XR[token % 3]) for token in range(21)]]
    store_events(audience_url, integration.id, events)
    store_integrity_days(audience_url, integration.id, {now.date(): (1, 2, 3)})
    said = (await read_report(integration)).json

    answer = await read_report(integration, accept="text/csv")

    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/csv")
    assert answer.headers["vary"] == "Accept"
    rows = cells(answer.body)
    assert len(rows) == len(set(rows))
    assert ("total", "", "events", str(said["events"])) in rows
    assert ("total", "", "average_frequency", f"{said['average_frequency']:.4f}") in rows
    assert ("report", "", "from", said["period"]["from"]) in rows
    keys = {
        "by_day": "day",
        "by_receiver": "receiver_class",
        "by_frequency": "frequency",
        "by_campaign": "campaign_id",
        "by_xr_code": "xr_id",
        "by_country": "country",
    }
    for dimension, key in keys.items():
        expected = [
            (dimension, "" if row[key] is None else str(row[key]), metric, str(value))
            for row in said[dimension]
            for metric, value in row.items()
            if metric != key
        ]
        assert [row for row in rows if row[0] == dimension] == expected
    assert ("integrity_signals", now.date().isoformat(), "proof_replays", "3") in rows


@pytest.mark.parametrize(
    ("accept", "status"), [("text/html", 406), ("*/*", 200), ("text/csv;q=0, application/json", 200)]
)
async def test_what_is_accepted_is_answered(integration: AudienceIntegration, accept: str, status: int) -> None:
    answer = await read_report(integration, accept=accept)

    assert answer.status == status
    assert status != 200 or answer.headers["content-type"] == "application/json"


async def test_a_dimension_holds_ten_thousand_and_no_more(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """A filter that leaves fewer makes it a report again."""
    at = now - timedelta(hours=1)
    codes = [RecordedEvent(at, token=7, xr_id=f"xr_{number:022d}") for number in range(DIMENSION_MAX)]
    await asyncio.to_thread(store_events, audience_url, integration.id, codes)

    full = await read_report(integration)
    store_events(audience_url, integration.id, [event(at)])
    over = await read_report(integration)
    narrowed = await read_report(integration, xr_id=XR[0])

    assert (full.status, len(full.json["by_xr_code"])) == (200, DIMENSION_MAX)
    assert refused(over) == (422, "report_too_large")
    assert narrowed.json["events"] == 1


@pytest.mark.parametrize("count", [DIMENSION_MAX, DIMENSION_MAX + 1])
def test_the_distribution_of_frequencies_is_a_dimension_too(count: int) -> None:
    """Each frequency that a token has is an entry; fifty million events would say the same."""
    empty = tally([], days_count=1, codes=Codes(np.array([1]), np.array([1])))
    counted = empty + empty
    object.__setattr__(counted, "frequencies", np.append(0, np.ones(count, dtype=np.int64)))

    if count > DIMENSION_MAX:
        with pytest.raises(ReportTooLarge):
            service._refuse_too_large(counted)
    else:
        service._refuse_too_large(counted)


async def test_a_report_is_of_one_moment(
    integration: AudienceIntegration, audience_url: Secret, audience_rival: Rival, now: datetime
) -> None:
    """What is recorded while it is read is not in any part of it."""
    store_events(audience_url, integration.id, [event(now - timedelta(hours=1))])
    async with audience_rival.holding("LOCK TABLE measured_codes IN ACCESS EXCLUSIVE MODE"):
        reading = await audience_rival.while_waiting(read_report(integration))
        await audience_rival.run(
            "INSERT INTO events (token, integration, day, code, occurred_ms, receiver)"
            " SELECT 9, integration, day, code, occurred_ms, receiver FROM events"
        )
        store_integrity_days(audience_url, integration.id, {now.date(): (1, 1, 1)})
    said = (await reading).json

    assert (said["events"], said["integrity_signals"]["by_day"]) == (1, [])
    assert (await read_report(integration)).json["events"] == 2


async def test_both_connections_read_as_of_the_same_moment(
    integration: AudienceIntegration, audience_url: Secret, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one begins later, and sees what the first one sees."""
    at = now - timedelta(hours=1)
    tokens = [-(2**63) + 1, *range(40)]
    store_events(audience_url, integration.id, [event(at, token) for token in tokens])
    begun: list[Tx] = []
    beside = Database.beside

    @contextlib.asynccontextmanager
    async def later(self: Database, tx: Tx) -> AsyncIterator[Tx]:
        await asyncio.to_thread(
            store_events, audience_url, integration.id, [event(at, token, XR[4]) for token in tokens]
        )
        async with beside(self, tx) as second:
            begun.append(second)
            yield second

    monkeypatch.setattr(Database, "beside", later)
    monkeypatch.setattr(service, "_AT_ONCE", 1)

    assert ((await read_report(integration)).json["events"], len(begun)) == (len(tokens), 1)


async def test_without_a_second_connection_it_is_counted_on_one(
    integration: AudienceIntegration, audience_url: Secret, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = now - timedelta(hours=1)
    store_events(audience_url, integration.id, [event(at, token) for token in [-(2**63) + 1, *range(40)]])

    @contextlib.asynccontextmanager
    async def none_free(_: Database, tx: Tx) -> AsyncIterator[Tx]:
        raise DatabaseUnavailable
        yield tx

    monkeypatch.setattr(Database, "beside", none_free)
    monkeypatch.setattr(service, "_AT_ONCE", 1)

    assert (await read_report(integration)).json["events"] == 41


async def test_a_report_ends_at_the_deadline_of_its_caller(
    integration: AudienceIntegration, audience_rival: Rival, now: datetime
) -> None:
    """Otherwise callers that give up and ask again would queue behind their own requests for ever."""
    async with audience_rival.holding("LOCK TABLE measured_codes IN ACCESS EXCLUSIVE MODE"):
        given_up = await asyncio.gather(*(read_report(integration, timeout_ms=300) for _ in range(4)))

    assert [refused(answer) for answer in given_up] == [(503, "deadline_passed")] * 4
    assert (await read_report(integration)).json["period"]["to"] == format_timestamp(now)


async def test_one_organisation_leaves_a_turn_to_the_others(
    audience: AudienceApi, integration: AudienceIntegration, audience_rival: Rival
) -> None:
    """However many reports it asks for, and however long each of them takes."""
    other = await audience.make_integration(organization_id="org_of_somebody_else")
    async with audience_rival.holding("LOCK TABLE measured_codes IN ACCESS EXCLUSIVE MODE"):
        asking = [asyncio.create_task(read_report(integration)) for _ in range(3)]
        await audience_rival.until_someone_waits()
        theirs = asyncio.create_task(read_report(other))
        await audience_rival.until_someone_waits(2)
        await audience_rival.kill_waiting_sessions()
        ended = await theirs

    assert ended.status == 503, "it was its turn"
    assert sorted([(await one).status for one in asking]) == [200, 200, 503]


async def test_a_database_that_goes_away_is_said_so(
    integration: AudienceIntegration, audience_rival: Rival, now: datetime
) -> None:
    async with audience_rival.holding("LOCK TABLE measured_codes IN ACCESS EXCLUSIVE MODE"):
        reading = await audience_rival.while_waiting(read_report(integration))
        await audience_rival.kill_waiting_sessions()
        answer = await reading

    assert refused(answer) == (503, "database_unavailable")
    assert (await read_report(integration)).json["period"]["to"] == format_timestamp(now)

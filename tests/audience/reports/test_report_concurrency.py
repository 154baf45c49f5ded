"""A report while events arrive, other reports run, callers give up, or the database goes away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from support.audience.client import AudienceApi, AudienceIntegration, audience_settings, running_audience
from support.audience.recorded_events import (
    read_report,
    store_events,
    store_integrity_days,
)
from support.audience.report_events import XR, make_event, refused
from support.database.rival import Rival
from support.outside.redis_server import running_redis
from support.processes.fake_clock import FakeClock

from soundmark.audience.features.reports import service
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits import shared_server
from soundmark.kit.http.limits.shared_keys import SharedKeys
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp


async def test_a_report_is_of_one_moment(
    integration: AudienceIntegration, audience_url: Secret, audience_rival: Rival, now: datetime
) -> None:
    """Events recorded while it is read appear in no part of it."""
    store_events(audience_url, integration.id, [make_event(now - timedelta(hours=1))])
    async with audience_rival.holding("LOCK TABLE measured_codes IN ACCESS EXCLUSIVE MODE"):
        reading = await audience_rival.while_waiting(read_report(integration))
        await audience_rival.run(
            "INSERT INTO events (token, integration, day, code, occurred_ms, receiver)"
            " SELECT 9, integration, day, code, occurred_ms, receiver FROM events"
        )
        store_integrity_days(audience_url, integration.id, {now.date(): (1, 1, 1)})
    report = (await reading).json

    assert (report["events"], report["integrity_signals"]["by_day"]) == (1, [])
    assert (await read_report(integration)).json["events"] == 2


async def test_both_connections_read_as_of_the_same_moment(
    integration: AudienceIntegration, audience_url: Secret, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one begins later, and sees what the first one sees."""
    at = now - timedelta(hours=1)
    tokens = [-(2**63) + 1, *range(40)]
    store_events(audience_url, integration.id, [make_event(at, token) for token in tokens])
    begun: list[Tx] = []
    beside = Database.beside

    @contextlib.asynccontextmanager
    async def later(self: Database, tx: Tx) -> AsyncIterator[Tx]:
        await asyncio.to_thread(
            store_events, audience_url, integration.id, [make_event(at, token, XR[4]) for token in tokens]
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
    store_events(audience_url, integration.id, [make_event(at, token) for token in [-(2**63) + 1, *range(40)]])

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


async def test_the_reports_of_one_organisation_do_not_block_the_others(
    audience: AudienceApi, integration: AudienceIntegration, audience_rival: Rival
) -> None:
    """However many reports it asks for, and however long each takes."""
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


async def test_processes_that_share_a_redis_count_one_report_of_an_organisation_at_a_time(
    audience_url: Secret, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_server, "_TIMEOUT_S", 10)  # A quarter of a second may pass on a busy machine.
    async with running_redis() as redis:
        settings = audience_settings(audience_url, rate_limit_url=redis.url)
        prefix = b"soundmark:audience-reports:"
        elsewhere = SharedKeys(Secret(redis.url), key_prefix=prefix, clock=clock, entropy=SystemEntropy())
        async with running_audience(settings, clock) as audience, contextlib.aclosing(elsewhere):
            own, other = [await audience.make_integration(organization_id=name) for name in ("org_own", "org_other")]
            assert await elsewhere.take("org_own")
            assert refused(await read_report(own, timeout_ms=300)) == (503, "deadline_passed")
            assert (await read_report(other)).status == 200
            elsewhere.release("org_own")
            assert (await read_report(own)).status == 200


async def test_a_database_that_goes_away_is_reported(
    integration: AudienceIntegration, audience_rival: Rival, now: datetime
) -> None:
    async with audience_rival.holding("LOCK TABLE measured_codes IN ACCESS EXCLUSIVE MODE"):
        reading = await audience_rival.while_waiting(read_report(integration))
        await audience_rival.kill_waiting_sessions()
        answer = await reading

    assert refused(answer) == (503, "database_unavailable")
    assert (await read_report(integration)).json["period"]["to"] == format_timestamp(now)

"""The daily deletion of aged events by `work audience`."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, time, timedelta

import pytest
from procrastinate import App
from support.audience.aged_events import list_kept_days, make_aged_events
from support.audience.client import AudienceApi, entitlement_body
from support.audience.event_publisher import make_publisher
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.audience.context import WorkContext
from soundmark.audience.features.retention import jobs, service
from soundmark.audience.worker import work_context
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.jobs import jobs_app
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.settings import AudienceDatabaseSettings, read

TABLES = ["events", "event_ids", "spent_proofs", "integrity_days"]


@pytest.fixture
async def work(audience: AudienceApi, audience_url: Secret, audience_clock: FakeClock) -> AsyncIterator[WorkContext]:
    """The context of the worker's jobs."""
    assert audience is not None, "the database is empty"
    environ = {"SOUNDMARK_AUDIENCE_DATABASE_URL": audience_url.reveal()}
    ctx = work_context(read(AudienceDatabaseSettings, environ), clock=audience_clock)
    await ctx.db.open()
    yield ctx
    await ctx.db.close()


async def test_each_integration_keeps_its_own_days(
    work: WorkContext, audience: AudienceApi, audience_rival: Rival
) -> None:
    short = await audience.make_integration(retention_days=2)
    long = await audience.make_integration(mode="contract", retention_days=5, entitlement=entitlement_body())
    today = audience.clock.now().date()
    for one in (short, long):
        await make_aged_events(audience_rival, one, {today - timedelta(days=age): 2 for age in range(8)})

    deleted = await service.forget_aged(work)

    # Five days of one integration, two of the other; two rows a day, except for the counters.
    assert deleted == {"events": 14, "event_ids": 14, "spent_proofs": 14, "integrity_days": 7}
    for table in TABLES:
        assert await list_kept_days(audience_rival, short, table) == [today - timedelta(days=age) for age in (2, 1, 0)]
        assert len(await list_kept_days(audience_rival, long, table)) == 6
    assert await service.forget_aged(work) == dict.fromkeys(TABLES, 0)


async def test_a_revoked_integration_ages_too(work: WorkContext, audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration(retention_days=2)
    await make_aged_events(audience_rival, given, {audience.clock.now().date(): 1})
    await given.change("revoke")
    audience.clock.advance(days=3)

    await service.forget_aged(work)

    for table in TABLES:
        assert await list_kept_days(audience_rival, given, table) == []


@pytest.mark.parametrize("before_midnight_s", [60, 330], ids=["valid at midnight", "expired within the skew"])
async def test_a_proof_of_midnight_stays_spent_as_long_as_it_could_vouch_for_an_event(
    work: WorkContext, audience: AudienceApi, before_midnight_s: int
) -> None:
    """It vouches for events of two days, so the record of the first one must not go with that day."""
    audience.clock.freeze()
    source = await make_publisher(audience, retention_days=2)
    now = audience.clock.now()
    midnight = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
    audience.clock.advance(seconds=(midnight - now).total_seconds() - before_midnight_s)
    proof = source.proof()
    assert (await source.deliver(source.event(proof=proof))).status == 201
    audience.clock.advance(days=2, minutes=37)
    await service.forget_aged(work)

    again = source.event(proof=proof, occurred_at=format_timestamp(midnight + timedelta(minutes=1)))

    assert (await source.deliver(again)).json["code"] == "proof_replayed"


async def test_a_table_of_many_steps_is_walked_to_its_end(
    work: WorkContext, audience: AudienceApi, audience_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = await audience.make_integration(retention_days=1)
    today = audience.clock.now().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=5): 3000, today: 3000})
    monkeypatch.setattr(service, "_BLOCKS_AT_ONCE", 3)
    assert (await audience_rival.rows("SELECT pg_relation_size('events') / 8192 > 9"))[0][0]

    assert (await service.forget_aged(work))["events"] == 3000
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(3000,)]


async def test_a_step_reads_only_its_own_blocks(
    work: WorkContext, audience: AudienceApi, audience_rival: Rival
) -> None:
    """However large the table is, each transaction is short."""
    given = await audience.make_integration(retention_days=1)
    await make_aged_events(audience_rival, given, {audience.clock.now().date(): 3000})
    for table in ("events", "event_ids", "spent_proofs", "integrity_days"):
        deleting = next(one.deleting for one in service.AGED_TABLES if one.name == table)
        async with work.db.transaction() as tx:
            params = {"first": "(0,0)", "end": "(3,0)", "today": audience.clock.now().date()}
            # A table as small as a test's is read whole, or by another index, once autovacuum has measured it.
            for other in ("seqscan", "indexscan", "bitmapscan"):
                await tx.connection.execute(f"SET LOCAL enable_{other} = off")  # type: ignore[arg-type]  # ours
            cursor = await tx.connection.execute(f"EXPLAIN {deleting}", params)  # type: ignore[arg-type]  # ours
            text = "\n".join(line for (line,) in await cursor.fetchall())
        assert "Tid Range Scan on" in text, text


async def test_recording_does_not_wait_for_it(work: WorkContext, audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration(retention_days=1)
    today = audience.clock.now().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=5): 5})
    async with audience_rival.holding("SELECT FROM event_ids FOR UPDATE"):
        forgetting = await audience_rival.while_waiting(service.forget_aged(work))
        async with asyncio.timeout(10):
            await make_aged_events(audience_rival, given, {today: 5})
            assert (await given.change("secret")).status == 200
    assert (await forgetting)["event_ids"] == 5
    assert await list_kept_days(audience_rival, given, "event_ids") == [today]


async def test_a_change_of_retention_and_the_daily_deletion_take_turns(
    work: WorkContext, audience: AudienceApi, audience_rival: Rival
) -> None:
    """Both would delete the same rows, each in its own order."""
    given = await audience.make_integration(retention_days=5)
    old = audience.clock.now().date() - timedelta(days=9)
    await make_aged_events(audience_rival, given, {old: 5})
    async with audience_rival.holding("LOCK TABLE operations IN SHARE MODE"):
        cutting = await audience_rival.while_waiting(given.change("retention", {"retention_days": 3}))
        forgetting = asyncio.create_task(service.forget_aged(work))
        await audience_rival.until_someone_waits(2)

    assert (await cutting).json["deleted_events"] == 5
    assert await forgetting == {"events": 0, "event_ids": 5, "spent_proofs": 5, "integrity_days": 0}


async def test_a_run_that_died_is_continued(work: WorkContext, audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration(retention_days=1)
    await make_aged_events(audience_rival, given, {audience.clock.now().date() - timedelta(days=5): 5})
    async with audience_rival.holding("SELECT FROM spent_proofs FOR UPDATE"):
        dying = await audience_rival.while_waiting(service.forget_aged(work))
        await audience_rival.kill_waiting_sessions()
        with pytest.raises(DatabaseUnavailable):
            await dying

    assert await service.forget_aged(work) == {"events": 0, "event_ids": 0, "spent_proofs": 5, "integrity_days": 1}


async def test_it_runs_every_day(work: WorkContext, audience_url: Secret) -> None:
    app: App = jobs_app(audience_url, application_name="tests")
    jobs.add_tasks(app, work)

    (found,) = [task for (name, _), task in app.periodic_registry.periodic_tasks.items() if name == "forget_aged"]
    assert found.cron == "31 0 * * *"

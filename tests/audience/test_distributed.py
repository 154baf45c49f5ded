"""Audience where an engine has distributed its tables over servers, as Citus does with a schema.

Citus cannot be installed for tests. What it does differently is played: its catalogue, tables without a file, and
errors without a constraint.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from support.audience.aged_events import make_aged_events
from support.audience.client import AudienceApi, audience_settings, running_audience
from support.audience.event_publisher import make_publisher
from support.audience.recorded_events import read_report, store_events
from support.audience.report_events import make_event
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.audience.features.reports import service as reports
from soundmark.audience.features.retention import service as retention
from soundmark.audience.worker import work_context
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx
from soundmark.settings import AudienceDatabaseSettings, read

# Notes the planner's mode of each session that stores an event.
NOTING = """
    CREATE TABLE noted (plan_cache_mode text);
    GRANT INSERT ON noted TO PUBLIC;
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO noted VALUES (current_setting('plan_cache_mode'));
        RETURN NULL;
    END $$;
    CREATE TRIGGER note AFTER INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION note();
"""
NOTED_NO_MORE = "DROP TRIGGER note ON events; DROP FUNCTION note(); DROP TABLE noted"
# Fails the first statement, as a duplicate in a shard does; a sequence counts on although the transaction is undone.
FAILING_ONCE = """
    CREATE SEQUENCE failures;
    GRANT USAGE ON failures TO PUBLIC;
    CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nextval('failures') = 1 THEN
            RAISE EXCEPTION 'duplicate key in a shard' USING ERRCODE = 'XX000';
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER fail_once AFTER INSERT ON event_ids FOR EACH STATEMENT EXECUTE FUNCTION fail_once();
"""
FAILING_NO_MORE = "DROP TRIGGER fail_once ON event_ids; DROP FUNCTION fail_once(); DROP SEQUENCE failures"
# The rows are in another table, and the one with the name has no file.
ELSEWHERE = """
    ALTER TABLE {0} RENAME TO {0}_shard;
    CREATE TABLE {0} (LIKE {0}_shard) PARTITION BY RANGE (integration);
    ALTER TABLE {0} ATTACH PARTITION {0}_shard FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
    GRANT ALL ON {0} TO PUBLIC;
"""
BACK_AGAIN = "ALTER TABLE {0} DETACH PARTITION {0}_shard; DROP TABLE {0}; ALTER TABLE {0}_shard RENAME TO {0}"


@contextlib.asynccontextmanager
async def changed(rival: Rival, change: str, back: str) -> AsyncIterator[None]:
    """Change the schema of the shared Audience's database during the block."""
    await _run_all(rival, change)
    try:
        yield
    finally:
        await _run_all(rival, back)


async def _run_all(rival: Rival, statements: str) -> None:
    """Run a script; a `;` at the end of a line, outside of a function's body, ends a statement."""
    await rival.run("DO $script$ BEGIN EXECUTE $text$" + statements + "$text$; END $script$")


@pytest.fixture
async def distributed(audience_rival: Rival) -> AsyncIterator[None]:
    """The catalogue says that the tables are distributed."""
    catalogue = """
        CREATE TABLE pg_dist_partition (logicalrelid regclass);
        GRANT SELECT ON pg_dist_partition TO PUBLIC;
        INSERT INTO pg_dist_partition VALUES ('events');
    """
    async with changed(audience_rival, catalogue, "DROP TABLE pg_dist_partition"):
        yield


async def noted(audience: AudienceApi, url: Secret, rival: Rival) -> list[str]:
    """Return the planner's mode with which a fresh process stores an event."""
    async with (
        changed(rival, NOTING, NOTED_NO_MORE),
        running_audience(audience_settings(url), audience.clock) as fresh,
    ):
        source = await make_publisher(fresh)
        assert (await source.deliver(api=fresh)).status == 201
        return [mode for (mode,) in await rival.rows("SELECT plan_cache_mode FROM noted")]


async def test_plans_are_generic_where_the_tables_are_here(
    audience: AudienceApi, audience_url: Secret, audience_rival: Rival
) -> None:
    """Also beside a catalogue of tables that are not ours."""
    assert await noted(audience, audience_url, audience_rival) == ["force_generic_plan"]
    other = "CREATE TABLE pg_dist_partition AS SELECT 'operations'::regclass AS logicalrelid;"
    other += " GRANT SELECT ON pg_dist_partition TO PUBLIC"
    async with changed(audience_rival, other, "DROP TABLE pg_dist_partition"):
        assert await noted(audience, audience_url, audience_rival) == ["force_generic_plan"]


@pytest.mark.usefixtures("distributed")
async def test_plans_are_left_to_a_server_that_needs_the_values(
    audience: AudienceApi, audience_url: Secret, audience_rival: Rival
) -> None:
    assert await noted(audience, audience_url, audience_rival) == ["auto"]


async def test_a_write_that_fails_without_a_constraint_is_judged_again(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience)
    await source.deliver()
    async with changed(audience_rival, FAILING_ONCE, FAILING_NO_MORE):
        body = json.dumps(source.event()).encode()
        answers = [await source.deliver(body) for _ in range(2)]
    assert [answer.status for answer in answers] == [201, 200]
    assert await audience_rival.rows("SELECT count(*), (SELECT sum(events)::int FROM event_months) FROM events") == [
        (2, 2)
    ]


@pytest.mark.parametrize("table", ["events", "event_ids", "spent_proofs", "integrity_days"])
async def test_a_table_without_a_file_is_not_taken_for_empty(
    audience: AudienceApi, audience_url: Secret, audience_clock: FakeClock, audience_rival: Rival, table: str
) -> None:
    given = await audience.make_integration(retention_days=1)
    today = audience.clock.now().date()
    await make_aged_events(audience_rival, given, {today - timedelta(days=5): 3000, today: 3000})
    environ = {"SOUNDMARK_AUDIENCE_DATABASE_URL": audience_url.reveal()}
    work = work_context(read(AudienceDatabaseSettings, environ), clock=audience_clock)
    async with changed(audience_rival, ELSEWHERE.format(table), BACK_AGAIN.format(table)):
        assert await audience_rival.rows(f"SELECT pg_relation_size('{table}')") == [(0,)]
        await work.db.open()
        try:
            deleted = await retention.forget_aged(work)
            assert deleted[table] == (1 if table == "integrity_days" else 3000)
            assert await retention.forget_aged(work) == dict.fromkeys(deleted, 0)
        finally:
            await work.db.close()


@pytest.mark.usefixtures("distributed")
async def test_a_report_is_counted_on_one_connection_where_snapshots_do_not_travel(
    audience: AudienceApi, audience_url: Secret, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = await audience.make_integration()
    at = audience.clock.now() - timedelta(hours=1)
    tokens = [-(2**63) + 1, *range(40)]
    await asyncio.to_thread(store_events, audience_url, given.id, [make_event(at, token) for token in tokens])
    begun: list[Tx] = []

    def beside(_: Database, tx: Tx) -> None:
        begun.append(tx)

    monkeypatch.setattr(Database, "beside", beside)
    monkeypatch.setattr(reports, "_AT_ONCE", 1)

    assert ((await read_report(given)).json["events"], begun) == (41, [])

"""Several Audiences in one database, each in a schema of its own with a role of its own."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest
from support.audience.aged_events import make_aged_events
from support.audience.client import AudienceApi, audience_settings, running_audience
from support.audience.event_publisher import make_publisher
from support.audience.recorded_events import read_report
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.audience.features.retention.service import forget_aged
from soundmark.audience.worker import work_context
from soundmark.cli.migrate import migrate as migrate_command
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.jobs import jobs_app
from soundmark.kit.postgres.migrations import MigrationFailed, migrate
from soundmark.settings import AudienceDatabaseSettings, read

DATABASE = "audience_schemas"
ROLES = ("schema_one", "schema_two")
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'cell%%' ORDER BY 1"


@dataclass(frozen=True)
class Shared:
    """One database, and the URLs with which two roles use it."""

    superuser: Secret
    urls: tuple[Secret, Secret]

    @property
    def rival(self) -> Rival:
        return Rival(self.superuser)


@pytest.fixture
def shared(cluster: RunningCluster) -> Iterator[Shared]:
    """A database without tables, in which two roles may create schemas."""
    cluster.create_role_and_database(DATABASE)
    urls = []
    with psycopg.connect(cluster.superuser_url_of(DATABASE).reveal(), autocommit=True) as connection:
        for role in ROLES:
            own = cluster.create_role_and_database(role).reveal()
            urls.append(Secret(own.rpartition("/")[0] + "/" + DATABASE))
            connection.execute(f"GRANT CONNECT, CREATE ON DATABASE {DATABASE} TO {role}".encode())
    yield Shared(cluster.superuser_url_of(DATABASE), (urls[0], urls[1]))
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
        for name in (DATABASE, *ROLES):
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextlib.asynccontextmanager
async def audience_in(url: Secret, schema: str, clock: FakeClock) -> AsyncIterator[AudienceApi]:
    async with running_audience(audience_settings(url, audience_schema=schema), clock) as api:
        yield api


async def test_two_audiences_share_a_database_and_nothing_in_it(shared: Shared) -> None:
    clock = FakeClock()
    assert migrate(shared.urls[0], "soundmark.audience", schema="cell_1") == ["0100"]
    assert migrate(shared.urls[1], "soundmark.audience", schema="cell_2") == ["0100"]
    assert migrate(shared.urls[1], "soundmark.audience", schema="cell_2") == []
    assert await shared.rival.rows(SCHEMAS) == [("cell_1",), ("cell_1_jobs",), ("cell_2",), ("cell_2_jobs",)]
    assert await shared.rival.rows("SELECT FROM pg_tables WHERE schemaname = 'public'") == []
    async with audience_in(shared.urls[0], "cell_1", clock) as one, audience_in(shared.urls[1], "cell_2", clock) as two:
        mine, theirs = await make_publisher(one), await make_publisher(two)
        assert [(await each.deliver()).status for each in (mine, theirs, theirs)] == [201, 201, 201]
        assert (await mine.deliver(api=two)).status == 401
        assert [(await read_report(each.integration)).json["events"] for each in (mine, theirs)] == [1, 2]
    for schema, count in {"cell_1": 1, "cell_2": 2}.items():
        assert await shared.rival.rows(f"SELECT count(*) FROM {schema}.events") == [(count,)]
    with (
        psycopg.connect(shared.urls[0].reveal()) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="schema cell_2"),
    ):
        connection.execute("SELECT FROM cell_2.integrations")


async def test_the_worker_and_its_queue_are_in_the_schemas(shared: Shared) -> None:
    """Tables of the queue have triggers, which a distributed schema cannot have, so they are in a schema beside it."""
    clock = FakeClock()
    migrate(shared.urls[0], "soundmark.audience", schema="cell_1")
    triggers = "SELECT DISTINCT n.nspname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
    triggers += " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT t.tgisinternal"
    assert await shared.rival.rows(triggers) == [("cell_1_jobs",)]
    environ = {"SOUNDMARK_AUDIENCE_DATABASE_URL": shared.urls[0].reveal(), "SOUNDMARK_AUDIENCE_SCHEMA": "cell_1"}
    ctx = work_context(read(AudienceDatabaseSettings, environ), clock=clock)
    await ctx.db.open()
    try:
        async with audience_in(shared.urls[0], "cell_1", clock) as one:
            given = await one.make_integration(retention_days=1)
        inside = Rival(shared.urls[0])
        today = clock.now().date()
        await make_aged_events(inside, given, {today - timedelta(days=5): 3})
        assert (await forget_aged(ctx))["events"] == 3
        app = jobs_app(shared.urls[0], application_name="tests")
        async with app.open_async():
            assert list(await app.job_manager.list_jobs_async()) == []
    finally:
        await ctx.db.close()


def test_a_schema_that_the_role_may_not_have_is_refused(shared: Shared) -> None:
    with psycopg.connect(shared.superuser.reveal(), autocommit=True) as connection:
        connection.execute(f"REVOKE CREATE ON DATABASE {DATABASE} FROM {ROLES[0]}".encode())
        with pytest.raises(MigrationFailed, match="may not create the schema cell_1: grant it CREATE on the database"):
            migrate(shared.urls[0], "soundmark.audience", schema="cell_1")
        connection.execute("CREATE SCHEMA cell_1")
        connection.execute("CREATE SCHEMA cell_1_jobs")
        with pytest.raises(MigrationFailed, match="may not create tables in the schema cell_1"):
            migrate(shared.urls[0], "soundmark.audience", schema="cell_1")
        for schema in ("cell_1", "cell_1_jobs"):
            connection.execute(f"GRANT ALL ON SCHEMA {schema} TO {ROLES[0]}".encode())
    assert migrate(shared.urls[0], "soundmark.audience", schema="cell_1") == ["0100"]


async def test_an_audience_does_not_start_in_the_schema_of_another(shared: Shared) -> None:
    """Neither one that was never migrated, nor one whose role has another."""
    for migrated in (None, "cell_1"):
        if migrated is not None:
            migrate(shared.urls[0], "soundmark.audience", schema=migrated)
        with pytest.raises(Exception, match="the role does not use the schema cell_2 in this database"):
            async with audience_in(shared.urls[0], "cell_2", FakeClock()):
                pass


def test_the_command_migrates_the_schema_of_the_setting(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOUNDMARK_AUDIENCE_DATABASE_URL", shared.urls[0].reveal())
    monkeypatch.setenv("SOUNDMARK_AUDIENCE_SCHEMA", "cell_1")
    migrate_command("audience")
    with psycopg.connect(shared.superuser.reveal()) as connection:
        found = connection.execute("SELECT schemaname FROM pg_tables WHERE tablename = 'events'").fetchall()
    assert found == [("cell_1",)]

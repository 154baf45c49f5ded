"""A connection pooler between a component and its database: what it refuses, and all that works without options."""

import asyncio
import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Literal
from urllib.parse import urlsplit

import psycopg
import pytest
from support.api.core_settings import core_settings
from support.audience.client import audience_settings, entitlement_body, running_audience
from support.audience.event_publisher import make_publisher
from support.outside.pgbouncer import running_pgbouncer
from support.processes.command_server import find_forked_soundmark
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.processes.up_process import clean_environ
from support.tenancy.tenant import make_tenant

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import MigrationFailed, migrate
from soundmark.kit.postgres.sessions import SessionOptions, find_missing_settings
from soundmark.kit.startup import CannotStart

MODES: tuple[Literal["transaction", "session"], ...] = ("transaction", "session")


@pytest.fixture(params=MODES)
def pooled_core_url(spare_database_url: Secret, request: pytest.FixtureRequest) -> Iterator[Secret]:
    """The URL of Core's database through a pooler."""
    with running_pgbouncer(spare_database_url, request.param) as url:
        yield url


@pytest.fixture(scope="module")
def direct_audience_url(cluster: RunningCluster) -> Secret:
    """The URL of a database of Audience."""
    url = cluster.create_role_and_database("audience_behind_pooler")
    migrate(url, "soundmark.audience")
    return url


@pytest.fixture(params=MODES)
def pooled_audience_url(direct_audience_url: Secret, request: pytest.FixtureRequest) -> Iterator[Secret]:
    """The URL of Audience's database through a pooler."""
    with running_pgbouncer(direct_audience_url, request.param) as url:
        yield url


async def test_core_says_in_its_last_line_that_a_pooler_refuses_its_options(pooled_core_url: Secret) -> None:
    refusal = (
        r"^Core's database is behind a connection pooler that refuses our options "
        r"\(unsupported startup parameter: options\); set SOUNDMARK_DATABASE_OPTIONS=false"
    )
    with pytest.raises(CannotStart, match=refusal):
        async with running_core(core_settings(pooled_core_url)):
            pass


def test_a_migration_through_a_pooler_is_refused(pooled_core_url: Secret) -> None:
    """Its lock would stay in a session that is another's the next moment."""
    refusal = r"^the database is behind a connection pooler: give this command a URL without it$"
    with pytest.raises(MigrationFailed, match=refusal):
        migrate(pooled_core_url, "soundmark.core")


async def test_core_works_through_a_pooler_that_gives_each_transaction_another_session(
    pooled_core_url: Secret,
) -> None:
    """Forty callers share four sessions of the server: nothing may rest on one, such as a prepared statement."""
    settings = core_settings(pooled_core_url, database_options="false")
    async with running_core(settings) as api:
        tenant = await make_tenant(api)
        codes = await asyncio.gather(*(tenant.make_code() for _ in range(40)))
        resolutions = [api.get(f"/v1/resolve/{code['broadcast_token']}") for code in codes for _ in range(3)]
        assert {answer.status for answer in await asyncio.gather(*resolutions)} == {200}
        listed = await asyncio.gather(*(api.get("/v1/codes", params=tenant.query) for _ in range(20)))
        assert {answer.status for answer in listed} == {200}
        await asyncio.gather(*(tenant.revoke(code["xr_id"]) for code in codes))
        gone = await asyncio.gather(*(api.get(f"/v1/resolve/{code['broadcast_token']}") for code in codes))
        assert {answer.status for answer in gone} == {404}
        ready = (await api.get("/readyz")).json
        assert ready["unavailable"] == []


async def test_the_check_names_the_settings_that_the_role_lacks(
    spare_database_url: Secret, cluster: RunningCluster, subtests: pytest.Subtests
) -> None:
    """Nobody would notice otherwise that a statement runs for ever, or a commit waits for no standby."""
    session = SessionOptions(synchronous_commit="remote_apply", sends_startup=False)
    role = urlsplit(spare_database_url.reveal()).username
    statements = {
        f"ALTER ROLE \"{role}\" SET idle_in_transaction_session_timeout = '30s';",
        f"ALTER ROLE \"{role}\" SET statement_timeout = '30s';",
        f"ALTER ROLE \"{role}\" SET synchronous_commit = 'remote_apply';",
        f"ALTER ROLE \"{role}\" SET timezone = 'UTC';",
    }
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as superuser:

        def run(made: Iterable[str]) -> None:
            for statement in made:
                superuser.execute(statement.encode())

        run([f"ALTER ROLE \"{role}\" SET timezone = 'Asia/Kolkata'"])
        try:
            assert set(await find_missing_settings(spare_database_url, session)) == statements
            run(statements)
            assert await find_missing_settings(spare_database_url, session) == []
            for name, value in (("statement_timeout", "'31s'"), ("statement_timeout", "0")):
                with subtests.test(name, value=value):
                    run([f'ALTER ROLE "{role}" SET {name} = {value}'])
                    (line,) = await find_missing_settings(spare_database_url, session)
                    assert name in line
        finally:
            run([f'ALTER ROLE "{role}" RESET ALL'])


async def test_the_command_that_checks_settings_asks_the_databases(
    direct_audience_url: Secret,
) -> None:
    environ = {
        "SOUNDMARK_AUDIENCE_DATABASE_URL": direct_audience_url.reveal(),
        "SOUNDMARK_AUDIENCE_CREDENTIAL": "a-credential-of-audience",
        "SOUNDMARK_MASTER_KEY": "A" * 43,
        "SOUNDMARK_DATABASE_OPTIONS": "false",
    }

    def check(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [find_forked_soundmark(), "config", "check", "audience", *arguments],
            env=clean_environ(environ),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    refused = await asyncio.to_thread(check)
    assert refused.returncode == 1
    assert "SET statement_timeout = '30s';" in refused.stderr
    assert "the sessions of Audience's database lack settings" in refused.stderr.splitlines()[-1]
    assert (await asyncio.to_thread(check, "--offline")).stdout == "ok\n"


async def test_audience_leaves_no_setting_behind_in_a_session_that_others_get(
    pooled_audience_url: Secret,
) -> None:
    settings = audience_settings(pooled_audience_url, database_options="false")
    async with running_audience(settings, FakeClock()) as audience:
        source = await make_publisher(audience, mode="contract", entitlement=entitlement_body())
        bodies = [json.dumps(source.event()).encode() for _ in range(60)]
        answers = await asyncio.gather(*(source.deliver(body) for body in bodies))
        assert {answer.status for answer in answers} == {201}
        for _ in range(8):
            with psycopg.connect(pooled_audience_url.reveal(), autocommit=True) as connection:
                assert connection.execute("SHOW enable_seqscan").fetchone() == ("on",)

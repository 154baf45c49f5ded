"""A connection pooler between a component and its database: what it refuses, and all that works without options."""

import asyncio
import json
from collections.abc import Iterator
from typing import Literal

import psycopg
import pytest
from support.api.core_settings import core_settings
from support.audience.client import audience_settings, entitlement_body, running_audience
from support.audience.event_publisher import make_publisher
from support.outside.pgbouncer import running_pgbouncer
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate
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
        assert (ready["checks"]["database"], ready["checks"]["database_read_only"]) == ("ok", "ok")


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

"""The last use of a key: recorded at most once a minute, and never for a key that has ended."""

import asyncio
from datetime import datetime

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project."""
    api.clock.freeze()
    return await make_tenant(api)


async def use(server: Tenant) -> Answer:
    return await server.api.get("/v1/codes", params=server.query)


async def last_used(rival: Rival) -> datetime | None:
    ((moment,),) = await rival.rows("SELECT last_used_at FROM api_keys")
    result: datetime | None = moment
    return result


async def test_a_new_key_was_never_used(tenant: Tenant, rival: Rival) -> None:
    """Creating, listing and rotating it does not count."""
    key = await tenant.make_key()
    await tenant.api.post(f"/v1/api-keys/{key['id']}/secret", params=tenant.query)
    await tenant.api.get("/v1/api-keys", params=tenant.query)
    assert await last_used(rival) is None


async def test_the_list_shows_the_last_use(api: Api, tenant: Tenant) -> None:
    key = await tenant.make_key()
    api.clock.advance(seconds=5)
    await use(tenant.with_key(key))
    (shown,) = (await api.get("/v1/api-keys", params=tenant.query)).json["data"]
    assert shown["last_used_at"] == format_timestamp(api.clock.now())


async def test_a_use_is_noted_once_a_minute(api: Api, tenant: Tenant, rival: Rival) -> None:
    server = tenant.with_key(await tenant.make_key())
    await use(server)
    first = api.clock.now()
    for step in ({"seconds": 1}, {"seconds": 58}, {"milliseconds": 999}):
        api.clock.advance(**step)
        assert (await use(server)).status == 200
        assert await last_used(rival) == first
    api.clock.advance(milliseconds=1)
    await use(server)
    assert await last_used(rival) == api.clock.now() != first


async def test_a_second_use_within_a_minute_writes_nothing(tenant: Tenant, rival: Rival) -> None:
    """Most requests of a busy key cost one query and no transaction."""
    server = tenant.with_key(await tenant.make_key())
    await use(server)
    async with rival.holding("LOCK TABLE api_keys IN SHARE MODE"):
        assert (await use(server)).status == 200


async def test_a_use_on_another_process_counts(api: Api, people: People, tenant: Tenant, rival: Rival) -> None:
    """The minute is counted per key, not per process."""
    key = await tenant.make_key()
    await use(tenant.with_key(key))
    first = api.clock.now()
    api.clock.advance(seconds=30)
    await people.api.other(token=key["secret"]).get("/v1/codes", params=tenant.query)
    assert await last_used(rival) == first


async def test_a_refused_request_counts_as_a_use(tenant: Tenant, rival: Rival) -> None:
    """The key was valid; that it may not do this is another matter."""
    server = tenant.with_key(await tenant.make_key(scopes=["audience:read"]))
    assert (await use(server)).code == "insufficient_scope"
    assert await last_used(rival) is not None


async def test_an_expired_key_is_refused_before_its_use_is_noted(api: Api, tenant: Tenant, rival: Rival) -> None:
    server = tenant.with_key(await tenant.make_key(expires_in_days=1))
    await use(server)
    first = await last_used(rival)
    api.clock.advance(days=1)
    assert (await use(server)).status == 401
    assert await last_used(rival) == first


async def test_a_revoked_key_is_refused_before_its_use_is_noted(api: Api, tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    await api.post(f"/v1/api-keys/{key['id']}/revoke", params=tenant.query)
    assert (await use(tenant.with_key(key))).status == 401
    assert await last_used(rival) is None


async def test_an_old_secret_does_not_count_as_a_use(api: Api, tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    await api.post(f"/v1/api-keys/{key['id']}/secret", params=tenant.query)
    assert (await use(tenant.with_key(key))).status == 401
    assert await last_used(rival) is None


@pytest.mark.parametrize("change", ["revoked_at = created_at", "expires_at = created_at + interval '1 ms'"])
async def test_the_use_of_a_key_that_ends_meanwhile_is_not_noted(
    api: Api, tenant: Tenant, rival: Rival, change: str
) -> None:
    """It was active when it was looked up, but has ended when its use would be recorded."""
    server = tenant.with_key(await tenant.make_key())
    api.clock.advance(seconds=1)
    async with rival.committing(f"UPDATE api_keys SET {change}"):
        using = await rival.while_waiting(use(server))
    assert (await using).status in {200, 401}
    assert await last_used(rival) is None


async def test_of_two_uses_at_once_the_first_is_noted(api: Api, tenant: Tenant, rival: Rival) -> None:
    """PostgreSQL serves those that wait for a row in turn, and the second finds the use of the first."""
    server = tenant.with_key(await tenant.make_key())
    async with rival.holding("SELECT 1 FROM api_keys FOR UPDATE"):
        first = api.clock.now()
        one = await rival.while_waiting(use(server))
        api.clock.advance(seconds=1)
        two = asyncio.create_task(use(server))
        await rival.until_someone_waits(2)
    assert ((await one).status, (await two).status) == (200, 200)
    assert await last_used(rival) == first


async def test_noting_a_use_waits_for_no_command_of_the_key(api: Api, tenant: Tenant, rival: Rival) -> None:
    """A long issuance holds the key; the first request of the next minute is not delayed."""
    server = tenant.with_key(await tenant.make_key())
    await use(server)
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        issuing = await rival.while_waiting(server.api.post("/v1/codes", json=tenant.code_body()))
        api.clock.advance(minutes=1)
        assert (await use(server)).status == 200
        assert await last_used(rival) == api.clock.now()
    assert (await issuing).status == 201

"""The states of a signing key: it is activated and retired by the rules, also by two operators at once."""

import asyncio

import pytest
from psycopg.errors import UniqueViolation
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.core.features.codes.signing_keys import service
from soundmark.core.features.codes.signing_keys.service import KeyRefused
from soundmark.kit.crypto.secret import Secret

from .conftest import WRITE_LOCK, Keys, read_published_keys

ALLOWED = {("activate", "next"): "active", ("retire", "retiring"): "retired"}
UNCHANGED = {("activate", "active"), ("retire", "retired")}
STATES = ["next", "active", "retiring", "retired"]


@pytest.mark.parametrize("step", ["activate", "retire"])
@pytest.mark.parametrize("status", STATES)
async def test_each_step_is_allowed_from_one_state_only(keys: Keys, step: str, status: str) -> None:
    await keys.make_one_of_each()
    keys.clock.advance(minutes=6)
    before = {record.key_id: record for record in await service.list_keys(keys.ctx)}
    key_id = await keys.by_status(status)
    take = getattr(keys, step)
    if (step, status) in ALLOWED:
        await take(key_id)
        after = {record.key_id: record for record in await service.list_keys(keys.ctx)}
        assert after[key_id].status == ALLOWED[step, status]
        assert [record.status for record in after.values()].count("active") == 1
    elif (step, status) in UNCHANGED:
        await take(key_id)
        assert {record.key_id: record for record in await service.list_keys(keys.ctx)} == before
    else:
        with pytest.raises(KeyRefused, match=f"{key_id} is {status}; only a"):
            await take(key_id)
        assert {record.key_id: record for record in await service.list_keys(keys.ctx)} == before


async def test_a_key_is_protected_for_six_minutes_after_it_was_replaced(keys: Keys) -> None:
    """The longest life of a proof, plus a process that had not heard of the rotation."""
    keys.clock.freeze()
    await keys.ensure()
    old = await keys.by_status("active")
    await keys.rotate()
    keys.clock.advance(seconds=359)
    with pytest.raises(KeyRefused, match="signed proofs a moment ago"):
        await keys.retire(old)
    keys.clock.advance(seconds=1)
    await keys.retire(old)
    assert await keys.by_status("retired") == old


async def test_a_key_is_protected_until_its_last_code_has_expired(spare_database_url: Secret, keys: Keys) -> None:
    """Revoked or not: its owner still reads a revoked Code and verifies it."""
    async with running_core(core_settings(spare_database_url), keys.clock) as api:
        keys.clock.freeze()
        tenant = await make_tenant(api)
        code = await tenant.make_code(lifetime_s=3600)
        old = code["signed_code"]["key_id"]
        await tenant.revoke(code["xr_id"])
        await keys.rotate()
        keys.clock.advance(seconds=3599)
        with pytest.raises(KeyRefused, match="signed Codes that have not expired"):
            await keys.retire(old)
        assert old in await read_published_keys(api)
        keys.clock.advance(seconds=1)
        await keys.retire(old)
        assert old not in await read_published_keys(api)
        # The signature of an old Code still verifies.
        read = await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)
        assert (read.status, read.json["status"]) == (200, "revoked")


async def test_two_rotations_at_once_make_one_new_key(keys: Keys, rival: Rival) -> None:
    """Both take the staged key; the second finds it active, which is what it wanted."""
    await keys.ensure()
    async with rival.holding(WRITE_LOCK):
        rotations = [asyncio.create_task(keys.rotate()) for _ in range(2)]
        await rival.until_someone_waits(2)
    one, other = await asyncio.gather(*rotations, return_exceptions=True)
    assert one == other == await keys.by_status("active")
    assert sorted(await keys.statuses()) == ["active", "retiring"]


async def test_a_concurrent_activation_and_retirement_each_see_the_others_result(keys: Keys, rival: Rival) -> None:
    await keys.ensure()
    old, staged = await keys.by_status("active"), await keys.stage()
    async with rival.holding(WRITE_LOCK):
        activation = await rival.while_waiting(keys.activate(staged))
        retirement = asyncio.create_task(keys.retire(old))
        await rival.until_someone_waits(2)
    await activation
    with pytest.raises(KeyRefused, match="signed proofs a moment ago"):
        await retirement


async def test_the_database_itself_allows_one_active_key_only(keys: Keys, rival: Rival) -> None:
    await keys.ensure()
    await keys.stage()
    with pytest.raises(UniqueViolation):
        await rival.run("UPDATE signing_keys SET status = 'active'")

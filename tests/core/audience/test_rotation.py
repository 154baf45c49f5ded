"""A rotation of the signing key refuses no valid event: every integration trusts the key before it signs."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.core_settings import jobs_settings
from support.audience.faults import KINDS, failing_audience
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.channel.audience import PUSHED_AT_ONCE
from soundmark.core.channel.cells import Cells
from soundmark.core.context import Context
from soundmark.core.features.codes.signing_keys import jobs, rotation, service
from soundmark.core.features.codes.signing_keys.service import KeyRefused
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret


class Keys:
    """The commands on the keys of the shared Core, as `soundmark keys` gives them."""

    def __init__(self, work: Context) -> None:
        self.work = work

    async def stage(self) -> str:
        return (await service.stage(self.work)).key_id

    async def put_in_place(self, key_id: str, cells: Cells | None = None, **options: Any) -> bool:
        work = self.work if cells is None else replace(self.work, cells=cells)
        return await rotation.put_in_place(work, key_id, **options)

    async def by_status(self) -> dict[str, str]:
        return {record.status: record.key_id for record in await service.list_keys(self.work)}


@pytest.fixture
def keys(work: Context) -> Keys:
    """The signing keys, rotated step by step."""
    return Keys(work)


@pytest.fixture
async def failing(request: pytest.FixtureRequest, database_url: Secret) -> AsyncIterator[Cells]:
    """The one cell of a deployment, whose Audience fails."""
    async with failing_audience(request.param) as url:
        ctx = make_job_context(jobs_settings(database_url, AUDIENCE_URL=url, PRIVATE_TIMEOUT_S="1"))
        yield ctx.cells
        await ctx.cells.aclose()


async def trusted(measuring: Rival) -> list[tuple[str, str | None]]:
    """Return the key that each integration trusts, and the one before, oldest integration first."""
    return await measuring.rows("SELECT core_key_id, previous_key_id FROM integrations ORDER BY number")


async def test_every_integration_has_the_key_before_it_signs(
    api: Api, tenant: Tenant, keys: Keys, measuring: Rival, rival: Rival
) -> None:
    other = await make_tenant(api)
    integrations = [await each.make_integration() for each in (tenant, other, tenant)]
    await tenant.change_integration("revoke", integrations[2]["id"])
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    heard: list[int] = []
    async with measuring.holding("LOCK TABLE integrations IN EXCLUSIVE MODE"):
        rotating = await measuring.while_waiting(keys.put_in_place(staged, tell=heard.append))
        assert await keys.by_status() == {"active": old, "next": staged}, "it does not sign yet"
    assert await rotating is True
    assert await keys.by_status() == {"retiring": old, "active": staged}
    assert await trusted(measuring) == [(staged, old), (staged, old), (old, None)], "but what is revoked"
    assert heard == [2]
    assert await rival.rows("SELECT pushed_at IS NOT NULL FROM signing_keys WHERE status = 'active'") == [(True,)]
    assert await keys.put_in_place(staged) is False, "repeated, nobody is told anything"
    assert heard == [2]


async def test_many_integrations_get_the_key_in_steps(tenant: Tenant, keys: Keys, measuring: Rival) -> None:
    await tenant.make_integration()
    await measuring.run(
        "INSERT INTO integrations (id, organization_id, project_id, mode, retention_days, sealed_secret, core_key_id,"
        " core_public_key, created_at)"
        " SELECT 'int_' || lpad(n::text, 22, '0'), organization_id, project_id, mode, retention_days, sealed_secret,"
        " core_key_id, core_public_key, created_at FROM integrations, generate_series(1, %s) n",
        2 * PUSHED_AT_ONCE,
    )
    staged = await keys.stage()
    heard: list[int] = []
    await keys.put_in_place(staged, tell=heard.append)
    assert heard == [PUSHED_AT_ONCE, 2 * PUSHED_AT_ONCE, 2 * PUSHED_AT_ONCE + 1]
    assert {key for key, _ in await trusted(measuring)} == {staged}


@pytest.mark.parametrize("failing", KINDS, indirect=True)
async def test_while_audience_fails_the_key_does_not_sign_and_the_worker_goes_on(
    tenant: Tenant, keys: Keys, measuring: Rival, failing: Cells
) -> None:
    await tenant.make_integration()
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    with pytest.raises(KeyRefused, match="Audience does not answer"):
        await keys.put_in_place(staged, failing)
    assert await keys.by_status() == {"active": old, "next": staged}
    assert await jobs.push_missing_keys(keys.work) is True
    assert await keys.by_status() == {"retiring": old, "active": staged}
    assert await trusted(measuring) == [(staged, old)]


@pytest.mark.parametrize("failing", ["down"], indirect=True)
async def test_in_an_emergency_the_key_signs_before_audience_has_it(
    tenant: Tenant, keys: Keys, measuring: Rival, failing: Cells
) -> None:
    await tenant.make_integration()
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    assert await keys.put_in_place(staged, failing, must_reach_audience=False) is False
    assert await keys.by_status() == {"retiring": old, "active": staged}
    assert await trusted(measuring) == [(old, None)]
    await jobs.push_missing_keys(keys.work)
    assert await trusted(measuring) == [(staged, old)]


async def test_a_staged_key_is_not_sent_until_it_is_put_in_place(tenant: Tenant, keys: Keys, measuring: Rival) -> None:
    """It may wait for a week, and Audience would forget the signing key after seven minutes."""
    active = (await keys.by_status())["active"]
    await keys.stage()
    integration = await tenant.make_integration()
    assert integration["core_key_id"] == active
    assert (await tenant.change_integration("core-key", integration["id"])).json["core_key_id"] == active
    await jobs.push_missing_keys(keys.work)
    assert await trusted(measuring) == [(active, None)]


async def test_an_integration_created_during_a_rotation_trusts_both_keys(
    tenant: Tenant, keys: Keys, measuring: Rival, rival: Rival
) -> None:
    """Proofs of its first Codes are still signed by the old key."""
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    await rival.run("UPDATE signing_keys SET push_began_at = now() WHERE status = 'next'")
    assert (await tenant.make_integration())["core_key_id"] == staged
    assert await trusted(measuring) == [(staged, old)]
    integration = await tenant.make_integration()
    assert (await tenant.change_integration("core-key", integration["id"])).json["core_key_id"] == staged


async def test_an_integration_created_during_a_rotation_gets_the_key_afterwards(
    tenant: Tenant, keys: Keys, measuring: Rival, rival: Rival
) -> None:
    """Its key was chosen earlier, and its row did not exist when all the others were updated."""
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    async with measuring.holding("LOCK TABLE entitlements, integrations IN EXCLUSIVE MODE"):
        creating = await measuring.while_waiting(tenant.make_integration())
        await rival.run("UPDATE signing_keys SET push_began_at = now(), pushed_at = now() WHERE status = 'next'")
    assert (await creating)["core_key_id"] == staged
    assert await trusted(measuring) == [(staged, old)]
    assert await rival.rows("SELECT pushed_at FROM signing_keys WHERE status = 'next'") == [(None,)]


async def test_an_update_of_the_key_that_a_rotation_overtook_ends_with_the_new_key(
    tenant: Tenant, keys: Keys, measuring: Rival, rival: Rival
) -> None:
    """The update chose the key earlier and arrived later: the integration would refuse every event in seven minutes."""
    old = (await keys.by_status())["active"]
    integration = await tenant.make_integration()
    staged = await keys.stage()
    async with rival.holding("SELECT FROM projects FOR UPDATE"):
        updating = await rival.while_waiting(tenant.change_integration("core-key", integration["id"]))
        await keys.put_in_place(staged)
        assert await trusted(measuring) == [(staged, old)]
    assert (await updating).json == {"integration_id": integration["id"], "core_key_id": staged}
    assert await trusted(measuring) == [(staged, old)]


@pytest.mark.parametrize("phase", ["begin", "activate", "note"])
async def test_a_rotation_that_dies_is_finished_by_running_it_again(
    tenant: Tenant, keys: Keys, measuring: Rival, rival: Rival, phase: str
) -> None:
    await tenant.make_integration()
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    condition = {
        "begin": "NEW.push_began_at IS DISTINCT FROM OLD.push_began_at",
        "activate": "NEW.status = 'active'",
        "note": "NEW.pushed_at IS DISTINCT FROM OLD.pushed_at",
    }[phase]
    await rival.run(
        "CREATE FUNCTION dying() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
    )
    try:
        await rival.run(
            f"CREATE TRIGGER dying BEFORE UPDATE ON signing_keys FOR EACH ROW WHEN ({condition})"
            " EXECUTE FUNCTION dying()"
        )
        with pytest.raises(Exception, match="database"):
            await keys.put_in_place(staged)
    finally:
        await rival.run("DROP FUNCTION dying CASCADE")
    await keys.put_in_place(staged)
    assert await keys.by_status() == {"retiring": old, "active": staged}
    assert await trusted(measuring) == [(staged, old)]


async def test_a_rotation_finished_late_gives_the_old_key_its_seven_minutes(
    tenant: Tenant, keys: Keys, measuring: Rival, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The integrations that were updated first would have forgotten it, and would refuse events under way."""
    clock = tenant.api.clock
    clock.freeze()
    await tenant.make_integration()
    await rival.run("UPDATE signing_keys SET pushed_at = now()")
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    with monkeypatch.context() as patch:
        patch.setattr(service, "activate", _dying)
        with pytest.raises(ConnectionError):
            await keys.put_in_place(staged)
    clock.advance(minutes=20)
    await jobs.push_missing_keys(keys.work)
    assert await trusted(measuring) == [(staged, old)]
    seven_minutes_on = clock.now() + timedelta(minutes=7)
    assert await measuring.rows("SELECT previous_until FROM integrations") == [(seven_minutes_on,)]
    clock.advance(minutes=1)
    await keys.put_in_place(staged)
    assert await measuring.rows("SELECT previous_until FROM integrations") == [(seven_minutes_on,)], "and no longer"


async def _dying(*_: Any) -> None:
    raise ConnectionError


async def test_two_rotations_at_once_do_it_once(tenant: Tenant, keys: Keys, measuring: Rival) -> None:
    await tenant.make_integration()
    old = (await keys.by_status())["active"]
    staged = await keys.stage()
    await asyncio.gather(keys.put_in_place(staged), keys.put_in_place(staged))
    assert await trusted(measuring) == [(staged, old)]


@pytest.mark.parametrize("status", ["retiring", "retired", "none"])
async def test_only_a_staged_key_is_put_in_place(keys: Keys, rival: Rival, status: str) -> None:
    first = (await keys.by_status())["active"]
    await keys.put_in_place(await keys.stage())
    if status == "retired":
        await rival.run("UPDATE signing_keys SET status = 'retired', sealed_seed = NULL WHERE key_id = %s", first)
    with pytest.raises(KeyRefused):
        await keys.put_in_place("sig_none" if status == "none" else first)


async def test_a_key_that_core_did_not_make_is_not_pushed(
    tenant: Tenant, keys: Keys, measuring: Rival, rival: Rival
) -> None:
    """The pushed key comes from the sealed half, so writing to the table cannot make Audience trust another key."""
    await tenant.make_integration()
    staged = await keys.stage()
    (genuine,) = await rival.rows("SELECT public_key FROM signing_keys WHERE status = 'next'")
    await rival.run("UPDATE signing_keys SET public_key = %s WHERE status = 'next'", bytes(32))
    await keys.put_in_place(staged)
    assert await measuring.rows("SELECT core_public_key FROM integrations") == [genuine]


async def test_a_rotation_waits_until_the_previous_one_is_over(
    api: Api, tenant: Tenant, keys: Keys, measuring: Rival
) -> None:
    """Audience trusts one key and the one before, so it would refuse proofs of a third. In an emergency it does."""
    await tenant.make_integration()
    first = (await keys.by_status())["active"]
    second = await keys.stage()
    await keys.put_in_place(second)
    third = await keys.stage()
    with pytest.raises(KeyRefused, match=f"{first} signed proofs a moment ago"):
        await keys.put_in_place(third)
    assert await trusted(measuring) == [(second, first)]
    assert await keys.put_in_place(third, must_reach_audience=False) is True
    fourth = await keys.stage()
    api.clock.advance(minutes=6)
    await keys.put_in_place(fourth)
    assert await trusted(measuring) == [(fourth, third)]

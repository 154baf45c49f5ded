"""`POST /v1/codes/{xr_id}/revoke`: once, at one time, both halves or none."""

import asyncio
from typing import Any

from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp


async def detail(tenant: Tenant, code: dict[str, Any]) -> Any:
    return (await tenant.api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json


async def revoked_at(rival: Rival) -> list[str | None]:
    """Return when the only Code and its broadcast were revoked, as stored."""
    rows = await rival.rows("SELECT codes.revoked_at, broadcasts.revoked_at FROM codes, broadcasts")
    return [moment and format_timestamp(moment) for row in rows for moment in row]


async def test_the_answer_is_the_code_revoked_now(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    code = await tenant.make_code()
    api.clock.advance(seconds=1.5)
    now = format_timestamp(api.clock.now())
    answer = await tenant.revoke(code["xr_id"])
    assert (answer.status, answer.json) == (200, {**code, "status": "revoked", "revoked_at": now})
    assert await detail(tenant, code) == answer.json
    assert await revoked_at(rival) == [now, now]
    assert (await api.resolve(code["broadcast_token"])).code == "code_unavailable"


async def test_a_second_revoke_answers_the_same_bytes(api: Api, tenant: Tenant, rival: Rival) -> None:
    """The time is that of the first, also after the Code's own expiry."""
    api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    first = await tenant.revoke(code["xr_id"])
    stored = await revoked_at(rival)
    for seconds in (1, 60):
        api.clock.advance(seconds=seconds)
        again = await tenant.revoke(code["xr_id"])
        assert (again.status, again.body) == (200, first.body)
    assert await revoked_at(rival) == stored


async def test_an_expired_code_is_answered_unchanged(api: Api, tenant: Tenant, rival: Rival) -> None:
    """It expired and was never revoked, and its receivers are still told that."""
    api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    api.clock.advance(seconds=60)
    answer = await tenant.revoke(code["xr_id"])
    assert (answer.status, answer.json) == (200, {**code, "status": "expired"})
    assert await revoked_at(rival) == [None, None]
    assert (await api.resolve(code["broadcast_token"])).code == "code_expired"


async def test_a_code_is_revoked_in_its_last_millisecond(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    api.clock.advance(seconds=59.999)
    assert (await tenant.revoke(code["xr_id"])).json["status"] == "revoked"
    api.clock.advance(seconds=0.001)
    assert (await api.resolve(code["broadcast_token"])).code == "code_unavailable"


async def test_two_at_once_are_one_revocation(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Both wait for the Code's row; the second finds it revoked and returns the time of the first."""
    api.clock.freeze()
    code = await tenant.make_code()
    async with rival.holding("SELECT 1 FROM codes FOR UPDATE"):
        one = asyncio.create_task(tenant.revoke(code["xr_id"]))
        two = asyncio.create_task(tenant.revoke(code["xr_id"]))
        await rival.until_someone_waits(2)
        api.clock.advance(seconds=1)
    now = format_timestamp(api.clock.now())
    assert (await one).body == (await two).body
    assert (await one).json["revoked_at"] == now
    assert await revoked_at(rival) == [now, now]


async def test_the_first_of_two_wins(api: Api, tenant: Tenant, rival: Rival) -> None:
    """The waiting one sees what the other committed, not what it read before."""
    code = await tenant.make_code()
    earlier = api.clock.freeze()
    async with rival.committing("UPDATE codes SET revoked_at = %s", earlier):
        api.clock.advance(seconds=5)
        revoking = await rival.while_waiting(tenant.revoke(code["xr_id"]))
    assert (await revoking).json["revoked_at"] == format_timestamp(earlier)


async def test_expiry_is_judged_after_the_lock_wait(api: Api, tenant: Tenant, rival: Rival) -> None:
    """A Code that expires while the revoke waits for it is expired, not revoked."""
    api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    async with rival.holding("SELECT 1 FROM codes FOR UPDATE"):
        revoking = await rival.while_waiting(tenant.revoke(code["xr_id"]))
        api.clock.advance(seconds=60)
    assert (await revoking).json["status"] == "expired"
    assert await revoked_at(rival) == [None, None]


async def test_a_code_deleted_during_the_wait_is_not_found(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    async with rival.committing("DELETE FROM codes"):
        revoking = await rival.while_waiting(tenant.revoke(code["xr_id"]))
    assert ((await revoking).status, (await revoking).code) == (404, "code_not_found")

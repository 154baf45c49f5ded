"""`GET /v1/codes?include=intent`: each Code with its intent, which was verified."""

from support.api.core_client import Api
from support.codes.lists import list_ids, read_page
from support.database.rival import Rival
from support.tenancy.tenant import Tenant


async def test_an_entry_is_the_code_with_its_intent(api: Api, tenant: Tenant) -> None:
    """Whatever its status."""
    api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    del code["signed_code"]
    assert (await read_page(tenant, include="intent")).json == {"data": [code], "next_cursor": None}
    api.clock.advance(minutes=1)
    expired = (await read_page(tenant, include="intent")).json["data"]
    assert expired == [{**code, "status": "expired"}]


async def test_each_has_its_own_intent(tenant: Tenant) -> None:
    for number in range(3):
        await tenant.make_code(intent={"type": "note", "action": "show", "resource": {"n": number}})
        tenant.api.clock.advance(milliseconds=1)
    data = (await read_page(tenant, include="intent", order="asc")).json["data"]
    assert [entry["intent"]["resource"] for entry in data] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_an_altered_code_is_left_out_and_the_page_goes_on(tenant: Tenant, rival: Rival) -> None:
    """An intent that does not verify is never returned; the list without intents has the Code still."""
    codes = [await tenant.make_code() for _ in range(4)]
    first, second = codes[0], codes[1]
    await rival.run("UPDATE broadcasts SET signature = 'x' WHERE token = %s", first["broadcast_token"])
    await rival.run("DELETE FROM broadcasts WHERE token = %s", second["broadcast_token"])
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(4):
        answer = await read_page(tenant, include="intent", limit=1, **cursor)
        seen += [entry["xr_id"] for entry in answer.json["data"]]
        cursor = {"cursor": answer.json["next_cursor"]}
    assert (sorted(seen), cursor) == (sorted(code["xr_id"] for code in codes[2:]), {"cursor": None})
    assert len(await list_ids(tenant)) == 4


async def test_a_status_is_judged_with_the_intents(tenant: Tenant) -> None:
    active, revoked = await tenant.make_code(), await tenant.make_code()
    await tenant.revoke(revoked["xr_id"])
    assert await list_ids(tenant, include="intent", status="active") == [active["xr_id"]]

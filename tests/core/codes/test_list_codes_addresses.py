"""`GET /v1/codes?address_prefix=`: the Codes whose address begins with a text, whatever characters that has."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.codes.addresses import HOSTILE_URLS, begins_with
from support.codes.lists import list_ids, pointers, read_page, refused
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_second_project, make_tenant


async def make_at(tenant: Tenant, url: Any) -> str:
    code = await tenant.make_code(intent={"type": "link", "action": "open", "resource": {"url": url}})
    xr_id: str = code["xr_id"]
    return xr_id


async def test_hostile_prefixes_find_what_begins_with_them(tenant: Tenant) -> None:
    """Each address by each prefix that another address begins with, and by texts that mean something elsewhere."""
    made = {await make_at(tenant, url): url for url in HOSTILE_URLS}
    texts = [url for url in HOSTILE_URLS if isinstance(url, str)]
    prefixes = {url[:length] for url in texts for length in (1, 7, 8, 20, 199, 200) if url}
    prefixes |= {"%", "_", "\\", "%68ttps", "' OR true --", "*", "^", "\0", "\uffff", "\U0010ffff", "a\0", "$1", "%s"}
    prefixes |= {prefix.swapcase() for prefix in list(prefixes)}
    for prefix in sorted(prefixes):
        expected = {xr_id for xr_id, url in made.items() if begins_with(url, prefix)}
        assert set(await list_ids(tenant, address_prefix=prefix, limit=100)) == expected, ascii(prefix)


async def test_an_intent_without_an_address_is_never_found(tenant: Tenant) -> None:
    await tenant.make_code(intent={"type": "note", "action": "show", "resource": {}})
    await make_at(tenant, None)
    found = await make_at(tenant, "null")
    assert await list_ids(tenant, address_prefix="n") == [found]


async def test_batches_have_addresses_too(tenant: Tenant) -> None:
    """Also requests that are issued together, each with its own."""
    body = tenant.code_body(
        count=3, intent={"type": "link", "action": "open", "resource": {"url": "https://b.example"}}
    )
    answer = await tenant.api.post("/v1/codes/batch", json=body)
    single = await make_at(tenant, "https://a.example")
    expected = {code["xr_id"] for code in answer.json["data"]}
    assert set(await list_ids(tenant, address_prefix="https://B.")) == expected
    assert await list_ids(tenant, address_prefix="https://a.") == [single]


async def test_only_codes_within_reach_are_found(api: Api, tenant: Tenant) -> None:
    other, second = await make_tenant(api), await make_second_project(tenant)
    made = [await make_at(place, "https://example.org/") for place in (tenant, second, other)]
    server = tenant.with_key(await tenant.make_key())
    assert set(await list_ids(tenant, address_prefix="https:")) == set(made[:2])
    assert await list_ids(tenant, address_prefix="https:", project_id=second.project_id) == [made[1]]
    assert await list_ids(server, address_prefix="https:") == [made[0]]


@pytest.mark.parametrize("length", [0, 201])
async def test_a_prefix_of_another_length_is_refused(tenant: Tenant, length: int) -> None:
    assert pointers(await read_page(tenant, address_prefix="😀" * length)) == [("query", "/address_prefix")]


async def test_a_repeated_prefix_is_refused(tenant: Tenant) -> None:
    path = f"/v1/codes?organization_id={tenant.organization_id}&address_prefix=a&address_prefix=b"
    assert refused(await tenant.api.get(path)) == (422, "validation_failed")


async def test_a_prefix_that_is_no_unicode_finds_nothing(tenant: Tenant) -> None:
    await make_at(tenant, "https://example.org/")
    path = f"/v1/codes?organization_id={tenant.organization_id}&address_prefix=https://example.org/%FF"
    answer = await tenant.api.get(path)
    assert answer.status in {200, 422}
    assert answer.json.get("data", []) == []


async def test_a_cursor_belongs_to_its_prefix(tenant: Tenant) -> None:
    for _ in range(2):
        await make_at(tenant, "https://example.org/")
    cursor = (await read_page(tenant, limit=1, address_prefix="https:")).json["next_cursor"]
    plain = (await read_page(tenant, limit=1)).json["next_cursor"]
    assert (await read_page(tenant, cursor=cursor, address_prefix="https:")).status == 200
    for query in (
        {"cursor": cursor},
        {"cursor": cursor, "address_prefix": "http"},
        {"cursor": plain, "address_prefix": "https:"},
    ):
        assert refused(await read_page(tenant, **query)) == (422, "invalid_cursor")


async def test_an_address_goes_with_its_code(tenant: Tenant, rival: Rival) -> None:
    await make_at(tenant, "https://example.org/")
    await rival.run("DELETE FROM codes")
    assert await list_ids(tenant, address_prefix="https:") == []


async def test_the_index_finds_an_address_under_row_level_security(tenant: Tenant, rival: Rival) -> None:
    """As the application's role sees it: neither other tenants nor the tenant's other addresses are read."""
    await make_at(tenant, "https://example.org/")
    for number in range(30):  # Of the tenant too, so that its own index is the worse one.
        await make_at(tenant, f"http://example.org/{number}")
    await rival.run("ANALYZE codes")
    ((role,),) = await rival.rows("SELECT tableowner FROM pg_tables WHERE tablename = 'codes'")
    plan = await rival.explain(
        role,
        tenant.organization_id,
        "SELECT xr_id FROM codes WHERE organization_id = %s AND address >= %s::bytea AND address < %s::bytea",
        tenant.organization_id,
        b"https:",
        b"https;",
    )
    assert "codes_by_address" in plan
    assert "Filter: (address" not in plan

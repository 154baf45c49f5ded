"""`GET /v1/codes?sort=&order=`: by issuance or expiry, in either direction, also among equal times."""

import itertools

import pytest
from support.codes.lists import list_ids, pointers, read_page, refused
from support.tenancy.tenant import Tenant

ORDERS = list(itertools.product(("issued_at", "expires_at"), ("desc", "asc")))


@pytest.fixture
async def issued(tenant: Tenant) -> list[dict[str, str]]:
    """Codes of which many share a time of issuance or of expiry, and whose two orders differ."""
    tenant.api.clock.freeze()
    made = []
    for lifetime_s in (60, 30, 30, 90, 29.999, 60):
        made += [await tenant.make_code(lifetime_s=lifetime_s) for _ in range(2)]
        tenant.api.clock.advance(milliseconds=1)
    return made


def ids_in_order(issued: list[dict[str, str]], sort: str, order: str) -> list[str]:
    return [
        code["xr_id"] for code in sorted(issued, key=lambda code: (code[sort], code["xr_id"]), reverse=order == "desc")
    ]


@pytest.mark.parametrize(
    ("query", "sort", "order"),
    [({}, "issued_at", "desc"), ({"sort": "expires_at"}, "expires_at", "desc")],
    ids=str,
)
async def test_the_defaults(
    tenant: Tenant, issued: list[dict[str, str]], query: dict[str, str], sort: str, order: str
) -> None:
    assert await list_ids(tenant, **query) == ids_in_order(issued, sort, order)


async def test_a_code_that_expires_between_two_pages_is_not_active_on_the_second(
    tenant: Tenant, issued: list[dict[str, str]]
) -> None:
    query = {"sort": "expires_at", "order": "asc", "status": "active"}
    first = await read_page(tenant, limit=1, **query)
    tenant.api.clock.advance(seconds=45)
    rest = await list_ids(tenant, cursor=first.json["next_cursor"], **query)
    assert rest == ids_in_order(issued, "expires_at", "asc")[6:]


@pytest.mark.parametrize(
    ("name", "value"),
    [("sort", "xr_id"), ("order", "up"), ("include", "signed_code")],
)
async def test_another_order_or_inclusion_is_refused(tenant: Tenant, name: str, value: str) -> None:
    assert pointers(await read_page(tenant, **{name: value})) == [("query", f"/{name}")]


async def test_a_cursor_belongs_to_its_order(tenant: Tenant, issued: list[dict[str, str]]) -> None:
    """Only the default has two spellings, so that a cursor of a release without orders stays valid."""
    assert issued
    cursors = {
        (sort, order): (await read_page(tenant, limit=1, sort=sort, order=order)).json["next_cursor"]
        for sort, order in ORDERS
    }
    for ((sort, order), cursor), other in itertools.product(cursors.items(), ORDERS):
        answer = await read_page(tenant, cursor=cursor, sort=other[0], order=other[1])
        if other == (sort, order):
            assert answer.status == 200
        else:
            assert refused(answer) == (422, "invalid_cursor"), (sort, order, other)
    before = await list_ids(tenant, cursor=cursors["issued_at", "desc"])
    assert before == ids_in_order(issued, "issued_at", "desc")[1:]


async def test_limit_and_inclusion_may_change_between_pages(tenant: Tenant, issued: list[dict[str, str]]) -> None:
    first = await read_page(tenant, limit=1)
    second = await read_page(tenant, limit=2, include="intent", cursor=first.json["next_cursor"])
    third = await read_page(tenant, limit=100, cursor=second.json["next_cursor"])
    entries = [entry for answer in (first, second, third) for entry in answer.json["data"]]
    assert [entry["xr_id"] for entry in entries] == ids_in_order(issued, "issued_at", "desc")
    assert ["intent" in entry for entry in entries] == [False, True, True] + [False] * (len(issued) - 3)

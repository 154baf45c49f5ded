"""How many organisations a person may own: checked wherever somebody becomes an owner, also concurrently."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.identity.oidc_issuer import CLIENT_ID
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

LIMIT = 2


@pytest.fixture
async def limited(people: People, database_url: Secret, clock: FakeClock) -> AsyncIterator[People]:
    """A Core where a person may own two organisations."""
    changes = {"oidc_issuer": people.issuer.url, "oidc_client_id": CLIENT_ID, "organizations_per_user": LIMIT}
    async with running_core(core_settings(database_url, **changes), clock) as api:
        yield People(api.other(token=None), people.issuer)


async def create(api: Api) -> Answer:
    return await api.post("/v1/organizations", json={"name": "Radio"})


async def change_role(tenant: Tenant, subject_id: str, role: str) -> Answer:
    return await tenant.api.put(f"/v1/members/{subject_id}", params=tenant.query, json={"role": role})


async def owned(rival: Rival, subject_id: str) -> int:
    rows = await rival.rows("SELECT FROM members WHERE subject_id = %s AND role = 'owner'", subject_id)
    return len(rows)


async def test_one_more_is_refused(limited: People, rival: Rival) -> None:
    ada = limited.person("ada")
    answers = [await create(ada) for _ in range(LIMIT + 1)]

    assert [answer.status for answer in answers] == [201] * LIMIT + [409]
    assert answers[-1].code == "organization_limit_reached"
    assert await owned(rival, "ada") == LIMIT
    assert len(await rival.rows("SELECT FROM organizations")) == LIMIT, "nothing is left of the refused one"
    assert (await create(limited.person("eva"))).status == 201, "everybody has a limit of their own"


async def test_fifty_are_allowed_by_default(people: People, rival: Rival) -> None:
    ada = people.person("ada")
    answers = await asyncio.gather(*(create(ada) for _ in range(52)))

    assert Counter(answer.status for answer in answers) == {201: 50, 409: 2}
    assert await owned(rival, "ada") == 50


async def test_the_operator_may_own_any_number(database_url: Secret) -> None:
    async with running_core(core_settings(database_url, organizations_per_user=1)) as api:
        assert [(await create(api)).status for _ in range(4)] == [201] * 4


async def test_a_person_with_the_operators_name_is_not_the_operator(limited: People) -> None:
    operator = limited.person("operator", email="operator@localhost", realm_access={"roles": ["svc_platform_admin"]})

    assert [(await create(operator)).status for _ in range(LIMIT + 1)] == [201] * LIMIT + [409]


async def test_only_what_a_person_owns_counts(limited: People, rival: Rival) -> None:
    for number, role in enumerate(("admin", "member", "billing")):
        await (await limited.tenant_of(f"owner{number}")).make_member(rival, "ada", role)

    assert [(await create(limited.person("ada"))).status for _ in range(LIMIT + 1)] == [201] * LIMIT + [409]


async def test_a_person_who_leaves_one_may_create_another(limited: People, rival: Rival) -> None:
    ada = limited.person("ada")
    tenants = [await limited.tenant_of("ada") for _ in range(LIMIT)]
    await tenants[0].make_member(rival, "eva", "owner")
    assert (await create(ada)).status == 409

    assert (await ada.delete("/v1/members/ada", params=tenants[0].query)).status == 204

    assert (await create(ada)).status == 201


async def test_a_change_of_role_does_not_bypass_it(limited: People, rival: Rival) -> None:
    """Otherwise a second login could be given each organisation that the first one creates."""
    for _ in range(LIMIT):
        await limited.tenant_of("ada")
    tenant = await limited.tenant_of("eva")
    await tenant.make_member(rival, "ada", "member")

    refused = await change_role(tenant, "ada", "owner")

    assert (refused.status, refused.code) == (409, "organization_limit_reached")
    assert await rival.rows("SELECT role FROM members WHERE subject_id = 'ada' AND role <> 'owner'") == [("member",)]
    assert await rival.audited("member.role_changed") == []
    assert (await change_role(tenant, "ada", "admin")).status == 200
    for owner in ("eva", "ada"):
        unchanged = await change_role(Tenant(limited.person("eva"), tenant.organization_id, ""), "eva", "owner")
        assert unchanged.status == 200, owner


async def test_with_room_left_a_member_becomes_an_owner(limited: People, rival: Rival) -> None:
    await limited.tenant_of("ada")
    tenant = await limited.tenant_of("eva")
    await tenant.make_member(rival, "ada", "member")

    assert (await change_role(tenant, "ada", "owner")).status == 200
    assert (await create(limited.person("ada"))).status == 409


async def test_concurrent_creations_do_not_exceed_the_limit(limited: People, rival: Rival) -> None:
    ada = limited.person("ada")
    answers = await asyncio.gather(*(create(ada) for _ in range(10)))

    assert Counter(answer.status for answer in answers) == {201: LIMIT, 409: 10 - LIMIT}
    assert await owned(rival, "ada") == LIMIT


async def test_of_a_creation_and_a_role_at_once_the_second_sees_the_first(limited: People, rival: Rival) -> None:
    await limited.tenant_of("ada")
    tenant = await limited.tenant_of("eva")
    await tenant.make_member(rival, "ada", "member")
    async with rival.holding("LOCK TABLE audit_entries IN ACCESS EXCLUSIVE MODE"):
        creating = await rival.while_waiting(create(limited.person("ada")))
        changing = asyncio.create_task(change_role(tenant, "ada", "owner"))
        await rival.until_someone_waits(2)
    answers = await asyncio.gather(creating, changing)

    assert [answer.status for answer in answers] == [201, 409]
    assert await owned(rival, "ada") == LIMIT

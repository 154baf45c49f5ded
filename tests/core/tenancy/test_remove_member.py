"""`DELETE /v1/members/{subject_id}`: everybody may leave but the last owner."""

import asyncio

import pytest
from support.api.core_client import Answer
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

ROLES = ("owner", "admin", "member", "billing")
MIGHTY = {"owner", "admin"}


@pytest.fixture
async def tenant(people: People) -> Tenant:
    """Alice owns it."""
    return await people.tenant_of("alice")


async def remove(tenant: Tenant, subject_id: str) -> Answer:
    return await tenant.api.delete(f"/v1/members/{subject_id}", params=tenant.query)


async def subjects(rival: Rival) -> set[str]:
    return {subject_id for (subject_id,) in await rival.rows("SELECT subject_id FROM members")}


@pytest.mark.parametrize("caller", ROLES)
async def test_only_an_owner_removes_owners_and_administrators(
    people: People, tenant: Tenant, rival: Rival, caller: str
) -> None:
    acting = await people.member(tenant, rival, "acting", caller)
    for target in ROLES:
        await rival.run("DELETE FROM members WHERE subject_id = 'bob'")
        await tenant.make_member(rival, "bob", target)
        entries = await rival.audited("member.removed")
        answer = await remove(acting, "bob")
        is_allowed = caller == "owner" or (caller == "admin" and target not in MIGHTY)
        assert answer.status == (204 if is_allowed else 403), target
        assert await subjects(rival) == {"alice", "acting"} | (set() if is_allowed else {"bob"})
        removed = ("user acting", None, {"subject_id": "bob", "role": target})
        assert (await rival.audited("member.removed"))[len(entries) :] == ([removed] if is_allowed else [])


@pytest.mark.parametrize("role", ROLES)
async def test_everybody_may_leave(people: People, tenant: Tenant, rival: Rival, role: str) -> None:
    """After that they are a stranger."""
    bob = await people.member(tenant, rival, "bob", role)
    assert (await remove(bob, "bob")).status == 204
    assert await rival.audited("member.removed") == [("user bob", None, {"subject_id": "bob", "role": role})]
    assert (await remove(bob, "bob")).code == "organization_not_found"
    assert (await bob.api.get("/v1/projects", params=bob.query)).code == "organization_not_found"
    assert (await bob.api.get("/v1/organizations")).json["data"] == []


async def test_the_last_owner_stays(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_member(rival, "bob", "admin")
    answer = await remove(tenant, "alice")
    assert (answer.status, answer.code) == (409, "last_owner")
    assert await subjects(rival) == {"alice", "bob"}
    assert await rival.audited("member.removed") == []


@pytest.mark.parametrize("subject_id", ["nobody", "%00"])
async def test_a_person_who_is_not_a_member_is_not_found(tenant: Tenant, subject_id: str) -> None:
    answer = await remove(tenant, subject_id)
    assert (answer.status, answer.code) == (404, "member_not_found")


@pytest.mark.parametrize("role", ["member", "billing"])
async def test_a_caller_who_may_remove_nobody_learns_no_members(
    people: People, tenant: Tenant, rival: Rival, role: str
) -> None:
    """Only owners and administrators learn whether somebody is a member."""
    acting = await people.member(tenant, rival, "acting", role)
    assert (await remove(acting, "alice")).code == (await remove(acting, "nobody")).code == "forbidden"


async def test_resources_of_a_removed_member_stay(people: People, tenant: Tenant, rival: Rival) -> None:
    """A Code and a key belong to the project."""
    bob = await people.member(tenant, rival, "bob", "admin")
    code, key = await bob.make_code(), await bob.make_key()
    await remove(tenant, "bob")
    server = tenant.with_key(key)
    assert (await server.api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json["status"] == "active"


# Two at the same moment.


async def test_of_two_owners_who_leave_one_stays(people: People, tenant: Tenant, rival: Rival) -> None:
    bob = await people.member(tenant, rival, "bob", "owner")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        first = await rival.while_waiting(remove(tenant, "alice"))
        second = asyncio.create_task(remove(bob, "bob"))
        await rival.until_someone_waits(2)
    assert (await first).status == 204
    assert ((await second).status, (await second).code) == (409, "last_owner")
    assert await subjects(rival) == {"bob"}


async def test_two_owners_who_remove_each_other_leave_one(people: People, tenant: Tenant, rival: Rival) -> None:
    """The second is no longer a member when its turn comes."""
    bob = await people.member(tenant, rival, "bob", "owner")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        first = await rival.while_waiting(remove(tenant, "bob"))
        second = asyncio.create_task(remove(bob, "alice"))
        await rival.until_someone_waits(2)
    assert (await first).status == 204
    assert ((await second).status, (await second).code) == (404, "organization_not_found")
    assert await subjects(rival) == {"alice"}


async def test_an_owner_leaves_while_the_other_steps_down(people: People, tenant: Tenant, rival: Rival) -> None:
    bob = await people.member(tenant, rival, "bob", "owner")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        first = await rival.while_waiting(remove(tenant, "alice"))
        step = bob.api.put("/v1/members/bob", params=bob.query, json={"role": "member"})
        second = asyncio.create_task(step)
        await rival.until_someone_waits(2)
    assert ((await first).status, (await second).code) == (204, "last_owner")


async def test_all_owners_leave_at_once_and_one_stays(people: People, tenant: Tenant, rival: Rival) -> None:
    """However they interleave."""
    owners = [tenant] + [await people.member(tenant, rival, f"owner{number}", "owner") for number in range(4)]
    names = ["alice", *(f"owner{number}" for number in range(4))]
    answers = await asyncio.gather(*(remove(owner, name) for owner, name in zip(owners, names, strict=True)))
    assert sorted(answer.status for answer in answers) == [204, 204, 204, 204, 409]
    assert len(await rival.rows("SELECT 1 FROM members WHERE role = 'owner'")) == 1


async def test_an_administrator_demoted_meanwhile_removes_nobody(people: People, tenant: Tenant, rival: Rival) -> None:
    """Every role may call this operation, because everybody may leave."""
    bob = await people.member(tenant, rival, "bob", "admin")
    await tenant.make_member(rival, "carol", "member")
    async with rival.committing("UPDATE members SET role = 'member' WHERE subject_id = 'bob'"):
        removing = await rival.while_waiting(remove(bob, "carol"))
    assert ((await removing).status, (await removing).code) == (403, "forbidden")
    assert await subjects(rival) == {"alice", "bob", "carol"}


async def test_an_act_that_is_under_way_commits_before_the_removal(
    people: People, tenant: Tenant, rival: Rival
) -> None:
    bob = await people.member(tenant, rival, "bob", "admin")
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        issuing = await rival.while_waiting(bob.api.post("/v1/codes", json=bob.code_body()))
        removing = asyncio.create_task(remove(tenant, "bob"))
        await rival.until_someone_waits(2)
        assert not removing.done()
    assert ((await issuing).status, (await removing).status) == (201, 204)


async def test_an_act_after_the_removal_is_refused(people: People, tenant: Tenant, rival: Rival) -> None:
    bob = await people.member(tenant, rival, "bob", "admin")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        removing = await rival.while_waiting(remove(tenant, "bob"))
        issuing = asyncio.create_task(bob.api.post("/v1/codes", json=bob.code_body()))
        await rival.until_someone_waits(2)
    assert (await removing).status == 204
    assert ((await issuing).status, (await issuing).code) == (404, "organization_not_found")
    assert await rival.rows("SELECT 1 FROM codes") == []

"""`PUT /v1/members/{subject_id}`: only an owner may appoint, change or demote owners and administrators."""

import asyncio
import itertools
from typing import Any
from urllib.parse import quote

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


async def change(tenant: Tenant, subject_id: str, role: Any) -> Answer:
    return await tenant.api.put(f"/v1/members/{quote(subject_id)}", params=tenant.query, json={"role": role})


async def roles(rival: Rival) -> dict[str, str]:
    return dict(await rival.rows("SELECT subject_id, role FROM members"))


@pytest.mark.parametrize("caller", ["owner", "admin"])
async def test_only_an_owner_makes_or_changes_owners_and_administrators(
    people: People, tenant: Tenant, rival: Rival, caller: str
) -> None:
    acting = await people.member(tenant, rival, "acting", caller)
    for before, after in itertools.product(ROLES, ROLES):
        await rival.run("DELETE FROM members WHERE subject_id = 'bob'")
        await tenant.make_member(rival, "bob", before)
        entries = await rival.audited("member.role_changed")
        answer = await change(acting, "bob", after)
        is_allowed = caller == "owner" or not {before, after} & MIGHTY
        assert answer.status == (200 if is_allowed else 403), (before, after)
        assert (await roles(rival))["bob"] == (after if is_allowed else before)
        changed = {"subject_id": "bob", "previous_role": before, "role": after}
        written = (await rival.audited("member.role_changed"))[len(entries) :]
        assert written == ([("user acting", None, changed)] if is_allowed and before != after else [])


async def test_the_answer_is_the_member(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_member(rival, "bob", "member")
    answer = await change(tenant, "bob", "billing")
    listed = await tenant.api.get("/v1/members", params=tenant.query)
    assert answer.json in listed.json["data"]
    assert (answer.json["subject_id"], answer.json["email"]) == ("bob", "bob@example.org")


async def test_an_administrator_cannot_promote_or_demote_themselves(
    people: People, tenant: Tenant, rival: Rival
) -> None:
    """An administrator may leave, but only an owner may change their role."""
    acting = await people.member(tenant, rival, "bob", "admin")
    for role in ("owner", "member"):
        assert (await change(acting, "bob", role)).code == "forbidden"
    assert (await roles(rival))["bob"] == "admin"


@pytest.mark.parametrize("role", ["admin", "member"])
async def test_the_last_owner_stays_one(tenant: Tenant, rival: Rival, role: str) -> None:
    """Other members do not count, nor does an owner of another organisation."""
    await tenant.make_member(rival, "bob", "admin")
    answer = await change(tenant, "alice", role)
    assert (answer.status, answer.code) == (409, "last_owner")
    assert await roles(rival) == {"alice": "owner", "bob": "admin"}
    assert await rival.audited("member.role_changed") == []


async def test_the_last_owner_may_be_made_an_owner(tenant: Tenant) -> None:
    """They already are one."""
    assert (await change(tenant, "alice", "owner")).status == 200


async def test_an_owner_may_step_down_beside_another(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_member(rival, "bob", "owner")
    assert (await change(tenant, "alice", "member")).json["role"] == "member"
    assert (await change(tenant, "bob", "member")).code == "forbidden"


@pytest.mark.parametrize("subject_id", ["ALICE", " alice", "a\0b", "a/b"])
async def test_a_person_who_is_not_a_member_is_not_found(tenant: Tenant, subject_id: str) -> None:
    answer = await change(tenant, subject_id, "member")
    assert (answer.status, answer.code) == (404, "member_not_found")


async def test_a_subject_is_at_most_255_characters(tenant: Tenant) -> None:
    answer = await change(tenant, "x" * 256, "member")
    assert (answer.code, answer.json["errors"][0]["location"]) == ("validation_failed", "path")


@pytest.mark.parametrize("subject_id", ["https://id.example.org/ada", "a%2Fb", "x?y#z"])
async def test_a_subject_may_hold_anything(tenant: Tenant, rival: Rival, subject_id: str) -> None:
    await tenant.make_member(rival, subject_id, "member")
    assert (await change(tenant, subject_id, "billing")).json["subject_id"] == subject_id
    path = f"/v1/members/{quote(subject_id, safe='')}"
    assert (await tenant.api.delete(path, params=tenant.query)).status == 204


@pytest.mark.parametrize("role", ["Owner", None, ["owner"]], ids=repr)
async def test_another_role_is_refused(tenant: Tenant, role: Any) -> None:
    answer = await change(tenant, "alice", role)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/role"]


async def test_a_change_applies_to_the_next_request(people: People, tenant: Tenant, rival: Rival) -> None:
    """On every process: roles are not cached."""
    bob = await people.member(tenant, rival, "bob", "member")
    assert (await bob.api.get("/v1/members", params=bob.query)).status == 403
    await change(tenant, "bob", "admin")
    assert (await bob.api.get("/v1/members", params=bob.query)).status == 200
    await change(tenant, "bob", "billing")
    assert (await bob.api.get("/v1/codes", params=bob.query)).status == 403


# Two at the same moment. Each test decides who comes first by letting that one wait first.


async def test_two_owners_who_demote_each_other_leave_one(people: People, tenant: Tenant, rival: Rival) -> None:
    """The second has been demoted when its turn comes."""
    bob = await people.member(tenant, rival, "bob", "owner")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        first = await rival.while_waiting(change(tenant, "bob", "member"))
        second = asyncio.create_task(change(bob, "alice", "member"))
        await rival.until_someone_waits(2)
    assert (await first).status == 200
    assert ((await second).status, (await second).code) == (403, "forbidden")
    assert await roles(rival) == {"alice": "owner", "bob": "member"}


async def test_two_owners_who_step_down_leave_one(people: People, tenant: Tenant, rival: Rival) -> None:
    bob = await people.member(tenant, rival, "bob", "owner")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        first = await rival.while_waiting(change(tenant, "alice", "admin"))
        second = asyncio.create_task(change(bob, "bob", "admin"))
        await rival.until_someone_waits(2)
    assert (await first).status == 200
    assert ((await second).status, (await second).code) == (409, "last_owner")
    assert await roles(rival) == {"alice": "admin", "bob": "owner"}


async def test_an_owner_deleted_by_hand_no_longer_counts(tenant: Tenant, rival: Rival) -> None:
    """Also beside somebody who bypasses our locks."""
    await tenant.make_member(rival, "bob", "owner")
    async with rival.committing("UPDATE members SET role = 'admin' WHERE subject_id = 'bob'"):
        stepping_down = await rival.while_waiting(change(tenant, "alice", "member"))
    assert (await stepping_down).code == "last_owner"


async def test_two_changes_of_one_member_are_one_after_the_other(people: People, tenant: Tenant, rival: Rival) -> None:
    """The log records both, each with the role that the other left."""
    bob = await people.member(tenant, rival, "bob", "owner")
    await tenant.make_member(rival, "carol", "member")
    async with rival.holding("SELECT 1 FROM members WHERE subject_id = 'carol' FOR UPDATE"):
        first = await rival.while_waiting(change(tenant, "carol", "admin"))
        second = asyncio.create_task(change(bob, "carol", "billing"))
        await rival.until_someone_waits(2)
    assert ((await first).status, (await second).status) == (200, 200)
    changes = [(actor, entry["previous_role"], entry["role"]) for actor, _, entry in await _logged_changes(rival)]
    assert changes == [("user alice", "member", "admin"), ("user bob", "admin", "billing")]


async def _logged_changes(rival: Rival) -> list[tuple[str, str | None, dict[str, Any]]]:
    return sorted(await rival.audited("member.role_changed"), key=lambda entry: entry[0])


async def test_other_organisations_do_not_wait(people: People, tenant: Tenant, rival: Rival) -> None:
    other = await people.tenant_of("bob")
    await tenant.make_member(rival, "carol", "member")
    await other.make_member(rival, "carol", "member")
    holding = "SELECT 1 FROM members WHERE organization_id = %s AND subject_id = 'carol' FOR UPDATE"
    async with rival.holding(holding, tenant.organization_id):
        changing = await rival.while_waiting(change(tenant, "carol", "billing"))
        assert (await change(other, "carol", "billing")).status == 200
        assert not changing.done()
    assert (await changing).status == 200


# A demotion against an act of the demoted person.


async def test_an_act_that_is_under_way_commits_before_the_demotion(
    people: People, tenant: Tenant, rival: Rival
) -> None:
    """Their authority is locked until the end; the demotion waits, and nothing comes after it."""
    bob = await people.member(tenant, rival, "bob", "admin")
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        issuing = await rival.while_waiting(bob.api.post("/v1/codes", json=bob.code_body()))
        demoting = asyncio.create_task(change(tenant, "bob", "member"))
        await rival.until_someone_waits(2)
        assert not demoting.done()
    assert (await issuing).status == 201
    assert (await demoting).status == 200
    assert (await bob.api.post("/v1/codes", json=bob.code_body())).code == "forbidden"


async def test_an_act_after_the_demotion_is_refused(people: People, tenant: Tenant, rival: Rival) -> None:
    """They were authorised before, and have lost the role when they act."""
    bob = await people.member(tenant, rival, "bob", "admin")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        demoting = await rival.while_waiting(change(tenant, "bob", "member"))
        issuing = asyncio.create_task(bob.api.post("/v1/codes", json=bob.code_body()))
        await rival.until_someone_waits(2)
    assert (await demoting).status == 200
    assert ((await issuing).status, (await issuing).code) == (403, "forbidden")
    assert await rival.rows("SELECT 1 FROM codes") == []


async def test_a_demotion_to_a_sufficient_role_refuses_nothing(people: People, tenant: Tenant, rival: Rival) -> None:
    bob = await people.member(tenant, rival, "bob", "owner")
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        demoting = await rival.while_waiting(change(tenant, "bob", "admin"))
        issuing = asyncio.create_task(bob.api.post("/v1/codes", json=bob.code_body()))
        await rival.until_someone_waits(2)
    assert ((await demoting).status, (await issuing).status) == (200, 201)

"""`PATCH /v1/organizations/{organization_id}`: another name, and nothing else."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant


async def rename(tenant: Tenant, name: Any = "Radio Südlicht", **more: Any) -> Answer:
    return await tenant.api.patch(f"/v1/organizations/{tenant.organization_id}", json={"name": name, **more})


async def names(rival: Rival) -> list[str]:
    return [name for (name,) in await rival.rows("SELECT name FROM organizations ORDER BY name")]


async def test_the_name_changes_and_the_rest_stays(api: Api, tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    (before,) = (await api.get("/v1/organizations")).json["data"]
    api.clock.advance(seconds=1)
    answer = await rename(tenant)
    assert (answer.status, answer.json) == (200, {**before, "name": "Radio Südlicht"})
    assert (await api.get("/v1/organizations")).json["data"] == [answer.json]
    assert (await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json == code
    assert (await api.resolve(code["broadcast_token"])).status == 200
    expected = [("user operator", None, {"name": "Radio Südlicht"})]
    assert await rival.audited("organization.updated") == expected


@pytest.mark.parametrize("name", ["a", "x" * 120, " \t\n" + "x" * 120 + "\u2003", "ÄÖ☃😀"])
async def test_a_name_has_1_to_120_characters_after_trimming(tenant: Tenant, rival: Rival, name: str) -> None:
    assert (await rename(tenant, name)).json["name"] == name.strip()
    assert await names(rival) == [name.strip()]
    assert [entry for _, _, entry in await rival.audited("organization.updated")] == [{"name": name.strip()}]


@pytest.mark.parametrize("name", ["", " \t", "x" * 121, "a\0b", "a\nb", "a\x7fb", None, 1, True, [], {}], ids=repr)
async def test_another_name_is_refused(tenant: Tenant, rival: Rival, name: Any) -> None:
    answer = await rename(tenant, name)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/name"]
    assert await names(rival) == ["Radio Nordlicht"]


@pytest.mark.parametrize("more", [{"id": "org_own"}, {"role": "owner"}, {"deletion_requested_at": None}], ids=str)
async def test_nothing_else_can_be_changed(tenant: Tenant, rival: Rival, more: dict[str, Any]) -> None:
    answer = await rename(tenant, **more)
    (member,) = more
    assert (answer.code, answer.json["errors"][0]["pointer"]) == ("validation_failed", f"/{member}")
    assert await names(rival) == ["Radio Nordlicht"]


async def test_a_name_is_required(tenant: Tenant) -> None:
    answer = await tenant.api.patch(f"/v1/organizations/{tenant.organization_id}", json={})
    assert (answer.status, answer.code) == (422, "validation_failed")


async def test_two_organisations_may_have_one_name(api: Api, tenant: Tenant, rival: Rival) -> None:
    other = await make_tenant(api)
    assert ((await rename(tenant)).status, (await rename(other)).status) == (200, 200)
    assert await names(rival) == ["Radio Südlicht"] * 2


async def test_another_organisation_keeps_its_name(api: Api, tenant: Tenant, rival: Rival) -> None:
    await api.make_organization("Another")
    await rename(tenant)
    assert await names(rival) == ["Another", "Radio Südlicht"]


async def test_a_second_factor_is_required(people: People, rival: Rival) -> None:
    """For owners and administrators; other members are told that they may not rename it at all."""
    tenant = await people.tenant_of("alice")
    await tenant.make_member(rival, "bob", "admin")
    await tenant.make_member(rival, "carol", "member")
    for subject_id, claims, status, code in (
        ("alice", {"acr": "1"}, 403, "mfa_required"),
        ("bob", {"acr": None}, 403, "mfa_required"),
        ("carol", {"acr": "1"}, 403, "forbidden"),
        ("carol", {}, 403, "forbidden"),
        ("mallory", {}, 404, "organization_not_found"),
    ):
        caller = Tenant(people.person(subject_id, **claims), tenant.organization_id, tenant.project_id)
        answer = await rename(caller)
        assert (answer.status, answer.code) == (status, code), (subject_id, claims)
    assert await names(rival) == ["Radio Nordlicht"]
    bob = Tenant(people.person("bob", acr=None, amr=["pwd", "otp"]), tenant.organization_id, tenant.project_id)
    assert (await rename(bob)).json["role"] == "admin"


async def test_two_renames_are_one_after_the_other(tenant: Tenant, rival: Rival) -> None:
    """The last one wins; the log records both."""
    async with rival.holding("SELECT 1 FROM organizations FOR UPDATE"):
        one = await rival.while_waiting(rename(tenant, "One"))
        two = asyncio.create_task(rename(tenant, "Two"))
        await rival.until_someone_waits(2)
    assert ((await one).json["name"], (await two).json["name"]) == ("One", "Two")
    assert (await names(rival))[0] in {"One", "Two"}
    expected = [entry["name"] for _, _, entry in await rival.audited("organization.updated")]
    assert sorted(expected) == ["One", "Two"]


async def test_a_caller_who_is_demoted_meanwhile_renames_nothing(tenant: Tenant, rival: Rival) -> None:
    async with rival.committing("UPDATE members SET role = 'member'"):
        renaming = await rival.while_waiting(rename(tenant))
    assert ((await renaming).status, (await renaming).code) == (403, "forbidden")
    assert await names(rival) == ["Radio Nordlicht"]


async def test_a_caller_who_becomes_an_administrator_meanwhile_is_treated_as_one(tenant: Tenant, rival: Rival) -> None:
    """`role` is the caller's at the time of the change, which may differ from the first look-up."""
    async with rival.committing("UPDATE members SET role = 'admin'"):
        renaming = await rival.while_waiting(rename(tenant))
    assert ((await renaming).status, (await renaming).json["role"]) == (200, "admin")


async def test_a_rename_cut_before_its_commit_changes_nothing(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        renaming = await rival.while_waiting(rename(tenant))
        await rival.kill_waiting_sessions()
        answer = await renaming
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await names(rival) == ["Radio Nordlicht"]
    assert await rival.audited("organization.updated") == []

"""`PATCH /v1/audience/integrations/{integration_id}`: a name for people, which Core keeps."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.faults import KINDS, core_beside, failing_audience
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

NAMES = "SELECT named_id, name FROM integration_names ORDER BY name"


async def rename(tenant: Tenant, integration_id: str, name: Any = "Studio", **more: Any) -> Answer:
    path = f"/v1/audience/integrations/{integration_id}"
    return await tenant.api.patch(path, params=tenant.in_project, json={"name": name, **more})


@pytest.fixture
async def integration(tenant: Tenant) -> dict[str, Any]:
    """An integration with a contract."""
    made = await tenant.make_integration()
    del made["hmac_secret"]
    return made


async def test_the_name_changes_and_the_rest_stays(tenant: Tenant, integration: dict[str, Any], rival: Rival) -> None:
    """The name is not in the audit log: it may be a person's."""
    assert integration["name"] is None
    answer = await rename(tenant, integration["id"], " Studio ")
    renamed = {**integration, "name": "Studio"}
    assert (answer.status, answer.json) == (200, renamed)
    listed = await tenant.api.get("/v1/audience/integrations", params=tenant.in_project)
    assert listed.json["data"] == [renamed]
    metadata = {"integration_id": integration["id"]}
    expected = [("user operator", tenant.project_id, metadata)]
    assert await rival.audited("audience.integration_renamed") == expected
    assert (await rename(tenant, integration["id"], "Lobby")).json["name"] == "Lobby"
    assert await rival.rows(NAMES) == [(integration["id"], "Lobby")]


async def test_null_removes_the_name(tenant: Tenant, integration: dict[str, Any], rival: Rival) -> None:
    await rename(tenant, integration["id"])
    assert (await rename(tenant, integration["id"], None)).json == integration
    assert await rival.rows(NAMES) == []
    assert len(await rival.audited("audience.integration_renamed")) == 2


@pytest.mark.parametrize("name", [None, "Studio"])
async def test_the_same_name_again_writes_nothing(tenant: Tenant, rival: Rival, name: str | None) -> None:
    made = await tenant.make_integration(name=name)
    assert (await rename(tenant, made["id"], name)).json["name"] == name
    assert await rival.audited("audience.integration_renamed") == []


async def test_every_view_of_an_integration_has_its_name_and_reports_have_none(tenant: Tenant) -> None:
    made = await tenant.make_integration(name=" Studio ")
    assert made["name"] == "Studio"
    report = await tenant.api.get(f"/v1/audience/reports/{made['id']}", params=tenant.in_project)
    assert "Studio" not in report.body.decode()
    for change in ("secret", "revoke"):
        assert (await tenant.change_integration(change, made["id"])).json["name"] == "Studio"


async def test_a_revoked_integration_is_renamed(tenant: Tenant, integration: dict[str, Any]) -> None:
    await tenant.change_integration("revoke", integration["id"])
    answer = await rename(tenant, integration["id"])
    assert (answer.status, answer.json["status"], answer.json["name"]) == (200, "revoked", "Studio")


async def test_a_name_goes_with_its_project(tenant: Tenant, integration: dict[str, Any], rival: Rival) -> None:
    await rename(tenant, integration["id"])
    await rival.run("DELETE FROM projects")
    assert await rival.rows(NAMES) == []


@pytest.mark.parametrize("fault", KINDS)
async def test_without_audience_nothing_is_renamed(
    tenant: Tenant, integration: dict[str, Any], rival: Rival, database_url: Secret, clock: FakeClock, fault: str
) -> None:
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as core:
        answer = await rename(Tenant(core, tenant.organization_id, tenant.project_id), integration["id"])
    assert (answer.status, answer.code) == (503, "audience_unavailable")
    assert await rival.rows(NAMES) == []
    assert await rival.audited("audience.integration_renamed") == []


async def test_of_two_that_give_one_name_the_second_writes_nothing(
    tenant: Tenant, integration: dict[str, Any], rival: Rival
) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        one = await rival.while_waiting(rename(tenant, integration["id"]))
        two = asyncio.create_task(rename(tenant, integration["id"]))
        await rival.until_someone_waits(2)
    assert ((await one).json["name"], (await two).json["name"]) == ("Studio", "Studio")
    assert len(await rival.audited("audience.integration_renamed")) == 1


async def test_a_project_that_is_deleted_meanwhile_is_not_found(
    tenant: Tenant, integration: dict[str, Any], rival: Rival
) -> None:
    async with rival.committing("DELETE FROM projects"):
        renaming = await rival.while_waiting(rename(tenant, integration["id"]))
    assert ((await renaming).status, (await renaming).code) == (404, "project_not_found")
    assert await rival.rows(NAMES) == []


async def test_a_key_whose_secret_is_replaced_meanwhile_renames_nothing(
    tenant: Tenant, integration: dict[str, Any], rival: Rival
) -> None:
    server = tenant.with_key(await tenant.make_key(scopes=["audience:write", "audience:read"]))
    await server.api.get("/v1/audience/integrations", params=tenant.in_project)  # Its use is recorded.
    async with rival.committing("UPDATE api_key_digests SET digest = 'another'"):
        renaming = await rival.while_waiting(rename(server, integration["id"]))
    assert ((await renaming).status, (await renaming).code) == (401, "unauthenticated")
    assert await rival.rows(NAMES) == []

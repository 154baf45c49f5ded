"""From what a command did to the events and deliveries of endpoints."""

import asyncio
import json
from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.webhooks.fan_out import service
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.kit.http.responses.problems import DatabaseUnavailable

Sent = list[tuple[str, dict[str, Any]]]


async def forget_acts(rival: Rival) -> None:
    """Leave out what made the endpoints themselves."""
    await rival.run("DELETE FROM webhook_acts")


async def drain(ctx: Context) -> None:
    while await fan_out(ctx):
        pass


async def rename(tenant: Tenant) -> None:
    """Do something in the organisation itself."""
    path = f"/v1/organizations/{tenant.organization_id}"
    assert (await tenant.api.call("PATCH", path, json={"name": "Radio Ost"})).status == 200


async def events(rival: Rival) -> Sent:
    """Return type and data of every event, by type and data."""
    rows = await rival.rows("SELECT type, data FROM webhook_events")
    # Not by PostgreSQL: the texts of equal data differ in their spaces.
    return sorted([(event_type, json.loads(data)) for event_type, data in rows], key=repr)


async def delivered(rival: Rival, endpoint: dict[str, Any]) -> list[str]:
    """Return the types that an endpoint is to get."""
    rows = await rival.rows(
        "SELECT event_type FROM webhook_deliveries WHERE endpoint_id = %s ORDER BY event_type", endpoint["id"]
    )
    return [event_type for (event_type,) in rows]


async def test_a_command_writes_one_act_and_each_endpoint_gets_its_event(
    tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    first, second = await tenant.make_webhook_endpoint(), await tenant.make_webhook_endpoint()
    await forget_acts(rival)
    await tenant.make_campaign("Tonight")
    assert len(await rival.rows("SELECT FROM webhook_acts")) == 1

    assert await fan_out(ctx) == 1
    assert await fan_out(ctx) == 0

    ((event_id, actor, project_id),) = await rival.rows("SELECT id, actor_id, project_id FROM webhook_events")
    assert (actor, project_id, event_id[:4], len(event_id)) == ("operator", tenant.project_id, "evn_", 26)
    rows = await rival.rows("SELECT endpoint_id, event_id, id FROM webhook_deliveries")
    assert {(endpoint_id, of) for endpoint_id, of, _ in rows} == {(first["id"], event_id), (second["id"], event_id)}
    assert len({identity for *_, identity in rows}) == 2


async def test_without_an_endpoint_nothing_is_written(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_code()
    assert await rival.rows("SELECT FROM webhook_acts") == []
    assert await rival.rows("SELECT FROM quota_thresholds") == []


async def test_each_code_of_a_bulk_act_has_an_event_of_its_own(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """A batch, a selection of which one is revoked already, and a stop."""
    await tenant.make_webhook_endpoint()
    campaign = await tenant.make_campaign()
    await forget_acts(rival)
    body = tenant.code_body(campaign_id=campaign["id"], count=4)
    ids = [code["xr_id"] for code in (await tenant.api.post("/v1/codes/batch", json=body)).json["data"]]
    await drain(ctx)
    assert await events(rival) == [("code.issued", {"xr_id": xr_id}) for xr_id in sorted(ids)]

    await rival.run("DELETE FROM webhook_events")
    await tenant.api.post(f"/v1/codes/{ids[0]}/revoke", params=tenant.query)
    selection = {"project_id": tenant.project_id, "xr_ids": ids[:2]}
    answer = await tenant.api.post("/v1/codes/revoke-batch", params=tenant.query, json=selection)
    assert answer.json["revoked_count"] == 1
    await tenant.api.post("/v1/codes/revoke-batch", params=tenant.query, json=selection)
    await drain(ctx)
    assert await events(rival) == [("code.revoked", {"xr_id": xr_id}) for xr_id in sorted(ids[:2])]

    await rival.run("DELETE FROM webhook_events")
    await tenant.api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)
    await drain(ctx)
    stopped = ("campaign.stopped", {"campaign_id": campaign["id"], "revoked_count": 2})
    assert await events(rival) == [stopped, *(("code.revoked", {"xr_id": xr_id}) for xr_id in sorted(ids[2:]))]
    assert {project for (project,) in await rival.rows("SELECT project_id FROM webhook_events")} == {tenant.project_id}


async def test_a_large_stop_is_several_acts_of_bounded_size(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint(event_types=["code.revoked"])
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    await rival.run(
        "INSERT INTO codes (organization_id, xr_id, project_id, campaign_id, issuer, issued_at, expires_at,"
        " broadcast_token, key_id, address) SELECT organization_id, 'xr_' || n, project_id, campaign_id, issuer,"
        " issued_at, expires_at, 'brd_' || n, key_id, address FROM codes, generate_series(1, 2500) n WHERE xr_id = %s",
        code["xr_id"],
    )
    await forget_acts(rival)
    await tenant.api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)
    sizes = await rival.rows("SELECT cardinality(xr_ids) FROM webhook_acts WHERE xr_ids IS NOT NULL ORDER BY 1")
    assert [size for (size,) in sizes] == [501, 1000, 1000]

    assert await fan_out(ctx) == 2, "a transaction ends after 2,000 events"
    await drain(ctx)
    assert await delivered(rival, endpoint) == ["code.revoked"] * 2501
    assert len(await rival.rows("SELECT DISTINCT data FROM webhook_events WHERE type = 'code.revoked'")) == 2501


async def test_an_act_that_is_requested_is_announced_when_it_is_completed(
    tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    await tenant.make_webhook_endpoint()
    await forget_acts(rival)
    integration = await tenant.make_integration()
    await drain(ctx)
    await tenant.change_integration("revoke", integration["id"])
    await drain(ctx)
    assert await events(rival) == [
        ("audience.integration_provisioning", {"mode": "demo", "retention_days": 14}),
        ("audience.integration_revocation", {"integration_id": integration["id"]}),
    ]


async def test_a_command_that_fails_announces_nothing(tenant: Tenant, rival: Rival) -> None:
    """Its connection is cut before the commit."""
    await tenant.make_webhook_endpoint()
    code = await tenant.make_code()
    await forget_acts(rival)
    async with rival.holding("SELECT FROM codes WHERE xr_id = %s FOR UPDATE", code["xr_id"]):
        revoking = await rival.while_waiting(tenant.api.post(f"/v1/codes/{code['xr_id']}/revoke", params=tenant.query))
        await rival.kill_waiting_sessions()
    assert (await revoking).status == 503
    assert await rival.rows("SELECT FROM webhook_acts") == []


async def test_an_endpoint_gets_only_what_it_asked_for(api: Api, tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """The events of its project and of its types, while it is enabled, from its creation on, and of nobody else."""
    other = await api.make_project(tenant.organization_id, "Evening show")
    of_project = await tenant.make_webhook_endpoint(project_id=tenant.project_id)
    of_other = await tenant.make_webhook_endpoint(project_id=other)
    of_type = await tenant.make_webhook_endpoint(event_types=["campaign.created"])
    disabled = await tenant.make_webhook_endpoint()
    path = f"/v1/webhook-endpoints/{disabled['id']}"
    assert (await api.call("PATCH", path, params=tenant.query, json={"enabled": False})).status == 200
    foreign = await (await make_tenant(api)).make_webhook_endpoint()
    await forget_acts(rival)
    await tenant.make_campaign()
    await rename(tenant)
    late = await tenant.make_webhook_endpoint()
    await rival.run("DELETE FROM webhook_acts WHERE type = 'webhook_endpoint.created'")
    await drain(ctx)
    got = [await delivered(rival, each) for each in (of_project, of_other, of_type, disabled, foreign, late)]
    assert got == [["campaign.created"], [], ["campaign.created"], [], [], []]
    assert len(await events(rival)) == 2, "a replay can send what nobody got"


async def test_an_endpoint_hears_of_its_own_creation(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    """So do those that were there before, and each hears of the others that come after it."""
    first = await tenant.make_webhook_endpoint()
    of_type = await tenant.make_webhook_endpoint(event_types=["webhook_endpoint.created"])
    of_other_type = await tenant.make_webhook_endpoint(event_types=["code.issued"])
    await drain(ctx)
    got = [await delivered(rival, each) for each in (first, of_type, of_other_type)]
    assert got == [["webhook_endpoint.created"] * 3, ["webhook_endpoint.created"] * 2, []]


async def test_what_an_endpoint_hears_of_does_not_depend_on_clocks(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    endpoint = await tenant.make_webhook_endpoint(event_types=["campaign.created"])
    api.clock.advance(hours=-3)
    await tenant.make_campaign()
    await drain(ctx)
    assert await delivered(rival, endpoint) == ["campaign.created"]


async def test_many_endpoints_shorten_the_turn_of_an_organisation(
    tenant: Tenant, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait for its rows, of which an event has one, and one for each endpoint."""
    monkeypatch.setattr(service, "_ROWS_MAX", 5)
    for _ in range(2):
        await tenant.make_webhook_endpoint()
    await forget_acts(rival)
    for number in range(5):
        await tenant.make_campaign(f"Campaign {number}")
    assert [await fan_out(ctx) for _ in range(4)] == [2, 2, 1, 0]
    assert len(await events(rival)) == 5


async def test_two_workers_share_the_acts(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    await forget_acts(rival)
    await tenant.make_campaign("One")
    await tenant.make_campaign("Two")
    first = "SELECT FROM webhook_acts ORDER BY created_at, id LIMIT 1 FOR UPDATE"
    async with rival.holding(first):
        assert await fan_out(ctx) == 1
    assert sum(await asyncio.gather(fan_out(ctx), fan_out(ctx))) == 1
    assert len(await events(rival)) == len(await rival.rows("SELECT FROM webhook_deliveries")) == 2


async def test_a_worker_that_is_cut_off_loses_and_doubles_nothing(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    await tenant.make_webhook_endpoint()
    await forget_acts(rival)
    await tenant.make_campaign()
    async with rival.holding("LOCK TABLE webhook_deliveries IN EXCLUSIVE MODE"):
        cut_off = await rival.while_waiting(fan_out(ctx))
        await rival.kill_waiting_sessions()
    with pytest.raises(DatabaseUnavailable):
        await cut_off
    assert len(await rival.rows("SELECT FROM webhook_acts")) == 1
    await drain(ctx)
    assert len(await events(rival)) == len(await rival.rows("SELECT FROM webhook_deliveries")) == 1


async def test_an_endpoint_deleted_meanwhile_gets_nothing(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    await tenant.make_campaign()
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert (await tenant.api.call("DELETE", path, params=tenant.query)).status == 204
    await drain(ctx)
    assert await delivered(rival, endpoint) == []


async def test_an_organisation_that_is_being_deleted_is_not_waited_for(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    other = await make_tenant(api)
    for each in (tenant, other):
        await each.make_webhook_endpoint()
    statement = "SELECT FROM organizations WHERE id = %s FOR UPDATE"
    async with rival.holding(statement, tenant.organization_id):
        assert await fan_out(ctx) == 1
    rows = await rival.rows("SELECT organization_id FROM webhook_events")
    assert rows == [(other.organization_id,)]

"""Issuance under a campaign: signed into the Code, and only while the campaign is active and open."""

from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

PATHS = {"single": "/v1/codes", "batch": "/v1/codes/batch"}


@pytest.fixture(params=PATHS)
def route(request: pytest.FixtureRequest) -> str:
    """The route of single Codes, then that of batches."""
    name: str = request.param
    return name


async def issue(tenant: Tenant, route: str, campaign_id: str, **changes: Any) -> Answer:
    body = tenant.code_body(campaign_id=campaign_id, **changes)
    return await tenant.api.post(PATHS[route], json=body | ({"count": 2} if route == "batch" else {}))


async def stored(rival: Rival) -> int:
    return len(await rival.rows("SELECT 1 FROM codes UNION ALL SELECT 1 FROM broadcasts"))


async def test_the_campaign_is_signed_into_every_code(tenant: Tenant, route: str) -> None:
    campaign = await tenant.make_campaign()
    answer = await issue(tenant, route, campaign["id"])
    codes = answer.json["data"] if route == "batch" else [answer.json]
    for code in codes:
        assert code["campaign_id"] == code["signed_code"]["campaign_id"] == campaign["id"]


async def test_an_archived_campaign_refuses(tenant: Tenant, api: Api, rival: Rival, route: str) -> None:
    campaign = await tenant.make_campaign()
    await api.post(f"/v1/campaigns/{campaign['id']}/archive", params=tenant.query)
    answer = await issue(tenant, route, campaign["id"])
    assert (answer.status, answer.code) == (409, "campaign_archived")
    assert await stored(rival) == 0


async def test_a_campaign_is_open_from_its_start_on_and_before_its_end(tenant: Tenant, api: Api, route: str) -> None:
    now = api.clock.freeze()
    campaign = await tenant.make_campaign(
        starts_at=format_timestamp(now + timedelta(seconds=10)), ends_at=format_timestamp(now + timedelta(seconds=20))
    )
    found = []
    for step in (9.999, 0.001, 9.999, 0.001):
        api.clock.advance(seconds=step)
        answer = await issue(tenant, route, campaign["id"])
        found.append(answer.status if answer.status == 201 else answer.code)
    assert found == ["campaign_not_open", 201, 201, "campaign_not_open"]


async def test_a_campaign_of_another_project_or_tenant_is_not_found(
    tenant: Tenant, api: Api, rival: Rival, route: str
) -> None:
    elsewhere = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    stranger = await make_tenant(api)
    for foreign in (elsewhere, stranger):
        campaign = await foreign.make_campaign()
        answer = await issue(tenant, route, campaign["id"])
        assert (answer.status, answer.code) == (404, "campaign_not_found")
    assert await stored(rival) == 0


async def test_a_campaign_that_closes_during_the_wait_refuses(
    tenant: Tenant, api: Api, rival: Rival, route: str
) -> None:
    now = api.clock.freeze()
    campaign = await tenant.make_campaign(ends_at=format_timestamp(now + timedelta(seconds=60)))
    async with rival.holding("SELECT 1 FROM campaigns FOR UPDATE"):
        issuing = await rival.while_waiting(issue(tenant, route, campaign["id"]))
        api.clock.advance(seconds=60)
    answer = await issuing
    assert (answer.status, answer.code) == (409, "campaign_not_open")
    assert await stored(rival) == 0


async def test_an_expiry_that_passes_during_the_wait_for_the_campaign_refuses(
    tenant: Tenant, api: Api, rival: Rival, route: str
) -> None:
    expires_at = format_timestamp(api.clock.freeze() + timedelta(seconds=60))
    campaign = await tenant.make_campaign()
    async with rival.holding("SELECT 1 FROM campaigns FOR UPDATE"):
        issuing = await rival.while_waiting(issue(tenant, route, campaign["id"], expires_at=expires_at))
        api.clock.advance(seconds=60)
    assert (await issuing).code == "validation_failed"
    assert await stored(rival) == 0


async def test_a_campaign_that_is_stopped_during_the_wait_refuses(
    tenant: Tenant, api: Api, rival: Rival, route: str
) -> None:
    """A stop locks the campaign; a later issuance sees that it is archived, and leaves no active token."""
    campaign = await tenant.make_campaign()
    async with rival.committing("UPDATE campaigns SET archived_at = %s", api.clock.now()):
        issuing = await rival.while_waiting(issue(tenant, route, campaign["id"]))
    answer = await issuing
    assert (answer.status, answer.code) == (409, "campaign_archived")
    assert await stored(rival) == 0


async def test_an_issuance_that_waits_for_the_quota_does_not_lock_the_campaign(
    tenant: Tenant, api: Api, rival: Rival
) -> None:
    """Otherwise an unbroken sequence of issuances would keep anybody from stopping the campaign."""
    campaign = await tenant.make_campaign()
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        issuing = await rival.while_waiting(issue(tenant, "single", campaign["id"]))
        stopped = await api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)
        assert (stopped.status, stopped.json["revoked_count"]) == (200, 0)
    assert (await issuing).code == "campaign_archived"

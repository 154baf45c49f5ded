"""`GET /v1/campaigns/{campaign_id}/summary`: the Codes of a campaign by status; the counts always add up."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

NOTHING = {"issued": 0, "active": 0, "expired": 0, "revoked": 0, "audience_enabled": 0}


async def ask(tenant: Tenant, campaign: dict[str, Any] | str) -> Answer:
    campaign_id = campaign if isinstance(campaign, str) else campaign["id"]
    return await tenant.api.get(f"/v1/campaigns/{campaign_id}/summary", params=tenant.query)


async def summary(tenant: Tenant, campaign: dict[str, Any]) -> Any:
    answer = await ask(tenant, campaign)
    assert answer.status == 200, answer.body
    return answer.json


async def stop(tenant: Tenant, campaign: dict[str, Any]) -> Answer:
    return await tenant.api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)


async def test_a_campaign_without_codes_has_issued_nothing(tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    assert await summary(tenant, campaign) == {
        "campaign": campaign,
        "counts": NOTHING,
        "first_issued_at": None,
        "last_issued_at": None,
    }


async def test_codes_are_counted_by_status(api: Api, tenant: Tenant, rival: Rival) -> None:
    """A revoked Code stays revoked after its expiry; any other expires by the clock alone."""
    start = api.clock.freeze()
    campaign = await tenant.make_campaign()
    codes = []
    for lifetime_s in (60, 60, 86400, 86400, 86400):
        codes.append(await tenant.make_code(campaign_id=campaign["id"], lifetime_s=lifetime_s))
        api.clock.advance(seconds=1)
    await tenant.revoke(codes[0]["xr_id"])
    await tenant.revoke(codes[2]["xr_id"])
    await rival.run(
        "UPDATE codes SET audience_integration_id = 'int_' || left(xr_id, 8) WHERE xr_id = ANY(%s)",
        [codes[0]["xr_id"], codes[4]["xr_id"]],
    )
    api.clock.advance(seconds=60)
    assert await summary(tenant, campaign) == {
        "campaign": campaign,
        "counts": {"issued": 5, "active": 2, "expired": 1, "revoked": 2, "audience_enabled": 2},
        "first_issued_at": format_timestamp(start),
        "last_issued_at": format_timestamp(start + timedelta(seconds=4)),
    }


@pytest.mark.parametrize(("later_s", "state"), [(59.999, "active"), (60, "expired")])
async def test_expiry_is_judged_at_the_time_of_the_request(
    api: Api, tenant: Tenant, later_s: float, state: str
) -> None:
    api.clock.freeze()
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"], lifetime_s=60)
    api.clock.advance(seconds=later_s)
    assert (await summary(tenant, campaign))["counts"] == {**NOTHING, "issued": 1, state: 1}


async def test_only_the_campaigns_own_codes_are_counted(api: Api, tenant: Tenant) -> None:
    """Codes without a campaign, of another campaign or of another organisation do not count."""
    campaign, other = await tenant.make_campaign(), await tenant.make_campaign("Other")
    elsewhere = await make_tenant(api)
    foreign = await elsewhere.make_campaign()
    await tenant.make_code()
    await elsewhere.make_code(campaign_id=foreign["id"])
    for _ in range(2):
        await tenant.make_code(campaign_id=other["id"])
    assert (await summary(tenant, campaign))["counts"] == NOTHING
    assert (await summary(tenant, other))["counts"]["issued"] == 2


async def test_a_code_of_a_campaign_of_the_same_id_elsewhere_is_not_counted(
    api: Api, tenant: Tenant, rival: Rival
) -> None:
    """Campaign and organisation must both match, whatever the ids."""
    campaign, elsewhere = await tenant.make_campaign(), await make_tenant(api)
    foreign = await elsewhere.make_campaign()
    await rival.run("UPDATE campaigns SET id = %s WHERE id = %s", campaign["id"], foreign["id"])
    await elsewhere.make_code(campaign_id=campaign["id"])
    assert (await summary(tenant, campaign))["counts"] == NOTHING
    assert (await summary(elsewhere, campaign))["counts"]["issued"] == 1


async def test_it_shows_nothing_of_the_signed_records(tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    text = (await ask(tenant, campaign)).body.decode()
    for secret in (code["broadcast_token"], code["xr_id"], code["signed_code"]["signature"], "example.org"):
        assert secret not in text


async def test_it_adds_up_while_codes_are_issued_and_stopped(api: Api, tenant: Tenant, rival: Rival) -> None:
    """A half-finished batch or stop is never visible."""
    await tenant.make_quota(rival, 1000)
    campaign = await tenant.make_campaign()
    body = {**tenant.code_body(campaign_id=campaign["id"]), "count": 20}
    seen: list[dict[str, int]] = []

    async def watch(until: asyncio.Event) -> None:
        while not until.is_set():
            seen.append((await summary(tenant, campaign))["counts"])

    done = asyncio.Event()
    watching = [asyncio.create_task(watch(done)) for _ in range(3)]
    issued = await asyncio.gather(*(api.post("/v1/codes/batch", json=body) for _ in range(5)))
    stopped = await stop(tenant, campaign)
    done.set()
    await asyncio.gather(*watching)
    assert ({answer.status for answer in issued}, stopped.json["revoked_count"]) == ({201}, 100)
    for counts in seen:
        assert counts["issued"] == counts["active"] + counts["expired"] + counts["revoked"]
        assert counts["issued"] % 20 == 0
        assert counts["revoked"] in {0, 100}

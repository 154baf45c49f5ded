"""`quota.threshold_reached`: at 80 and 100 per cent of the Codes quota, once a month each."""

import json

from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant


async def announced(rival: Rival) -> list[tuple[int, int, int]]:
    """Return percent, issued and quota of each announced threshold."""
    rows = await rival.rows("SELECT data FROM webhook_acts WHERE type = 'quota.threshold_reached' ORDER BY data")
    said = [json.loads(data) for (data,) in rows]
    assert all(set(one) == {"month", "percent", "issued", "monthly_quota"} for one in said)
    return sorted((one["percent"], one["issued"], one["monthly_quota"]) for one in said)


async def issue(tenant: Tenant, count: int) -> None:
    assert (await tenant.api.post("/v1/codes/batch", json=tenant.code_body(count=count))).status == 201


async def test_each_threshold_is_announced_once_a_month(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    await tenant.make_quota(rival, 10)
    await tenant.make_webhook_endpoint()
    await issue(tenant, 7)
    assert await announced(rival) == []
    await issue(tenant, 1)
    await issue(tenant, 1)
    assert await announced(rival) == [(80, 8, 10)]
    await issue(tenant, 1)
    assert await announced(rival) == [(80, 8, 10), (100, 10, 10)]
    assert (await tenant.api.post("/v1/codes", json=tenant.code_body())).code == "quota_exceeded"
    assert len(await announced(rival)) == 2
    api.clock.advance(days=32)
    await issue(tenant, 10)
    assert await announced(rival) == [(80, 8, 10), (80, 10, 10), (100, 10, 10), (100, 10, 10)]
    ((month,),) = await rival.rows("SELECT max(month) FROM quota_thresholds")
    assert month == f"{api.clock.now():%Y-%m}"


async def test_a_higher_quota_announces_nothing_again_and_a_lower_one_what_it_makes_true(
    tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_webhook_endpoint()
    await tenant.make_quota(rival, 10)
    await issue(tenant, 8)
    await tenant.make_quota(rival, 20)
    await issue(tenant, 8)
    assert await announced(rival) == [(80, 8, 10)]
    await tenant.make_quota(rival, 17)
    await issue(tenant, 1)
    assert await announced(rival) == [(80, 8, 10), (100, 17, 17)]


async def test_an_organisation_that_gets_its_first_endpoint_hears_of_it_with_its_next_code(
    tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_quota(rival, 10)
    await issue(tenant, 9)
    await tenant.make_webhook_endpoint()
    await issue(tenant, 1)
    assert await announced(rival) == [(80, 10, 10), (100, 10, 10)]

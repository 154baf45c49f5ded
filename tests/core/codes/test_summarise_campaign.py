"""`GET /v1/campaigns/{campaign_id}/summary`: the Codes of a campaign by status; the counts always add up."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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


async def test_a_stopped_campaign_has_nothing_active(tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    stopped = (await stop(tenant, campaign)).json["campaign"]
    summarised = await summary(tenant, campaign)
    assert summarised["campaign"] == stopped
    assert summarised["counts"] == {**NOTHING, "issued": 1, "revoked": 1}


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


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("issue"), st.integers(1, 5)),
        st.tuples(st.just("revoke"), st.integers(0, 9)),
        st.tuples(st.just("wait"), st.sampled_from([1, 30, 60])),
        st.tuples(st.just("archive"), st.just(0)),
        st.tuples(st.just("stop"), st.just(0)),
    ),
    max_size=10,
)


@dataclass
class _Model:
    """The expected state of a campaign: its own status, and the expiry and revocation of each Code."""

    is_archived: bool = False
    ends: dict[str, datetime] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)

    def active(self, now: datetime) -> set[str]:
        return {xr_id for xr_id, end in self.ends.items() if now < end} - self.revoked

    def counts(self, now: datetime) -> dict[str, int]:
        revoked, active = len(self.revoked), len(self.active(now))
        issued = len(self.ends)
        return {**NOTHING, "issued": issued, "active": active, "expired": issued - revoked - active, "revoked": revoked}


@given(steps=STEPS)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_it_adds_up_after_any_sequence_of_changes(
    api: Api, tenant: Tenant, rival: Rival, steps: list[tuple[str, int]]
) -> None:
    """Compared with a model that knows each Code's expiry and revocation."""
    api.clock.freeze()
    await tenant.make_quota(rival, 1_000_000)
    campaign, model = await tenant.make_campaign(f"of {uuid4()}"), _Model()
    for step, number in steps:
        await _take(tenant, campaign, model, step, number)
        assert (await summary(tenant, campaign))["counts"] == model.counts(api.clock.now())


async def _take(tenant: Tenant, campaign: dict[str, Any], model: _Model, step: str, number: int) -> None:
    api, now = tenant.api, tenant.api.clock.now()
    match step:
        case "issue":
            end = now + timedelta(seconds=45)
            request = tenant.code_body(campaign_id=campaign["id"], expires_at=format_timestamp(end))
            answer = await api.post("/v1/codes/batch", json={**request, "count": number})
            assert answer.status == (409 if model.is_archived else 201)
            model.ends |= {code["xr_id"]: end for code in answer.json.get("data", ())}
        case "revoke" if number < len(model.ends):
            xr_id = list(model.ends)[number]
            model.revoked |= {xr_id} & model.active(now)
            assert (await tenant.revoke(xr_id)).status == 200
        case "wait":
            api.clock.advance(seconds=number)
        case "archive":
            model.is_archived = True
            assert (await api.post(f"/v1/campaigns/{campaign['id']}/archive", params=tenant.query)).status == 200
        case "stop":
            revoked = model.active(now)
            assert (await stop(tenant, campaign)).json["revoked_count"] == len(revoked)
            model.revoked |= revoked
            model.is_archived = True
        case _:
            assert step == "revoke", step

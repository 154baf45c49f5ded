"""A suspension as it reaches Audience: events are refused after their signature, and before everything else."""

import pytest
from support.audience.event_delivery import deliver_event, make_event
from support.audience.event_publisher import new_id
from support.database.rival import Rival
from support.tenancy.suspension import restore, suspend
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.platform.organizations.jobs import carry_suspension
from soundmark.core.problems import AudienceUnavailable

STORED = "SELECT organization_id, is_suspended, revision FROM suspensions"


async def test_events_are_refused_while_it_is_suspended_and_recorded_afterwards(
    tenant: Tenant, work: Context, measuring: Rival
) -> None:
    """Whatever is wrong with the event otherwise; an event of before is no duplicate, and nothing is counted."""
    api, organization_id = tenant.api, tenant.organization_id
    integration = await tenant.make_integration()
    secret = integration["hmac_secret"]
    code = await tenant.make_code(audience={"enabled": True, "integration_id": integration["id"]})
    first, second = [await make_event(tenant, code) for _ in range(2)]
    assert (await deliver_event(api, first, secret)).status == 201
    await suspend(api, organization_id)
    await carry_suspension(work, organization_id=organization_id)
    for event in (first, second, {**second, "proof": None}, {**second, "event_id": new_id("evt_")}):
        refused = await deliver_event(api, event, secret)
        assert (refused.status, refused.code) == (403, "organization_suspended")
    assert (await deliver_event(api, second, "another secret")).code == "unauthenticated"
    assert (await deliver_event(api, b"{", secret)).code == "malformed_json"
    await restore(api, organization_id)
    await carry_suspension(work, organization_id=organization_id)
    assert (await deliver_event(api, second, secret)).status == 201
    assert (await deliver_event(api, first, secret)).json["status"] == "duplicate"
    assert await measuring.rows("SELECT count(*) FROM events") == [(2,)]
    assert await measuring.rows(STORED) == [(organization_id, False, 2)]


async def test_the_latest_state_is_carried_however_late(tenant: Tenant, work: Context, measuring: Rival) -> None:
    """The jobs of a suspension and of its end may run in any order: each reads the state."""
    await tenant.make_integration()
    for _ in range(2):
        await suspend(tenant.api, tenant.organization_id)
        await restore(tenant.api, tenant.organization_id)
    await suspend(tenant.api, tenant.organization_id)
    for _ in range(3):
        await carry_suspension(work, organization_id=tenant.organization_id)
        assert await measuring.rows(STORED) == [(tenant.organization_id, True, 5)]


async def test_an_organisation_without_a_cell_has_nothing_to_carry(
    tenant: Tenant, work: Context, measuring: Rival
) -> None:
    await suspend(tenant.api, tenant.organization_id)
    await carry_suspension(work, organization_id=tenant.organization_id)
    await carry_suspension(work, organization_id="org_" + "A" * 22)
    assert await measuring.rows(STORED) == []


async def test_the_job_fails_while_audience_is_away_and_is_tried_again(
    tenant: Tenant, work: Context, measuring: Rival, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tenant.make_integration()
    await suspend(tenant.api, tenant.organization_id)

    class Away:
        async def put_suspension(self, *_: object, **__: object) -> None:
            raise AudienceUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(type(work.cells), "open", lambda *_: Away())
        with pytest.raises(AudienceUnavailable):
            await carry_suspension(work, organization_id=tenant.organization_id)
    assert await measuring.rows(STORED) == []
    queued = "SELECT args ->> 'organization_id' FROM procrastinate_jobs WHERE task_name = 'carry_suspension'"
    assert await rival.rows(queued) == [(tenant.organization_id,)]


async def test_a_deleted_organisation_leaves_nothing_in_audience(
    tenant: Tenant, work: Context, measuring: Rival
) -> None:
    await tenant.make_integration()
    await suspend(tenant.api, tenant.organization_id)
    await carry_suspension(work, organization_id=tenant.organization_id)
    body = {"confirmation": tenant.organization_id}
    deleted = await tenant.api.call("DELETE", f"/v1/organizations/{tenant.organization_id}", json=body)
    assert deleted.status == 204, deleted.body
    assert await measuring.rows(STORED) == []

"""An organisation's usage in a month, by mode."""

import pytest
from support.api.core_client import Answer
from support.audience.client import ORGANIZATION, AudienceApi, entitlement_body
from support.database.rival import Rival


async def used(audience: AudienceApi, month: str = "2026-11", organization_id: str = ORGANIZATION) -> Answer:
    return await audience.call("GET", "/v1/usage", params={"organization_id": organization_id, "month": month})


async def test_without_events_every_mode_is_at_zero(audience: AudienceApi) -> None:
    answer = await used(audience)

    assert answer.status == 200
    assert answer.json == {
        "modes": [
            {"mode": "demo", "events": 0, "active_integrations": 0},
            {"mode": "contract", "events": 0, "active_integrations": 0},
            {"mode": "self_service", "events": 0, "active_integrations": 0},
        ]
    }


async def test_events_are_of_the_month_and_integrations_of_now(audience: AudienceApi, audience_rival: Rival) -> None:
    for _ in range(2):
        await audience.make_integration()
    await (await audience.make_integration()).change("revoke")
    await audience.make_integration(project_id="prj_another")
    await audience.make_integration(mode="contract", entitlement=entitlement_body())
    await audience.make_integration(organization_id="org_another")
    for organization_id, mode, first_day, events in (
        (ORGANIZATION, "demo", "2026-11-01", 17),
        (ORGANIZATION, "demo", "2026-10-01", 5),
        (ORGANIZATION, "self_service", "2026-11-01", 3),
        ("org_another", "demo", "2026-11-01", 99),
    ):
        await audience_rival.run(
            "INSERT INTO event_months VALUES (%s, %s, %s, %s)", organization_id, mode, first_day, events
        )

    assert (await used(audience)).json["modes"] == [
        {"mode": "demo", "events": 17, "active_integrations": 3},
        {"mode": "contract", "events": 0, "active_integrations": 1},
        {"mode": "self_service", "events": 3, "active_integrations": 0},
    ]
    assert (await used(audience, "2026-10")).json["modes"][0]["events"] == 5


async def test_a_malformed_month_is_refused(audience: AudienceApi, subtests: pytest.Subtests) -> None:
    for month in ["", "2026", "2026-13", "2026-00", "2026-1", "2026-11-01", "1999-12", "x"]:
        with subtests.test(month=month):
            assert (await used(audience, month)).status == 422


async def test_an_organisation_must_be_named(audience: AudienceApi) -> None:
    assert (await audience.call("GET", "/v1/usage", params={"month": "2026-11"})).status == 422
    assert (await used(audience, organization_id="")).status == 422

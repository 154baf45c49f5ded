"""Core's entitlements: of all that were ever sent, the latest revision applies."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.client import ORGANIZATION, AudienceApi, entitlement_body
from support.database.rival import Rival


async def put(
    audience: AudienceApi, mode: str = "contract", organization: str = ORGANIZATION, **changes: Any
) -> Answer:
    return await audience.call("PUT", f"/v1/entitlements/{organization}/{mode}", json=entitlement_body(**changes))


@pytest.mark.parametrize("mode", ["contract", "self_service"])
async def test_it_is_stored_and_returned(audience: AudienceApi, mode: str) -> None:
    ends_at = "2026-12-31T23:00:00.000Z"

    answer = await put(audience, mode, ends_at=ends_at, revision=3)

    assert answer.status == 200
    assert answer.json == {
        "organization_id": ORGANIZATION,
        "mode": mode,
        "monthly_event_quota": 5000,
        "ends_at": ends_at,
        "revision": 3,
    }


async def test_late_and_repeated_entitlements_change_nothing(audience: AudienceApi) -> None:
    latest = await put(audience, monthly_event_quota=7, revision=5)

    for revision in (0, 4, 5):
        answer = await put(audience, monthly_event_quota=revision, revision=revision)
        assert (answer.status, answer.json) == (200, latest.json)


async def test_a_later_entitlement_replaces_it_completely(audience: AudienceApi) -> None:
    await put(audience, ends_at="2026-12-31T23:00:00.000Z")

    answer = await put(audience, monthly_event_quota=0, ends_at=None, revision=2)

    assert (answer.json["monthly_event_quota"], answer.json["ends_at"], answer.json["revision"]) == (0, None, 2)


async def test_modes_and_organisations_have_their_own(audience: AudienceApi, audience_rival: Rival) -> None:
    await put(audience, revision=9)
    await put(audience, "self_service", monthly_event_quota=1)
    await put(audience, organization="org_another", monthly_event_quota=2)

    rows = await audience_rival.rows(
        "SELECT organization_id, mode, monthly_event_quota FROM entitlements ORDER BY monthly_event_quota"
    )
    assert rows == [
        (ORGANIZATION, "self_service", 1),
        ("org_another", "contract", 2),
        (ORGANIZATION, "contract", 5000),
    ]


async def test_of_two_at_once_the_later_revision_stays(audience: AudienceApi, audience_rival: Rival) -> None:
    await put(audience)
    async with audience_rival.holding("SELECT FROM entitlements FOR UPDATE"):
        asking = [asyncio.create_task(put(audience, monthly_event_quota=n, revision=n)) for n in (3, 2)]
        await audience_rival.until_someone_waits(2)
    await asyncio.gather(*asking)

    assert await audience_rival.rows("SELECT monthly_event_quota FROM entitlements") == [(3,)]


async def test_an_update_that_dies_midway_changes_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    await put(audience)
    async with audience_rival.holding("SELECT FROM entitlements FOR UPDATE"):
        dying = await audience_rival.while_waiting(put(audience, monthly_event_quota=1, revision=2))
        await audience_rival.kill_waiting_sessions()
        assert (await dying).status == 503

    assert await audience_rival.rows("SELECT monthly_event_quota, revision FROM entitlements") == [(5000, 1)]


@pytest.mark.parametrize("path", [f"{ORGANIZATION}/demo", f"{ORGANIZATION}/free", "org_/contract", "%00/contract"])
async def test_a_demo_or_an_unknown_organisation_has_none(audience: AudienceApi, path: str) -> None:
    answer = await audience.call("PUT", f"/v1/entitlements/{path}", json=entitlement_body())

    assert (answer.status, answer.json["code"]) == (422, "validation_failed")


@pytest.mark.parametrize(
    "changes",
    [
        {"monthly_event_quota": -1},
        {"monthly_event_quota": 2**53},
        {"monthly_event_quota": 1.5},
        {"monthly_event_quota": None},
        {"monthly_event_quota": True},
        {"ends_at": "2026-12-31"},
        {"ends_at": "2026-12-31T23:00:00"},
        {"ends_at": 5},
        {"revision": -1},
        {"revision": "1"},
        {"plan_id": "plan_x"},
    ],
)
async def test_a_wrong_member_is_refused(audience: AudienceApi, audience_rival: Rival, changes: dict[str, Any]) -> None:
    answer = await put(audience, **changes)

    assert (answer.status, answer.json["code"]) == (422, "validation_failed")
    assert await audience_rival.rows("SELECT FROM entitlements") == []

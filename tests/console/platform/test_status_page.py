"""The state of the service, for administrators of the platform."""

import json

import pytest
from support.api.core_client import Api
from support.billing.offers import CARD_OFFER, make_card_offer
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

PATH = "/platform/status"


def read_tiles(page: PageAnswer) -> dict[str, str]:
    return {str(tile.findtext("dt")): str(tile.findtext("dd/a")) for tile in page.find_all(".//dl[@class='tiles']/div")}


async def test_what_waits_for_an_administrator_is_counted(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, api: Api
) -> None:
    await make_card_offer(rival)
    await rival.run("UPDATE offers SET price_status = 'missing' WHERE id = %s", CARD_OFFER)
    suspended = await api.put(
        f"/v1/platform/organizations/{tenant.organization_id}/suspension", json={"reason": "Abuse."}
    )
    assert suspended.status == 200

    page = await operator.get(PATH)

    assert page.status == 200
    assert [*read_tiles(page).values()] == ["0", "0", "0", "1", "1"]
    assert "those of Audience are in the log of its worker" in page.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": "ready", "unavailable": [], "degraded": []}, ["Core is ready."]),
        (
            {"status": "ready", "unavailable": [], "degraded": ["audio"]},
            ["Core is ready.", "Core works without: audio"],
        ),
        ({"status": "not_ready", "unavailable": ["database"]}, ["Core is not ready.", "Not available: database"]),
        (["no", "object"], ["Core cannot be reached."]),
        ({"status": "resting"}, ["resting"]),
    ],
)
async def test_the_page_says_what_core_says_of_itself(
    operator: ConsoleClient, answer: object, words: list[str]
) -> None:
    operator.core.answer("GET /readyz", 200, answer)

    text = (await operator.get(PATH)).text

    assert [each for each in words if each not in text] == []


async def test_a_service_that_fails_is_shown_to_fail(operator: ConsoleClient) -> None:
    operator.core.answer("GET /readyz", 503, json.loads('{"status": "not_ready", "unavailable": ["database"]}'))
    for call in ("abuse-reports", "jobs", "organizations"):
        operator.core.refuse(f"GET /v1/platform/{call}", 503, "database_unavailable")
    operator.core.refuse("GET /v1/billing/admin/catalog", 503, "database_unavailable")

    page = await operator.get(PATH)

    assert page.status == 200
    assert "Not available: database" in page.text
    assert {*read_tiles(page).values()} == {"not known"}


async def test_others_see_nothing(visitors: ConsoleClient, people: People, clock: FakeClock) -> None:
    visitors.sign_in_as(people, "ada", clock.now())

    page = await visitors.get(PATH)

    assert (page.status, page.trouble) == (403, "platform_admin_required")

"""The home page of an organisation: what is on air, what is used, and what needs attention."""

from datetime import UTC, datetime
from typing import Any

import pytest
from support.billing.offers import make_card_subscription
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.console import running
from soundmark.console.charts import forecast_month
from soundmark.console.pages.organizations import endpoints

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7 * 7 }}"
PARTS = {
    "GET /v1/codes": "Active Codes",
    "GET /v1/campaigns": "Running campaigns",
    "GET /v1/projects": "Projects",
    "GET /v1/webhook-endpoints": "Needs attention",
    "GET /v1/api-keys": "Needs attention",
    "GET /v1/billing/subscriptions": "Needs attention",
    "GET /v1/member-invitations": "Needs attention",
}


def concerns_of(page: PageAnswer) -> dict[str, str]:
    """Return where each thing that needs attention is solved."""
    found = page.find_all(".//aside//li/a")
    return {"".join(each.itertext()): str(each.get("href")) for each in found}


async def test_the_active_codes_are_counted_over_the_projects(operator: ConsoleClient, tenant: Tenant) -> None:
    intent = {"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight", "title": HOSTILE}}
    await tenant.make_code(intent=intent)
    await tenant.revoke((await tenant.make_code())["xr_id"])
    other = await make_second_project(tenant)
    await other.make_code(lifetime_s=60)

    page = await operator.get(f"/organizations/{tenant.organization_id}")

    assert page.tiles["Active Codes"] == "2"
    codes, projects = page.find_all(".//table")
    assert [str(row.find(".//a").get("href")).split("/")[4] for row in codes.findall(".//tbody/tr")] == [  # type: ignore[union-attr]  # each row has a link
        other.project_id,
        tenant.project_id,
    ], "what ends first is at the top"
    assert {"".join(row.find("./td").itertext()) for row in projects.findall(".//tbody/tr")} == {"1"}  # type: ignore[union-attr]  # each row has cells
    assert not page.find_all(".//img")
    assert "example.org/tonight" in page.text


async def test_running_campaigns_of_the_projects_are_issued_in_and_stopped_from_here(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    at = f"/organizations/{tenant.organization_id}"
    assert "No campaign runs at the moment." in (await operator.get(at)).text
    other = await make_second_project(tenant)
    first = await other.make_campaign(HOSTILE, ends_at="2037-01-01T00:00:00Z")
    second = await tenant.make_campaign("Always")
    await tenant.make_campaign("Later", starts_at="2037-01-01T00:00:00Z")
    await tenant.make_code(campaign_id=second["id"])

    page = await operator.get(at)

    rows = page.find_all(".//section[@aria-labelledby='running']//tbody/tr")
    assert [[each.get("href") for each in row.findall(".//a")] for row in rows] == [
        [
            f"{path}/campaigns/{of['id']}",
            f"{path}/codes/issue?campaign_id={of['id']}",
            f"{path}/campaigns/{of['id']}/stop",
        ]
        for of in (first, second)
        for path in [f"{at}/projects/{of['project_id']}"]
    ], "what ends first is at the top"
    assert [row.find("./td[@class='number']").text for row in rows] == ["0", "1"]  # type: ignore[union-attr]  # each row has one
    assert not page.find_all(".//img")


async def test_the_home_page_says_that_campaigns_of_older_projects_may_run(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = await tenant.make_campaign()
    await make_second_project(tenant)
    monkeypatch.setattr(running, "PROJECTS_MAX", 1)

    page = await operator.get(f"/organizations/{tenant.organization_id}")

    assert "More campaigns may be running" in page.text
    assert campaign["id"] not in page.text
    assert "No campaign runs" not in page.text


async def test_what_needs_attention_leads_to_where_it_is_solved(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    at = f"/organizations/{tenant.organization_id}"
    assert "Nothing at the moment." in (await operator.get(at)).text
    endpoint = await tenant.make_webhook_endpoint()
    expiring = await tenant.make_key(name="Playout", expires_in_days=2)
    await tenant.make_key(name="Another", expires_in_days=90)
    invited = await tenant.make_invitation(email="bo@example.org")
    await make_card_subscription(rival, tenant.organization_id, status="past_due")

    def switch_off(document: Any) -> Any:
        return {**document, "data": [{**document["data"][0], "enabled": False, "disabled_reason": "failing"}]}

    operator.core.alter("GET /v1/webhook-endpoints", switch_off)

    concerns = concerns_of(await operator.get(at))

    paths = list(concerns.values())
    assert paths == [
        f"{at}/webhooks/{endpoint['id']}",
        f"{at}/projects/{tenant.project_id}/api-keys#{expiring['id']}",
        f"{at}/billing",
        f"{at}/members/invitations#{invited['id']}",
    ]
    failing, key, overdue, invitation = concerns
    assert endpoint["url"] in failing
    assert "Playout expires in 2 days" in key
    assert "overdue" in overdue
    assert invitation.startswith("bo@example.org has not accepted the invitation, which expires in ")
    for path in paths:
        assert (await operator.get(path)).status == 200


def deliver(status: str, *, attempts: int = 1, error: str | None = "timeout") -> dict[str, Any]:
    """Return a delivery as Core shows it."""
    return {
        "id": "whd_1",
        "event_id": "evn_1",
        "event_type": "code.issued",
        "status": status,
        "attempts": attempts,
        "last_status_code": None,
        "last_error": None if status == "delivered" else error,
        "next_attempt_at": None,
        "created_at": "2026-11-20T10:00:00.000Z",
    }


WAITING = deliver("pending", attempts=0, error=None)


@pytest.mark.parametrize(
    ("deliveries", "why"),
    [
        ([deliver("pending")], "There was no answer within 15 seconds."),
        ([WAITING, deliver("failed", error="status_not_successful"), deliver("delivered")], "was not 2xx."),
        ([deliver("failed", error="sung")], "sung"),
        ([deliver("delivered"), deliver("failed")], None),
        ([deliver("failed", error="endpoint_disabled")], None),
        ([WAITING], None),
        ([], None),
    ],
)
async def test_an_endpoint_that_fails_and_is_still_on_is_named(
    operator: ConsoleClient, tenant: Tenant, deliveries: list[dict[str, Any]], why: str | None
) -> None:
    """The newest message that was tried decides. What failed because the endpoint was off says nothing about it."""
    at = f"/organizations/{tenant.organization_id}"
    endpoint = await tenant.make_webhook_endpoint()
    path = f"/v1/webhook-endpoints/{endpoint['id']}/deliveries"
    operator.core.answer(f"GET {path}", 200, {"data": deliveries, "next_cursor": None})

    page = await operator.get(at)

    assert page.find_all(".//aside//*[@class='trouble']") == []
    if why is None:
        assert concerns_of(page) == {}
        assert "Nothing at the moment." in page.text
    else:
        [(concern, place)] = concerns_of(page).items()
        assert place == f"{at}/webhooks/{endpoint['id']}"
        assert concern.startswith(f"The latest message to the webhook endpoint {endpoint['url']} failed. ")
        assert concern.endswith(why)


@pytest.mark.parametrize("is_late", [False, True])
async def test_an_endpoint_whose_deliveries_cannot_be_read_hides_no_other(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch, *, is_late: bool
) -> None:
    monkeypatch.setattr(endpoints, "_LOOKED_AT_S", 0.3)
    off, failing, unknown = [await tenant.make_webhook_endpoint() for _ in range(3)]
    await rival.run("UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'gone' WHERE id = %s", off["id"])
    for endpoint in (off, failing):
        path = f"/v1/webhook-endpoints/{endpoint['id']}/deliveries"
        operator.core.answer(f"GET {path}", 200, {"data": [deliver("failed")], "next_cursor": None})
    call = f"GET /v1/webhook-endpoints/{unknown['id']}/deliveries"
    operator.core.stall(call) if is_late else operator.core.refuse(call, 503, "database_unavailable")

    page = await operator.get(f"/organizations/{tenant.organization_id}")

    named = {path.rpartition("/")[2]: text for text, path in concerns_of(page).items()}
    assert set(named) == {off["id"], failing["id"]}
    assert "is off" in named[off["id"]]
    assert "Some of this could not be checked" in page.find(".//aside/p[@class='trouble']").text  # type: ignore[operator]  # it has a text
    read = [str(each.url.path).split("/")[3] for each in operator.core.calls if each.url.path.endswith("/deliveries")]
    assert off["id"] not in read, "why it is off is known already"


async def test_the_deliveries_of_many_endpoints_are_read_a_few_at_a_time(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "_LOOKS_AT_ONCE", 2)
    monkeypatch.setattr(endpoints, "_LOOKED_AT_S", 0.5)
    made = [await tenant.make_webhook_endpoint() for _ in range(3)]
    for each in made:
        operator.core.stall(f"GET /v1/webhook-endpoints/{each['id']}/deliveries")

    page = await operator.get(f"/organizations/{tenant.organization_id}")

    read = [each for each in operator.core.calls if each.url.path.endswith("/deliveries")]
    assert (page.status, len(read)) == (200, 2)
    assert "Some of this could not be checked" in page.text


async def test_a_key_is_named_while_it_expires_soon_and_for_some_days_afterwards(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    clock.freeze()
    at = f"/organizations/{tenant.organization_id}"
    await tenant.make_key(name="Playout", expires_in_days=20)
    seen = []
    for days in (0, 15, 6, 6, 1):
        clock.advance(days=days)
        seen.append([*concerns_of(await operator.sign_in_as_operator(clock.now()).get(at))])

    assert seen == [
        [],
        ["The API key Playout expires in 5 days."],
        ["The API key Playout expired 1 day ago."],
        [],
        [],
    ]


@pytest.mark.parametrize("failing", PARTS)
async def test_a_part_that_fails_says_so_and_leaves_the_rest(
    operator: ConsoleClient, tenant: Tenant, failing: str
) -> None:
    await tenant.make_code()
    path = f"/organizations/{tenant.organization_id}"
    await operator.get(path)  # The names of the tenant are known from now on.
    operator.core.refuse(failing, 503, "database_unavailable")

    page = await operator.get(path)

    assert page.status == 200
    [trouble] = page.find_all(".//*[@class='trouble']")
    [part] = [each for each in page.find_all(".//section") + page.find_all(".//aside") if trouble in each.iter()]
    assert part.find("./h2").text == PARTS[failing]  # type: ignore[union-attr]  # each part has one
    assert "Codes issued this month" in page.tiles


async def test_a_usage_that_cannot_be_read_says_so(operator: ConsoleClient, tenant: Tenant) -> None:
    operator.core.refuse("GET /v1/usage", 503, "database_unavailable")

    page = await operator.get(f"/organizations/{tenant.organization_id}")

    assert (page.status, list(page.tiles)) == (200, ["Active Codes"])
    assert "The usage of this month cannot be shown at the moment." in page.text


async def test_each_role_sees_what_it_may_read_and_no_error(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_code()
    await tenant.make_invitation()
    seen = {}
    for role in ("owner", "admin", "member", "billing"):
        if role != "owner":
            await people.member(tenant, rival, role, role)
        visitors.sign_in_as(people, role, clock.now())
        page = await visitors.get(f"/organizations/{tenant.organization_id}")
        assert (page.status, page.find_all(".//*[@class='trouble']")) == (200, []), role
        seen[role] = ([str(each.text) for each in page.find_all(".//main//h2")], len(concerns_of(page)))

    everything = ["Running campaigns", "Active Codes", "Projects", "Needs attention"]
    assert seen == {
        "owner": (everything, 1),
        "admin": (everything, 1),
        "member": (["Running campaigns", "Active Codes", "Projects"], 0),
        "billing": (["Running campaigns", "Projects", "Needs attention"], 0),
    }


async def test_the_calls_of_the_page_run_beside_one_another(operator: ConsoleClient, tenant: Tenant) -> None:
    """The campaigns come afterwards: Core lists them by project alone."""
    calls = [*(PARTS.keys() - {"GET /v1/campaigns"}), "GET /v1/usage"]
    await operator.assert_calls_run_together(f"/organizations/{tenant.organization_id}", calls)


@pytest.mark.parametrize(
    ("now", "issued", "expected"),
    [
        (datetime(2026, 11, 1, 23, 59, tzinfo=UTC), 10, None),
        (datetime(2026, 11, 2, tzinfo=UTC), 10, 300),
        (datetime(2026, 11, 16, tzinfo=UTC), 50, 100),
        (datetime(2026, 12, 31, 23, tzinfo=UTC), 0, 0),
        (datetime(2027, 2, 15, tzinfo=UTC), 7, 14),
    ],
)
def test_a_forecast_goes_on_at_the_pace_of_the_month(now: datetime, issued: int, expected: int | None) -> None:
    assert forecast_month(issued, now) == expected


async def test_a_pace_beyond_the_quota_is_a_warning(
    operator: ConsoleClient, tenant: Tenant, rival: Rival, clock: FakeClock
) -> None:
    await tenant.make_quota(rival, 3)
    clock.freeze()
    expected = forecast_month(2, clock.now())
    for _ in range(2):
        await tenant.make_code()
    path = f"/organizations/{tenant.organization_id}"
    page = await operator.get(path)
    is_warned = expected is not None and expected > 3
    assert bool(page.find_all(".//div[@class='tile tile-warn']")) == is_warned

    await tenant.make_code()

    assert (await operator.get(path)).find(".//div[@class='tile tile-danger']/dd/a").text == "3"

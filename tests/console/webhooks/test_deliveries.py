"""Deliveries, events, and sending them again."""

import json
from datetime import timedelta
from typing import Any

import pytest
from console.webhooks.test_endpoints import webhooks_path
from core.webhooks.delivery.conftest import Steps
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import WebhookConsumer

HOSTILE = "</pre><script>alert(1)</script> \"'&"


async def make_deliveries(
    tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer, names: list[str]
) -> dict[str, Any]:
    """Return an endpoint that was sent an event for each of these new campaigns."""
    endpoint = await tenant.make_webhook_endpoint(url=consumer.url, event_types=["campaign.created"])
    await rival.run("DELETE FROM webhook_acts")
    for name in names:
        await tenant.make_campaign(name)
        tenant.api.clock.advance(seconds=1)
    while len(consumer.messages) < len(names):
        await steps.deliver()
    return endpoint


def rows(page: PageAnswer) -> list[str]:
    return [" ".join("".join(each.itertext()).split()) for each in page.find_all(".//tbody/tr")]


def event_ids(page: PageAnswer) -> list[str]:
    return [each.get("value") or "" for each in page.find_all(".//tbody//input[@name='event_ids']")]


async def test_deliveries_are_listed_with_what_came_back_and_filtered(
    operator: ConsoleClient, tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer
) -> None:
    consumer.reactions.append(500)
    endpoint = await make_deliveries(tenant, steps, rival, consumer, ["First", "Second"])
    path = f"{webhooks_path(tenant, endpoint)}/deliveries"

    everything = await operator.get(path)
    waiting = await operator.get(f"{path}?status=pending")

    assert len(rows(everything)) == 2
    [row] = rows(waiting)
    for words in ("campaign.created", "pending", "500", "The status code was not 2xx."):
        assert words in row
    assert waiting.find(".//nav[@class='tabs']//a[@aria-current]").text == "pending"
    assert "No matching deliveries" in (await operator.get(f"{path}?status=failed")).text


async def test_the_latest_deliveries_and_an_example_of_a_message_stand_beside_their_endpoint(
    operator: ConsoleClient, tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer
) -> None:
    consumer.reactions.append(500)
    endpoint = await make_deliveries(tenant, steps, rival, consumer, [f"Campaign {number}" for number in range(6)])

    page = await operator.get(webhooks_path(tenant, endpoint))

    assert len(rows(page)) == 5
    assert "campaign.created delivered 204" in rows(page)[0]
    links = [str(each.get("href")) for each in page.find_all(".//main//a")]
    assert f"{webhooks_path(tenant, endpoint)}/deliveries" in links
    example = json.loads(page.find(".//details/pre/code").text or "")
    sent = json.loads(consumer.messages[0].body)
    assert example.keys() == sent.keys()
    assert sent["data"].keys() - {"campaign_id", "name", "starts_at", "ends_at"} == example["data"].keys() - {"xr_id"}
    assert example["data"]["organization_id"] == tenant.organization_id


async def test_the_home_page_names_an_endpoint_until_it_takes_a_message_again(
    operator: ConsoleClient, tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer
) -> None:
    consumer.reactions.append(500)
    endpoint = await make_deliveries(tenant, steps, rival, consumer, ["First"])
    home = f"/organizations/{tenant.organization_id}"

    failing = await operator.get(home)
    await tenant.make_campaign("Second")
    while len(consumer.messages) < 2:
        await steps.deliver()
    recovered = await operator.get(home)

    assert failing.find(".//aside//li/a").get("href") == webhooks_path(tenant, endpoint)
    assert "failed. The status code was not 2xx." in failing.text
    assert "Nothing at the moment." in recovered.text


async def test_a_status_that_does_not_exist_is_refused_by_name(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()

    page = await operator.get(f"{webhooks_path(tenant, endpoint)}/deliveries?status=sung")

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(".//section[@id='trouble']//li").text.strip().startswith("Status:")
    assert page.find_all(".//section[@id='trouble']//li/a") == [], "the filter is not on this page"


async def test_deliveries_have_pages_within_a_filter(
    operator: ConsoleClient, tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer
) -> None:
    endpoint = await make_deliveries(tenant, steps, rival, consumer, [f"Campaign {number}" for number in range(101)])
    path = f"{webhooks_path(tenant, endpoint)}/deliveries?status=delivered"

    first = await operator.get(path)
    link = str(first.find(".//a[@rel='next']").get("href"))
    second = await operator.get(link)

    assert (len(rows(first)), len(rows(second))) == (100, 1)
    assert "status=delivered" in link


async def test_an_event_is_shown_as_the_message_that_was_sent(
    operator: ConsoleClient, tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer
) -> None:
    endpoint = await make_deliveries(tenant, steps, rival, consumer, [HOSTILE])
    listed = await operator.get(f"{webhooks_path(tenant, endpoint)}/deliveries")

    path = str(listed.find(".//tbody//th/a").get("href"))
    page = await operator.get(path)
    pasted = await operator.get(f"/search?q={consumer.messages[0].id}")

    assert pasted.find(".//ul[@class='found']//a").get("href") == path
    shown = page.find(".//pre/code").text or ""
    assert json.loads(shown) == consumer.messages[0].content
    assert list(json.loads(shown)) == list(consumer.messages[0].content)
    assert json.loads(shown)["data"]["name"] == HOSTILE
    assert not page.find_all(".//body//script")


async def test_chosen_events_are_sent_again(
    operator: ConsoleClient, tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer
) -> None:
    endpoint = await make_deliveries(tenant, steps, rival, consumer, ["First", "Second"])
    path = webhooks_path(tenant, endpoint)
    [first] = [message.id for message in consumer.messages if message.content["data"]["name"] == "First"]
    assert first in event_ids(await operator.get(f"{path}/deliveries"))

    # The same event may stand in several deliveries.
    fields = {"chosen": "yes", "event_ids": [first, first]}
    page = await operator.follow(await operator.submit(f"{path}/replay", fields))

    assert "1 event is sent again." in page.text
    await steps.deliver()
    assert [message.content["data"]["name"] for message in consumer.messages].count("First") == 2


async def test_choosing_nothing_sends_nothing(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()

    page = await operator.submit(f"{webhooks_path(tenant, endpoint)}/replay", {"chosen": "yes"})

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert "Choose at least one event, or give a period." in page.text
    assert page.find(".//input[@name='from']") is not None


async def test_a_period_is_sent_again(
    operator: ConsoleClient,
    tenant: Tenant,
    steps: Steps,
    rival: Rival,
    consumer: WebhookConsumer,
    clock: FakeClock,
) -> None:
    """A moment is typed in the time zone of the person."""
    began_at = clock.now()
    endpoint = await make_deliveries(tenant, steps, rival, consumer, ["First", "Second"])
    in_tunis = (began_at + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    later = (began_at + timedelta(hours=1, minutes=5)).strftime("%Y-%m-%dT%H:%M")
    zone = "Africa/Tunis"
    fields = {"from": in_tunis, "from_zone": zone, "to": later, "to_zone": zone}

    answer = await operator.submit(f"{webhooks_path(tenant, endpoint)}/replay", fields)

    assert "2 events are sent again." in (await operator.follow(answer)).text


@pytest.mark.parametrize(
    ("period", "field"),
    [
        (("", ""), "from"),
        (("2026-11-20T10:00", ""), "to"),
        (("2026-11-20T10:00", "tomorrow"), "to"),
    ],
)
async def test_a_period_that_cannot_be_read_is_shown_again(
    operator: ConsoleClient, tenant: Tenant, period: tuple[str, str], field: str
) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    fields = dict(zip(("from", "to"), period, strict=True))

    page = await operator.submit(f"{webhooks_path(tenant, endpoint)}/replay", fields)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert (page.value("from"), page.value("to")) == period
    assert page.find(f".//input[@id='field-{field}']").get("aria-invalid") == "true"


async def test_what_was_chosen_is_kept_when_core_is_out_of_order(
    operator: ConsoleClient, tenant: Tenant, steps: Steps, rival: Rival, consumer: WebhookConsumer
) -> None:
    endpoint = await make_deliveries(tenant, steps, rival, consumer, ["First"])
    path = webhooks_path(tenant, endpoint)
    [chosen] = event_ids(await operator.get(f"{path}/deliveries"))
    operator.core.refuse(f"POST /v1/webhook-endpoints/{endpoint['id']}/replay", 503, "database_unavailable")

    page = await operator.submit(f"{path}/replay", {"chosen": "yes", "event_ids": [chosen]})

    assert (page.status, page.trouble) == (503, "database_unavailable")
    assert [each.get("value") for each in page.find_all(".//input[@name='event_ids'][@checked]")] == [chosen]


async def test_an_event_that_is_gone_is_named(operator: ConsoleClient, tenant: Tenant) -> None:
    endpoint = await tenant.make_webhook_endpoint()
    event_id = "evn_" + "e" * 22

    shown = await operator.get(f"{webhooks_path(tenant)}/events/{event_id}")
    replayed = await operator.submit(
        f"{webhooks_path(tenant, endpoint)}/replay", {"chosen": "yes", "event_ids": [event_id]}
    )

    assert (shown.status, shown.trouble) == (404, "webhook_event_not_found")
    assert (replayed.status, replayed.trouble) == (404, "webhook_event_not_found")

"""Testing an endpoint: a message at once, which is no delivery."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant
from support.webhooks.consumer import Reaction, WebhookConsumer

from soundmark.core.features.webhooks.delivery import sending
from soundmark.core.problems import WebhookEndpointNotFound


async def test_an_endpoint_gets_a_signed_test_even_if_it_is_disabled(
    tenant: Tenant, consumer: WebhookConsumer, rival: Rival
) -> None:
    endpoint = await tenant.make_webhook_endpoint(url=f"{consumer.url}/a", event_types=["code.issued"])
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert (await tenant.api.call("PATCH", path, params=tenant.query, json={"enabled": False})).status == 200
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
    answer = await tenant.api.post(f"{path}/test", params=tenant.query, headers={"traceparent": traceparent})
    assert (answer.status, answer.json["status_code"], answer.json["error"]) == (200, 204, None)
    assert 0 <= answer.json["duration_ms"] < 15_000
    (message,) = consumer.messages
    assert message.signed_by(endpoint["secret"])
    assert message.id.startswith("evn_")
    assert message.headers["traceparent"] == traceparent
    assert message.content["type"] == "webhook.test"
    assert message.content["data"] == {
        "organization_id": tenant.organization_id,
        "project_id": None,
        "actor": {"type": "user", "id": "operator"},
    }
    assert await rival.rows("SELECT 1 FROM webhook_deliveries") == []
    assert await rival.rows("SELECT 1 FROM webhook_events WHERE type = 'webhook.test'") == []


@pytest.mark.parametrize(
    ("reaction", "status_code", "error"),
    [(410, 410, "status_not_successful"), ("reset", None, "connection_lost"), ("hang", None, "timeout")],
)
async def test_the_answer_says_what_went_wrong_and_nothing_follows_from_it(
    tenant: Tenant,
    consumer: WebhookConsumer,
    reaction: Reaction,
    status_code: int | None,
    error: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.3)
    consumer.otherwise = reaction
    endpoint = await tenant.make_webhook_endpoint(url=consumer.url)
    answer = await tenant.api.post(f"/v1/webhook-endpoints/{endpoint['id']}/test", params=tenant.query)
    assert (answer.status, answer.json["status_code"], answer.json["error"]) == (200, status_code, error)
    assert len(consumer.messages) == 1
    shown = await tenant.api.get(f"/v1/webhook-endpoints/{endpoint['id']}", params=tenant.query)
    assert shown.json["enabled"]


async def run_test(tenant: Tenant, endpoint: dict[str, Any]) -> Answer:
    return await tenant.api.post(f"/v1/webhook-endpoints/{endpoint['id']}/test", params=tenant.query)


async def test_an_organisation_has_one_test_at_a_time(tenant: Tenant, consumer: WebhookConsumer) -> None:
    """Whichever of its endpoints is tested; another organisation does not wait for it."""
    consumer.otherwise = "held"
    endpoint, second = [await tenant.make_webhook_endpoint(url=consumer.url) for _ in range(2)]
    other = await make_tenant(tenant.api)
    elsewhere = await other.make_webhook_endpoint(url=consumer.url)
    first = asyncio.create_task(run_test(tenant, endpoint))
    await consumer.until_arrived(1)
    for each in (endpoint, second):
        refused = await run_test(tenant, each)
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "1")
    of_other = asyncio.create_task(run_test(other, elsewhere))
    await consumer.until_arrived(2)
    consumer.release.set()
    assert [(await each).status for each in (first, of_other)] == [200, 200]
    assert (await run_test(tenant, second)).status == 200


async def test_an_organisation_has_thirty_tests_in_a_minute(tenant: Tenant, consumer: WebhookConsumer) -> None:
    """Of all its endpoints together; another organisation has its own."""
    endpoints = [await tenant.make_webhook_endpoint(url=consumer.url) for _ in range(2)]
    statuses = [(await run_test(tenant, endpoints[number % 2])).status for number in range(31)]
    assert statuses == [200] * 30 + [429]
    other = await make_tenant(tenant.api)
    assert (await run_test(other, await other.make_webhook_endpoint(url=consumer.url))).status == 200
    tenant.api.clock.advance(seconds=61)
    assert (await run_test(tenant, endpoints[0])).status == 200
    assert len(consumer.messages) == 32


async def test_an_endpoint_that_is_unknown_gets_nothing(tenant: Tenant) -> None:
    answer = await tenant.api.post(f"/v1/webhook-endpoints/whe_{0:022}/test", params=tenant.query)
    assert (answer.status, answer.code) == (404, WebhookEndpointNotFound.code)

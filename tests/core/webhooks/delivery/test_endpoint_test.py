"""Testing an endpoint: a message at once, which is no delivery."""

import asyncio

import pytest
from support.rival import Rival
from support.tenant import Tenant
from support.webhook_consumer import Reaction, WebhookConsumer

from soundmark.core.features.webhooks.delivery import sending
from soundmark.core.problems import WebhookEndpointNotFound


async def test_an_endpoint_gets_a_signed_test_even_if_it_is_disabled(
    tenant: Tenant, consumer: WebhookConsumer, rival: Rival
) -> None:
    endpoint = await tenant.make_webhook_endpoint(url=f"{consumer.url}/a", event_types=["code.issued"])
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    assert (await tenant.api.call("PATCH", path, params=tenant.query, json={"enabled": False})).status == 200
    answer = await tenant.api.post(f"{path}/test", params=tenant.query)
    assert (answer.status, answer.json["status_code"], answer.json["error"]) == (200, 204, None)
    assert 0 <= answer.json["duration_ms"] < 15_000
    (message,) = consumer.messages
    assert message.signed_by(endpoint["secret"])
    assert message.id.startswith("evn_")
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


async def test_an_organisation_has_one_test_at_a_time(tenant: Tenant, consumer: WebhookConsumer) -> None:
    consumer.otherwise = "held"
    endpoint = await tenant.make_webhook_endpoint(url=consumer.url)
    path = f"/v1/webhook-endpoints/{endpoint['id']}/test"
    first = asyncio.create_task(tenant.api.post(path, params=tenant.query))
    await consumer.until_arrived(1)
    second = await tenant.api.post(path, params=tenant.query)
    assert (second.status, second.code, second.headers["retry-after"]) == (429, "rate_limited", "1")
    consumer.release.set()
    assert (await first).status == 200
    assert (await tenant.api.post(path, params=tenant.query)).status == 200


async def test_an_organisation_has_thirty_tests_in_a_minute(tenant: Tenant, consumer: WebhookConsumer) -> None:
    endpoint = await tenant.make_webhook_endpoint(url=consumer.url)
    path = f"/v1/webhook-endpoints/{endpoint['id']}/test"
    statuses = [(await tenant.api.post(path, params=tenant.query)).status for _ in range(31)]
    assert statuses == [200] * 30 + [429]
    tenant.api.clock.advance(seconds=61)
    assert (await tenant.api.post(path, params=tenant.query)).status == 200
    assert len(consumer.messages) == 31


async def test_an_endpoint_that_is_unknown_gets_nothing(tenant: Tenant) -> None:
    answer = await tenant.api.post(f"/v1/webhook-endpoints/whe_{0:022}/test", params=tenant.query)
    assert (answer.status, answer.code) == (404, WebhookEndpointNotFound.code)

"""Webhook endpoints: creating, reading, changing and deleting them, and their secrets."""

import asyncio
import base64
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.event import EVENT_TYPES
from soundmark.core.steps.webhook_secrets import SealedSecrets, open_secrets

VIEW = {
    *("id", "organization_id", "project_id", "url", "event_types", "description", "enabled", "disabled_reason"),
    "created_at",
}


async def create(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/webhook-endpoints", json=tenant.webhook_body(**changes))


async def change(tenant: Tenant, endpoint: dict[str, Any], **changes: Any) -> Answer:
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    return await tenant.api.call("PATCH", path, params=tenant.query, json=changes)


async def read(tenant: Tenant, endpoint: dict[str, Any]) -> Answer:
    return await tenant.api.get(f"/v1/webhook-endpoints/{endpoint['id']}", params=tenant.query)


async def roll(tenant: Tenant, endpoint: dict[str, Any]) -> str:
    answer = await tenant.api.post(f"/v1/webhook-endpoints/{endpoint['id']}/secret", params=tenant.query)
    assert (answer.status, set(answer.json)) == (200, VIEW | {"secret"})
    return str(answer.json["secret"])


async def signing(rival: Rival, ctx: Context) -> list[str]:
    """Return the secrets that would sign a message now."""
    ((row),) = await rival.rows(
        "SELECT id, sealed_secret, sealed_earlier_secret, earlier_secret_until FROM webhook_endpoints"
    )
    return [secret.reveal() for secret in open_secrets(ctx.sealer, SealedSecrets(*row), now=ctx.clock.now())]


async def test_the_secret_is_returned_once_and_stored_sealed(tenant: Tenant, rival: Rival, ctx: Context) -> None:
    created = await create(tenant, description="The playout system", event_types=["code.issued"])
    assert created.status == 201
    endpoint = created.json
    secret = endpoint.pop("secret")
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
    assert set(endpoint) == VIEW
    assert (await read(tenant, endpoint)).json == endpoint
    assert await signing(rival, ctx) == [secret]
    ((stored,),) = await rival.rows("SELECT webhook_endpoints::text FROM webhook_endpoints")
    assert secret not in stored


async def test_members_that_may_be_absent_have_defaults(tenant: Tenant) -> None:
    endpoint = (await create(tenant)).json
    told = {name: endpoint[name] for name in ("project_id", "event_types", "description", "enabled", "disabled_reason")}
    assert told == {**dict.fromkeys(told), "enabled": True}


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"url": "http://consumer.example.org/webhooks"}, "/url"),
        ({"url": "https://10.0.0.1/webhooks"}, "/url"),
        ({"url": "https://consumer.example.org/" + "a" * 2048}, "/url"),
        ({"event_types": []}, "/event_types"),
        ({"event_types": ["code.batch_issued"]}, "/event_types/0"),
        ({"event_types": ["code.issued", "code.issued"]}, "/event_types"),
        ({"description": "a\nb"}, "/description"),
    ],
    ids=str,
)
async def test_a_bad_member_changes_nothing(
    tenant: Tenant, rival: Rival, changes: dict[str, Any], pointer: str
) -> None:
    """Both in a new endpoint and in a change."""
    endpoint = (await create(tenant)).json
    before = await rival.rows("SELECT webhook_endpoints::text FROM webhook_endpoints")
    for answer in (await create(tenant, **changes), await change(tenant, endpoint, **changes)):
        assert (answer.status, answer.code) == (422, "validation_failed")
        assert [error["pointer"] for error in answer.json["errors"]] == [pointer]
        assert changes.get("url", "whsec_") not in answer.body.decode()
    assert await rival.rows("SELECT webhook_endpoints::text FROM webhook_endpoints") == before


async def test_every_known_type_can_be_asked_for(tenant: Tenant) -> None:
    assert (await create(tenant, event_types=sorted(EVENT_TYPES))).status == 201


async def test_of_two_that_create_the_twentieth_endpoint_one_is_refused(tenant: Tenant, rival: Rival) -> None:
    for _ in range(19):
        await tenant.make_webhook_endpoint()
    async with rival.holding("SELECT pg_advisory_xact_lock(7, hashtext(%s))", tenant.organization_id):
        both = [asyncio.create_task(create(tenant)) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert sorted([answer.status for answer in await asyncio.gather(*both)]) == [201, 422]
    assert (await create(tenant)).code == "validation_failed"
    assert await rival.rows("SELECT count(*) FROM webhook_endpoints") == [(20,)]


async def test_a_change_leaves_what_it_does_not_name(tenant: Tenant) -> None:
    endpoint = (await create(tenant, description="The playout system", event_types=["code.issued"])).json
    del endpoint["secret"]
    changed = await change(tenant, endpoint, event_types=None)
    assert (changed.status, changed.json) == (200, {**endpoint, "event_types": None})
    changed = await change(tenant, endpoint, description=None, url="https://other.example.org", enabled=False)
    expected = {"description": None, "url": "https://other.example.org", "enabled": False, "event_types": None}
    assert changed.json == {**endpoint, **expected}
    assert (await read(tenant, endpoint)).json == changed.json


async def test_enabling_forgets_why_the_service_disabled_it(tenant: Tenant, rival: Rival) -> None:
    endpoint = (await create(tenant)).json
    await rival.run("UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'failing', failing_since = now()")
    assert (await change(tenant, endpoint, description="x")).json["disabled_reason"] == "failing"
    enabled = (await change(tenant, endpoint, enabled=True)).json
    assert (enabled["enabled"], enabled["disabled_reason"]) == (True, None)
    assert await rival.rows("SELECT failing_since FROM webhook_endpoints") == [(None,)]


async def test_a_replaced_secret_signs_for_a_day_and_the_one_before_no_more(
    api: Api, tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    api.clock.freeze()
    endpoint = (await create(tenant)).json
    second = await roll(tenant, endpoint)
    assert await signing(rival, ctx) == [second, endpoint["secret"]]
    third = await roll(tenant, endpoint)
    assert await signing(rival, ctx) == [third, second]
    api.clock.advance(hours=24, milliseconds=-1)
    assert await signing(rival, ctx) == [third, second]
    api.clock.advance(milliseconds=1)
    assert await signing(rival, ctx) == [third]


async def test_of_two_rolls_at_once_the_second_keeps_the_secret_of_the_first(
    tenant: Tenant, rival: Rival, ctx: Context
) -> None:
    endpoint = (await create(tenant)).json
    async with rival.holding("SELECT FROM webhook_endpoints FOR UPDATE"):
        both = [asyncio.create_task(roll(tenant, endpoint)) for _ in range(2)]
        await rival.until_someone_waits(2)
    rolled = await asyncio.gather(*both)
    assert sorted(await signing(rival, ctx)) == sorted(rolled)


async def test_neither_url_nor_secret_is_in_the_audit_log(tenant: Tenant, rival: Rival) -> None:
    """A URL may hold a token of the consumer's."""
    endpoint = (await create(tenant, url="https://consumer.example.org/s3cr3t?t=0ther")).json
    secret = await roll(tenant, endpoint)
    await change(tenant, endpoint, url="https://consumer.example.org/n3w")
    await tenant.api.call("DELETE", f"/v1/webhook-endpoints/{endpoint['id']}", params=tenant.query)
    rows = await rival.rows(
        "SELECT action, metadata FROM audit_entries WHERE action LIKE 'webhook_endpoint.%%' ORDER BY created_at, id"
    )
    assert {action for action, _ in rows} == {
        f"webhook_endpoint.{verb}" for verb in ("created", "secret_rotated", "updated", "deleted")
    }
    said = str(rows)
    assert endpoint["id"] in said
    assert not [word for word in ("s3cr3t", "0ther", "n3w", secret, endpoint["secret"]) if word in said]


async def test_a_deleted_endpoint_is_unknown(tenant: Tenant, rival: Rival) -> None:
    endpoint = (await create(tenant)).json
    path = f"/v1/webhook-endpoints/{endpoint['id']}"
    answers = [await tenant.api.call("DELETE", path, params=tenant.query) for _ in range(2)]
    assert [(answer.status, answer.body and answer.code) for answer in answers] == [
        (204, b""),
        (404, "webhook_endpoint_not_found"),
    ]
    assert await rival.rows("SELECT FROM webhook_endpoints") == []

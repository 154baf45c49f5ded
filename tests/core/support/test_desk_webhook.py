"""The webhook of the support desk: who may send it, what is taken, and what is left."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.outside.desk import TICKETS, WEBHOOK, deliver, desk_headers, ticket_body
from support.outside.running_sandbox import RunningSandbox, running_sandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.support.desk_webhook.service import forget_deliveries
from soundmark.kit.crypto.secret import Secret

AT = "2026-11-20T10:00:0{}Z"


@pytest.fixture
async def conversation(tenant: Tenant, desk: RunningSandbox) -> dict[str, Any]:
    """The conversation of a ticket, as the desk sends it; it is younger than what the tests deliver."""
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert opened.status == 201
    (found,) = (await desk.look("desk"))["conversations"]
    return {"id": found["id"], "status": "pending", "updatedAt": AT.format(1), "subject": found["subject"]}


async def status_of(rival: Rival) -> str:
    ((status,),) = await rival.rows("SELECT status FROM tickets")
    return str(status)


async def announced(rival: Rival) -> list[tuple[str, str]]:
    return await rival.rows("SELECT type, data::json ->> 'status' FROM webhook_acts ORDER BY created_at")


async def listen(rival: Rival, tenant: Tenant) -> None:
    """Give the organisation a webhook endpoint, without which nothing is announced."""
    await rival.run(
        "INSERT INTO webhook_endpoints (organization_id, id, url, description, enabled, sealed_secret, created_at)"
        " VALUES (%s, 'whe_1', 'https://example.org', '', true, '', now())",
        tenant.organization_id,
    )


async def test_a_change_of_status_is_taken_once_and_announced(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, conversation: dict[str, Any]
) -> None:
    await listen(rival, tenant)
    first = await deliver(tenant.api, desk, conversation)
    assert (first.status, first.json) == (200, {"status": "processed"})
    assert await status_of(rival) == "pending"
    again = await deliver(tenant.api, desk, conversation)
    assert (again.status, again.json) == (200, {"status": "duplicate"})
    assert (await deliver(tenant.api, desk, conversation, "another")).json == {"status": "processed"}
    assert await announced(rival) == [("support.ticket_status_changed", "pending")]


async def test_a_delivery_that_comes_eight_times_at_once_is_taken_once(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, conversation: dict[str, Any]
) -> None:
    async with rival.holding("SELECT FROM tickets FOR UPDATE"):
        sending = [asyncio.create_task(deliver(tenant.api, desk, conversation)) for _ in range(8)]
        await rival.until_someone_waits(8)
    answers = await asyncio.gather(*sending)
    assert sorted(answer.json["status"] for answer in answers) == ["duplicate"] * 7 + ["processed"]


async def test_a_status_that_comes_late_is_ignored(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, conversation: dict[str, Any]
) -> None:
    newer = {**conversation, "status": "spam", "updatedAt": AT.format(3)}
    assert (await deliver(tenant.api, desk, newer, "newer")).json == {"status": "processed"}
    assert (await deliver(tenant.api, desk, conversation, "older")).json == {"status": "ignored"}
    assert await status_of(rival) == "closed"
    same = {**conversation, "status": "active", "updatedAt": AT.format(3)}
    assert (await deliver(tenant.api, desk, same, "same second")).json == {"status": "processed"}
    assert await status_of(rival) == "active"


@pytest.mark.parametrize(
    "changes",
    [
        {"id": 4711},
        {"id": "1"},
        {"id": True},
        {"status": "on holiday"},
        {"status": None},
        {"updatedAt": "yesterday"},
        {"external_id": "tkt_AAAAAAAAAAAAAAAAAAAAAA"},
        {"external_id": "'; DROP TABLE tickets; --\0"},
    ],
)
async def test_what_is_about_no_ticket_of_ours_is_ignored(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, conversation: dict[str, Any], changes: dict[str, Any]
) -> None:
    ignored = await deliver(tenant.api, desk, {**conversation, **changes})
    assert (ignored.status, ignored.json) == (200, {"status": "ignored"})
    assert await status_of(rival) == "active"
    # It was not recorded, so the same delivery is judged again.
    assert (await deliver(tenant.api, desk, conversation)).json == {"status": "processed"}


@pytest.mark.parametrize("document", [[], None])
async def test_what_is_no_object_is_ignored(tenant: Tenant, desk: RunningSandbox, document: Any) -> None:
    assert (await deliver(tenant.api, desk, document)).json == {"status": "ignored"}


async def test_a_ticket_is_found_by_the_id_that_the_desk_was_given(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, conversation: dict[str, Any]
) -> None:
    """As when the desk announces a conversation before it has answered."""
    ((ticket_id,),) = await rival.rows("SELECT id FROM tickets")
    named = {**conversation, "external_id": ticket_id}
    assert (await deliver(tenant.api, desk, named, "known")).json == {"status": "processed"}
    other = {**named, "id": conversation["id"] + 1}
    assert (await deliver(tenant.api, desk, other, "of another conversation")).json == {"status": "ignored"}
    await rival.run("DELETE FROM desk_conversations")
    await rival.run("UPDATE tickets SET conversation_id = NULL, mailbox_id = NULL, sealed_message = '\\x00'")
    early = {**named, "status": "closed"}
    assert (await deliver(tenant.api, desk, early, "early")).json == {"status": "processed"}
    assert await status_of(rival) == "closed"


def sign(desk: RunningSandbox, body: bytes) -> bytes:
    return hmac.digest(desk.secret("SUPPORT_WEBHOOK_SECRET").encode(), body, "sha256")


BODY = b'{"id": 1, "status": "closed", "updatedAt": "2026-11-20T10:00:00Z"}'


async def send(api: Api, headers: dict[str, str], body: bytes = BODY) -> Answer:
    return await api.other(token=None).call("POST", WEBHOOK, headers=headers, content=body)


@pytest.mark.parametrize("encode", [bytes.hex, lambda digest: base64.b64encode(digest).decode()], ids=["hex", "base64"])
async def test_a_signature_is_hexadecimal_or_base64(api: Api, desk: RunningSandbox, encode: Any) -> None:
    headers = {**desk_headers(desk, BODY), "x-support-signature": encode(sign(desk, BODY))}
    assert (await send(api, headers)).status == 200
    assert (await send(api, {**headers, "x-support-signature": headers["x-support-signature"].upper()})).status == (
        200 if encode is bytes.hex else 401
    )


@pytest.mark.parametrize(
    "signature",
    [
        None,
        "",
        "0" * 64,
        "A" * 43 + "=",
        "sha256=" + "0" * 64,
        base64.b64encode(hmac.digest(b"another", BODY, "sha256")).decode(),
    ],
)
async def test_what_the_desk_did_not_sign_is_401(api: Api, desk: RunningSandbox, signature: str | None) -> None:
    headers = desk_headers(desk, BODY)
    del headers["x-support-signature"]
    if signature is not None:
        headers["x-support-signature"] = signature.encode("latin-1").decode("latin-1")
    refused = await send(api, {name: value for name, value in headers.items() if value.isascii()})
    assert (refused.status, refused.code) == (401, "unauthenticated")


async def test_a_stock_desks_signature_is_not_taken_by_default(api: Api, desk: RunningSandbox) -> None:
    digest = hmac.digest(desk.secret("SUPPORT_WEBHOOK_SECRET").encode(), BODY, "sha1")
    headers = {"content-type": "application/json", "x-freescout-signature": base64.b64encode(digest).decode()}
    assert (await send(api, headers)).code == "unauthenticated"


async def test_two_secrets_are_taken_while_one_is_replaced(api: Api, desk: RunningSandbox) -> None:
    headers = desk_headers(desk, BODY)
    both = f"a-new-secret-of-the-desk, {desk.secret('SUPPORT_WEBHOOK_SECRET')}"
    assert (await put_setting(api, "support_webhook_secret", both)).status == 200
    assert (await send(api, headers)).status == 200
    assert (await put_setting(api, "support_webhook_secret", "a-new-secret-of-the-desk")).status == 200
    assert (await send(api, headers)).status == 401


async def test_without_a_secret_nothing_is_taken(api: Api, desk: RunningSandbox, rival: Rival) -> None:
    await rival.run("DELETE FROM platform_secrets WHERE name = 'support_webhook_secret'")
    assert (await send(api, desk_headers(desk, BODY))).code == "unauthenticated"


@pytest.mark.parametrize("delivery_id", [None, "d" * 129, "a\tb"])
async def test_a_signed_delivery_needs_an_id(api: Api, desk: RunningSandbox, delivery_id: str | None) -> None:
    headers = desk_headers(desk, BODY)
    del headers["x-support-delivery"]
    if delivery_id is not None:
        headers["x-support-delivery"] = delivery_id
    refused = await send(api, headers)
    assert (refused.status, refused.code) == (422, "validation_failed")
    assert refused.json["errors"][0]["location"] == "header"


async def test_signed_nonsense_is_400_and_another_media_type_415(api: Api, desk: RunningSandbox) -> None:
    assert (await send(api, desk_headers(desk, b"{"), b"{")).code == "malformed_json"
    headers = {**desk_headers(desk, BODY), "content-type": "text/plain"}
    assert (await send(api, headers)).code == "unsupported_media_type"


async def test_old_deliveries_are_forgotten(
    tenant: Tenant, desk: RunningSandbox, clock: FakeClock, conversation: dict[str, Any], work: Context
) -> None:
    await deliver(tenant.api, desk, conversation)
    clock.advance(days=29)
    assert await forget_deliveries(work) == 0
    clock.advance(days=2)
    assert await forget_deliveries(work) == 1


@pytest.fixture
async def native(
    database_url: Secret, audio_url: str, measuring_url: str, clock: FakeClock
) -> AsyncIterator[tuple[Api, RunningSandbox]]:
    """A Core that takes a stock desk's signature, and a sandbox whose desk is one and reaches it."""
    reached: list[Any] = []

    async def core(scope: Any, receive: Any, send: Any) -> None:
        await reached[0](scope, receive, send)

    async with running_sandbox(core_url="http://core.test", deliver_to=core, clock=clock) as sandbox:
        await sandbox.control("/desk/settings", signature="native")
        settings = {name.lower(): value for name, value in sandbox.settings().items() if name.startswith("SUPPORT_")}
        changes = {"audio_url": audio_url, "audience_url": measuring_url, "support_native_signature": "true"}
        async with running_core(core_settings(database_url, **changes, **settings), clock) as api:
            reached.append(api.app)
            yield api, sandbox


async def test_a_stock_desk_keeps_its_tickets_current(
    native: tuple[Api, RunningSandbox], rival: Rival, tenant: Tenant
) -> None:
    """From the page of the sandbox, on which an agent answers, to the status of the ticket."""
    api, sandbox = native
    opened = await api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert opened.status == 201
    await sandbox.settle()
    answer = {"text": "Is it on?", "status": "pending", "back": "/desk/conversations/1"}
    await sandbox.client.post("/control/desk/conversations/1/reply", data=answer)
    webhooks = await sandbox.settle()
    assert {webhook["state"] for webhook in webhooks} == {"delivered"}, webhooks
    assert await status_of(rival) == "pending"
    body = json.dumps({"id": 1, "status": "closed", "updatedAt": "2126-11-20T10:00:00Z"}).encode()
    digest = hmac.digest(sandbox.secret("SUPPORT_WEBHOOK_SECRET").encode(), body, hashlib.sha1)
    headers = {
        "content-type": "application/json",
        "x-freescout-event": "convo.status",
        "x-freescout-signature": base64.b64encode(digest).decode(),
    }
    statuses = [(await send(api, headers, body)).json["status"] for _ in range(2)]
    assert statuses == ["processed", "duplicate"]
    assert (await send(api, desk_headers(sandbox, body), body)).code == "unauthenticated"

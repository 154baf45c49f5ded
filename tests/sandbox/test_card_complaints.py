"""What the card provider takes or refuses, and no careful client would have sent."""

from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest
from support.outside.running_sandbox import RunningSandbox

SESSIONS, PORTALS = "/card/v1/checkout/sessions", "/card/v1/billing_portal/sessions"
SESSION = {
    "mode": "subscription",
    "line_items[0][price]": "price_sandbox_monthly",
    "line_items[0][quantity]": "1",
    "success_url": "http://core.test/",
}
FORM = "application/x-www-form-urlencoded"


async def post(sandbox: RunningSandbox, path: str, params: dict[str, str], **headers: str) -> httpx2.Response:
    """Create something as Soundmark does, except for `headers`, whose names have `_` in place of `-`."""
    sent = {
        "authorization": f"Bearer {sandbox.secret('CARD_SECRET_KEY')}",
        "stripe-version": "2025-03-31.basil",
        "idempotency-key": "bco_1234567890-1",
        "content-type": FORM,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return await sandbox.client.post(path, content=urlencode(params), headers=sent)


@pytest.mark.parametrize(
    ("headers", "status", "complaint"),
    [
        ({}, 200, None),
        ({"stripe_version": "2025-02-24.acacia"}, 200, "the version is 2025-02-24.acacia"),
        ({"x_stripe_client_telemetry": "{}"}, 200, "there is telemetry"),
        ({"x_stripe_client_user_agent": '{"telemetry_id": "1"}'}, 200, "there is telemetry"),
        ({"idempotency_key": "short"}, 200, "the idempotency key has 5 characters"),
        ({"content_type": "text/plain"}, 200, "the media type is text/plain"),
        ({"authorization": "Bearer sk_test_of_another"}, 401, "Invalid API Key provided: sk_test_****"),
    ],
)
async def test_a_header_that_soundmark_does_not_send(
    sandbox: RunningSandbox, headers: dict[str, str], status: int, complaint: str | None
) -> None:
    assert (await post(sandbox, SESSIONS, SESSION, **headers)).status_code == status
    assert await sandbox.complaints() == ([f"card: {complaint}"] if complaint else [])


@pytest.mark.parametrize(
    ("path", "params", "status", "complaint"),
    [
        (SESSIONS, {**SESSION, "line_items[0][quantity]": "2"}, 200, "the quantity is not 1"),
        (SESSIONS, {**SESSION, "locale": "fr"}, 200, "these parameters are unexpected: ['locale']"),
        (SESSIONS, {**SESSION, "x": "1"}, 400, "Received unknown parameter: x"),
        (SESSIONS, {"x]": "1"}, 400, "the form is malformed"),
        (SESSIONS, {**SESSION, "customer": "cus_gone"}, 400, None),
        (f"{SESSIONS}/cs_test_gone/expire", {}, 404, None),
        (PORTALS, {"customer": "cus_1"}, 200, "these parameters are missing or unexpected: ['return_url']"),
        (PORTALS, {"customer": "cus_1", "return_url": "http://core.test/"}, 200, None),
        ("/card/v2/x", {}, 404, "there is no route POST /v2/x"),
    ],
)
async def test_a_request_that_soundmark_does_not_send(
    sandbox: RunningSandbox, path: str, params: dict[str, Any], status: int, complaint: str | None
) -> None:
    """What is named and gone is no complaint: the client could not know."""
    await sandbox.control("/card/customers", id="cus_1")
    assert (await post(sandbox, path, params)).status_code == status
    assert await sandbox.complaints() == ([f"card: {complaint}"] if complaint else [])


async def test_a_call_names_its_query_and_its_idempotency_key(sandbox: RunningSandbox) -> None:
    await post(sandbox, SESSIONS + "?a=1", SESSION)
    made = {"system": "card", "operation": "create_session", "path": SESSIONS}
    assert await sandbox.calls("card") == [{**made, "query": "a=1", "idempotency_key": "bco_1234567890-1"}]
    await sandbox.control("/calls/clear")
    assert await sandbox.calls("card") == []


async def test_a_read_of_a_path_can_have_any_answer(sandbox: RunningSandbox) -> None:
    path = "/v1/prices/price_sandbox_monthly"
    headers = {"authorization": f"Bearer {sandbox.secret('CARD_SECRET_KEY')}"}
    await sandbox.control("/card/objects", path=path, object={"id": 7})
    assert (await sandbox.client.get(f"/card{path}", headers=headers)).json() == {"id": 7}
    await sandbox.control("/card/objects", path=path)
    gone = await sandbox.client.get(f"/card{path}", headers=headers)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "resource_missing")

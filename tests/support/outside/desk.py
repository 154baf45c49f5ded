"""The support desk of the sandbox, configured for a Core under test."""

import base64
import hmac
import json
from typing import Any, Final

import httpx2

from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.platform_settings import put_setting

TICKETS: Final = "/v1/support/tickets"
WEBHOOK: Final = "/v1/support/webhooks/desk"
MAILBOX_ID: Final = 1


async def configure_desk(rival: Rival, administrator: Api, desk: RunningSandbox) -> None:
    """Make the sandbox's desk that of the platform. Its address cannot be set over the API: it is http."""
    await rival.run(
        "INSERT INTO platform_configuration (name, value, updated_at) VALUES"
        " ('support_desk_base_url', %s, now()), ('support_desk_mailbox_id', %s, now())"
        " ON CONFLICT (name) DO NOTHING",
        *(f'"{desk.url}/desk"', str(MAILBOX_ID)),
    )
    for name in ("support_api_key", "support_webhook_secret"):
        assert (await put_setting(administrator, name, desk.secret(name.upper()))).status == 200


def ticket_body(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a valid body, except for `changes`."""
    return {
        "request_id": f"supreq_of-the-tests-{number:04}",
        "subject": "No sound",
        "message": "It is quiet.\nWhy?",
        **changes,
    }


def reply_body(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a valid body of a reply, except for `changes`."""
    return {"request_id": f"supreq_reply-of-the-tests-{number:04}", "message": "It is on.\nStill quiet.", **changes}


def desk_headers(desk: RunningSandbox, body: bytes, delivery_id: str = "delivery-1") -> dict[str, str]:
    """Return the headers with which the desk would send `body`."""
    digest = hmac.digest(desk.secret("SUPPORT_WEBHOOK_SECRET").encode(), body, "sha256")
    return {
        "content-type": "application/json",
        "x-support-signature": base64.b64encode(digest).decode(),
        "x-support-delivery": delivery_id,
    }


async def deliver(api: Api, desk: RunningSandbox, document: Any, delivery_id: str = "delivery-1") -> Answer:
    """Deliver a document as the desk would."""
    body = json.dumps(document).encode()
    stranger = api.other(token=None)
    return await stranger.call("POST", WEBHOOK, headers=desk_headers(desk, body, delivery_id), content=body)


def sign_as_sent(desk: RunningSandbox, document: Any) -> dict[str, str]:
    """Return the headers for a document that the test's client writes as JSON."""
    return desk_headers(desk, httpx2.Request("POST", "http://core.test", json=document).content)

"""The local provider's stand-in, against what is known of Flouci's API version 2."""

import json
import re
from typing import Any

import httpx2
import pytest
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.webhooks.received_webhooks import ReceivedWebhooks

WEBHOOK = "http://core.test/v1/billing/webhooks/local/secret"


async def generate(sandbox: RunningSandbox, **changes: Any) -> httpx2.Response:
    body = {
        "amount": 10555,
        "success_link": "http://127.0.0.1:8080/billing/checkouts/bco_1?from=local",
        "fail_link": "http://127.0.0.1:8080/billing/failed",
        "webhook": WEBHOOK,
        "developer_tracking_id": "bco_1",
        **changes,
    }
    kept = {name: value for name, value in body.items() if value is not None}
    return await sandbox.client.post("/local/api/v2/generate_payment", json=kept, headers=credential(sandbox))


def credential(sandbox: RunningSandbox) -> dict[str, str]:
    keys = f"{sandbox.secret('LOCAL_PUBLIC_KEY')}:{sandbox.secret('LOCAL_SECRET_KEY')}"
    return {"authorization": f"Bearer {keys}"}


async def verify(sandbox: RunningSandbox, payment_id: str) -> httpx2.Response:
    return await sandbox.client.get(f"/local/api/v2/verify_payment/{payment_id}", headers=credential(sandbox))


async def make_payment(sandbox: RunningSandbox, **changes: Any) -> tuple[str, str]:
    """Return the id and the page of a payment."""
    result = (await generate(sandbox, **changes)).json()["result"]
    return result["payment_id"], result["link"]


async def test_a_payment_has_a_page_and_is_pending(sandbox: RunningSandbox) -> None:
    answer = (await generate(sandbox)).json()
    result = answer["result"]
    assert answer == {"result": result, "name": "developers", "code": 0, "version": "v2"}
    assert (result["success"], result["developer_tracking_id"]) == (True, "bco_1")
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", result["payment_id"])
    assert "10.555 TND" in (await sandbox.client.get(result["link"])).text
    verified = (await verify(sandbox, result["payment_id"])).json()
    assert (verified["success"], verified["status_code"]) == (True, 200)
    assert {name: verified["result"][name] for name in ("amount", "status", "developer_tracking_id")} == {
        "amount": 10555,
        "status": "PENDING",
        "developer_tracking_id": "bco_1",
    }
    assert verified["result"]["details"]["currency"] == "788"


async def test_the_tracking_id_may_be_used_twice(sandbox: RunningSandbox) -> None:
    first, _ = await make_payment(sandbox)
    second, _ = await make_payment(sandbox)
    assert first != second


@pytest.mark.parametrize(
    ("act", "status", "success", "location"),
    [
        ("pay", "SUCCESS", "True", "http://127.0.0.1:8080/billing/checkouts/bco_1?from=local&payment_id="),
        ("refuse", "FAILURE", "False", "http://127.0.0.1:8080/billing/failed?payment_id="),
    ],
)
async def test_the_page_decides_and_an_unsigned_notification_follows(
    sandbox: RunningSandbox, core: ReceivedWebhooks, act: str, status: str, success: str, location: str
) -> None:
    payment_id, link = await make_payment(sandbox)
    done = await sandbox.client.post(link, data={"act": act})
    assert (done.status_code, done.headers["location"]) == (303, location + payment_id)
    assert (await verify(sandbox, payment_id)).json()["result"]["status"] == status
    await sandbox.settle()
    (notification,) = core.requests
    assert (notification.method, notification.path) == ("GET", "/v1/billing/webhooks/local/secret")
    assert notification.query == {"payment_id": payment_id, "success": success}
    assert notification.body == b""


async def test_a_notification_may_be_a_post(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await sandbox.control("/local/settings", notification_method="POST")
    payment_id, link = await make_payment(sandbox)
    await sandbox.client.post(link, data={"act": "pay"})
    await sandbox.settle()
    (notification,) = core.requests
    assert (notification.method, notification.query) == ("POST", {})
    assert notification.body.decode() == f"payment_id={payment_id}&success=True"


async def test_an_expired_payment_sends_no_notification(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    payment_id, link = await make_payment(sandbox)
    await sandbox.client.post(link, data={"act": "expire"})
    assert (await verify(sandbox, payment_id)).json()["result"]["status"] == "EXPIRED"
    assert await sandbox.settle() == []
    assert core.requests == []


async def test_a_payment_expires_by_itself(sandbox: RunningSandbox, clock: FakeClock) -> None:
    payment_id, link = await make_payment(sandbox, session_timeout_secs=60)
    clock.advance(seconds=60)
    assert (await verify(sandbox, payment_id)).json()["result"]["status"] == "EXPIRED"
    assert "This payment is EXPIRED." in (await sandbox.client.post(link, data={"act": "pay"})).text


async def test_any_status_can_be_set_without_a_notification(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    payment_id, _ = await make_payment(sandbox)
    await sandbox.control(f"/local/payments/{payment_id}", status="SYSTEM_FAILURE", notify=False)
    assert (await verify(sandbox, payment_id)).json()["result"]["status"] == "SYSTEM_FAILURE"
    await sandbox.settle()
    assert core.requests == []


async def test_an_answer_can_have_another_amount_type_or_tracking_id(sandbox: RunningSandbox) -> None:
    payment_id, _ = await make_payment(sandbox)
    await sandbox.misbehave(
        "local", "altered", merge={"result": {"amount": "10555", "developer_tracking_id": None, "status": "success"}}
    )
    result = (await verify(sandbox, payment_id)).json()["result"]
    assert (result["amount"], result["status"]) == ("10555", "success")
    assert "developer_tracking_id" not in result


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, None),
        ({"webhook": None}, "these members are missing or unexpected: ['webhook']"),
        ({"developer_tracking_id": None}, "these members are missing or unexpected: ['developer_tracking_id']"),
        ({"session_timeout_secs": 60}, "these members are missing or unexpected: ['session_timeout_secs']"),
        ({"amount": "10555"}, "the amount is not an integer of millimes"),
    ],
)
async def test_what_the_provider_takes_but_soundmark_must_not_send_is_a_complaint(
    sandbox: RunningSandbox, changes: dict[str, Any], complaint: str | None
) -> None:
    assert (await generate(sandbox, **changes)).status_code == 200
    assert await sandbox.complaints() == ([f"local: {complaint}"] if complaint else [])


async def test_a_request_that_is_not_as_documented_is_a_complaint(sandbox: RunningSandbox) -> None:
    headers = credential(sandbox)
    ask = sandbox.client.request
    await ask("POST", "/local/api/v2/generate_payment", content=b"{}", headers={**headers, "content-type": "text/x"})
    await ask("POST", "/local/api/v2/generate_payment", content=b"{", headers=headers)
    await ask("GET", "/local/api/v2/verify_payment/x", content=b"{}", headers=headers)
    await ask("GET", "/local/api/v2/verify_payment/x", headers={"authorization": "Bearer a:b"})
    unknown = [
        await ask("GET", "/local/api/v1/x", headers=headers),
        await ask("POST", "/local/api/v2/verify_payment/x", headers=headers),
    ]
    assert [answer.status_code for answer in unknown] == [404, 404]
    complaints = await sandbox.complaints()
    assert complaints[0] == "local: the media type is text/x"
    assert complaints[3:] == [
        "local: the body is not JSON",
        "local: a question has a body",
        "local: the keys are wrong",
        "local: there is no route GET /local/api/v1/x",
        "local: there is no route POST /local/api/v2/verify_payment/x",
    ]
    await sandbox.control("/reset")
    assert await sandbox.complaints() == await sandbox.calls("local") == []


async def test_a_payment_can_be_added_whose_answer_has_other_members(sandbox: RunningSandbox) -> None:
    await sandbox.control("/local/payments", id="payment-of-mine", amount=5, tracking_id="bco_1", status="SUCCESS")
    verified = (await verify(sandbox, "payment-of-mine")).json()["result"]
    assert (verified["amount"], verified["developer_tracking_id"], verified["status"]) == (5, "bco_1", "SUCCESS")
    await sandbox.control("/local/payments/payment-of-mine", answer={"amount": None, "status": 7}, notify=False)
    verified = (await verify(sandbox, "payment-of-mine")).json()["result"]
    assert (verified["amount"], verified["status"]) == (None, 7)
    assert [call["path"] for call in await sandbox.calls("local")] == [
        "/local/api/v2/verify_payment/payment-of-mine"
    ] * 2


@pytest.mark.parametrize("changes", [{"amount": 0}, {"amount": "x"}, {"amount": None}, {"success_link": None}])
async def test_a_wrong_request_is_refused(sandbox: RunningSandbox, changes: dict[str, Any]) -> None:
    refused = await generate(sandbox, **changes)
    assert (refused.status_code, refused.json()["success"]) == (400, False)


async def test_an_unknown_payment_is_404_and_a_wrong_key_401(sandbox: RunningSandbox) -> None:
    assert (await verify(sandbox, "unknown")).status_code == 404
    refused = await sandbox.client.get("/local/api/v2/verify_payment/x", headers={"authorization": "Bearer a:b"})
    assert refused.status_code == 401
    assert json.loads(refused.content)["success"] is False

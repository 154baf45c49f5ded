"""`POST /v1/billing/webhooks/card`: whose events are taken, and the order in which a request is judged."""

import json
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.billing.card_purchase import WEBHOOK_SECRET, CardPurchase, deliver, deliver_bytes, sign
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.platform_settings import put_setting

from soundmark.core.providers.stripe.webhooks import is_signed
from soundmark.kit.crypto.secret import Secret

OTHER_SECRET = "whsec_MARKsecretThatComesNext"


def body_of(purchase: CardPurchase) -> bytes:
    return json.dumps(purchase.event("checkout.session.completed")).encode()


async def require_refused(rival: Rival, card: RunningSandbox, answer: Answer) -> None:
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert await card.calls("card") == []
    assert await rival.rows("SELECT 1 FROM payment_receipts") == []


@pytest.mark.parametrize("skew_s", [-300, 0, 300])
async def test_a_signature_of_the_last_or_next_five_minutes_is_taken(
    api: Api, purchase: CardPurchase, skew_s: int
) -> None:
    api.clock.freeze()
    body = body_of(purchase)
    answer = await deliver_bytes(api, body, sign(body, at_s=api.clock.unix_s() + skew_s))
    assert answer.json == {"status": "processed"}


@pytest.mark.parametrize("skew_s", [-301, 301])
async def test_an_older_or_later_signature_is_refused(
    api: Api, rival: Rival, card: RunningSandbox, purchase: CardPurchase, skew_s: int
) -> None:
    api.clock.freeze()
    body = body_of(purchase)
    answer = await deliver_bytes(api, body, sign(body, at_s=api.clock.unix_s() + skew_s))
    await require_refused(rival, card, answer)


async def test_a_signature_over_other_bytes_is_refused(
    api: Api, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    """The same JSON written otherwise is not what the provider signed."""
    body = body_of(purchase)
    signature = sign(body, at_s=api.clock.unix_s())
    for other in (body + b"\n", json.dumps(json.loads(body), indent=1).encode(), b""):
        await require_refused(rival, card, await deliver_bytes(api, other, signature))


def forgeries(body: bytes, now: int) -> dict[str, str | None]:
    good = sign(body, at_s=now)
    digest = good.partition("v1=")[2]
    return {
        "no header": None,
        "empty": "",
        "another secret": sign(body, at_s=now, secret=OTHER_SECRET),
        "the empty secret": sign(body, at_s=now, secret=""),
        "another time": good.replace(f"t={now}", f"t={now - 1}"),
        "two times": f"t={now - 1},{good}",
        "no time": f"v1={digest}",
        "an odd time": f"t=+{now},v1={digest}",
        "a long time": f"t={'0' * 20}{now},v1={digest}",
        "an older scheme": good.replace("v1=", "v0="),
        "upper case": f"t={now},v1={digest.upper()}",
        "a part": f"t={now},v1={digest[:63]}",
        "longer": f"t={now},v1={digest}0",
        "no letters": f"t={now},v1={'é' * 64}",
        "nine of them": f"t={now}," + ",".join([f"v1={'0' * 64}"] * 8) + f",v1={digest}",
        "too long": good + ",v0=" + "0" * 4096,
    }


async def test_a_forged_signature_is_refused(
    api: Api, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    api.clock.freeze()
    body, wrong = body_of(purchase), {}
    for name, signature in forgeries(body, int(api.clock.unix_s())).items():
        encoded: Any = None if signature is None else signature.encode()
        answer = await deliver_bytes(api, body, encoded)
        if (answer.status, answer.code) != (401, "unauthenticated"):
            wrong[name] = answer.body
    assert wrong == {}
    assert (await card.calls("card"), await rival.rows("SELECT 1 FROM payment_receipts")) == ([], [])


async def test_two_signature_headers_count_as_none(
    api: Api, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    body = body_of(purchase)
    signature = sign(body, at_s=api.clock.unix_s())
    headers = [("Content-Type", "application/json"), ("Stripe-Signature", signature), ("Stripe-Signature", signature)]
    answer = await api.other(token=None).post("/v1/billing/webhooks/card", content=body, headers=headers)
    await require_refused(rival, card, answer)


async def test_while_the_secret_is_replaced_both_are_taken(api: Api, purchase: CardPurchase) -> None:
    assert (await put_setting(api, "card_webhook_secret", f"{WEBHOOK_SECRET} , {OTHER_SECRET}")).status == 200
    now = api.clock.unix_s()
    for secret in (WEBHOOK_SECRET, OTHER_SECRET):
        body = body_of(purchase)
        answer = await deliver_bytes(api, body, sign(body, at_s=now, secret=secret))
        assert answer.json == {"status": "processed"}
    body = body_of(purchase)
    both = sign(body, at_s=now, secret="whsec_of_somebody_else") + "," + sign(body, at_s=now).partition(",")[2]
    assert (await deliver_bytes(api, body, both)).json == {"status": "processed"}


async def test_without_a_configured_secret_nothing_is_taken(
    api: Api, rival: Rival, card: RunningSandbox, purchase: CardPurchase
) -> None:
    await rival.run("DELETE FROM platform_secrets WHERE name = 'card_webhook_secret'")
    body = body_of(purchase)
    for secret in (WEBHOOK_SECRET, ""):
        answer = await deliver_bytes(api, body, sign(body, at_s=api.clock.unix_s(), secret=secret))
        await require_refused(rival, card, answer)


def test_a_setting_without_a_secret_in_it_verifies_nothing() -> None:
    """Such as a comma alone: an empty secret would be known to everybody."""
    assert not is_signed(b"{}", sign(b"{}", at_s=1000, secret=""), (), now_s=1000)
    assert is_signed(b"{}", sign(b"{}", at_s=1000), (Secret(WEBHOOK_SECRET),), now_s=1000)


@pytest.mark.parametrize("body", [b"", b'{"a": 1, "a": 2}'], ids=repr)
async def test_broken_json_is_refused_after_the_signature(api: Api, card: RunningSandbox, body: bytes) -> None:
    assert await card.calls("card") == []
    signed = await deliver_bytes(api, body, sign(body, at_s=api.clock.unix_s()))
    unsigned = await deliver_bytes(api, body, sign(body + b" ", at_s=api.clock.unix_s()))
    assert (signed.code, unsigned.code) == ("malformed_json", "unauthenticated")


async def test_another_media_type_is_refused_after_the_signature(api: Api, purchase: CardPurchase) -> None:
    body = body_of(purchase)
    headers = {"Content-Type": "text/plain", "Stripe-Signature": sign(body, at_s=api.clock.unix_s())}
    answer = await api.other(token=None).post("/v1/billing/webhooks/card", content=body, headers=headers)
    assert answer.code == "unsupported_media_type"


async def test_a_body_of_more_than_a_mebibyte_is_refused_unread(api: Api, purchase: CardPurchase) -> None:
    event = purchase.event("checkout.session.completed")
    body = json.dumps({**event, "padding": "x" * 1024 * 1024}).encode()
    assert (await deliver_bytes(api, body, sign(body, at_s=api.clock.unix_s()))).code == "payload_too_large"
    event["padding"] = "x" * (1024 * 1024 - len(json.dumps({**event, "padding": ""}).encode()))
    assert (await deliver(api, event)).json == {"status": "processed"}


async def test_a_query_string_is_not_read(api: Api, purchase: CardPurchase) -> None:
    """Closed query strings are for our own callers: contract, section 1."""
    body = body_of(purchase)
    headers = {"Content-Type": "application/json", "Stripe-Signature": sign(body, at_s=api.clock.unix_s())}
    answer = await api.other(token=None).post(
        "/v1/billing/webhooks/card", content=body, headers=headers, params={"a": "1", "b": "2"}
    )
    assert answer.json == {"status": "processed"}

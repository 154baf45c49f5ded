"""`/v1/billing/webhooks/local`: how a notification is read, and the order in which it is judged."""

import itertools
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from support.api.core_client import Api
from support.billing.local_purchase import (
    PATH,
    LocalPurchase,
    begin_local_purchase,
    insert_local_checkout,
    notify,
    notify_of,
)
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.features.billing.webhooks import local_notification

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json; charset=utf-8"}


@pytest.fixture
async def purchase(tenant: Tenant, rival: Rival, local: RunningSandbox) -> LocalPurchase:
    """A payment at the local provider that succeeded."""
    return await begin_local_purchase(tenant, rival, local)


def requests_for(identity: str) -> dict[str, dict[str, Any]]:
    """Return every way in which a notification may name its payment."""
    in_json: dict[str, Any] = {
        "payment_id": {"payment_id": identity},
        "id": {"id": identity, "event": "payment"},
        "data": {"data": {"payment_id": identity, "n": 1.5}},
        "result": {"result": {"payment_id": identity}, "data": "none"},
    }
    return {
        "GET query": {"method": "GET", "params": {"payment_id": identity, "success": "True"}},
        "GET query, id": {"method": "GET", "params": {"id": identity}},
        "POST query": {"method": "POST", "params": {"payment_id": identity}},
        "POST form": {"method": "POST", "content": urlencode({"payment_id": identity}).encode(), "headers": FORM},
        "POST form, nested": {
            "method": "POST",
            "content": urlencode({"data[payment_id]": identity}).encode(),
            "headers": FORM,
        },
        **{
            f"POST JSON, {name}": {"method": "POST", "content": json.dumps(body).encode(), "headers": JSON}
            for name, body in in_json.items()
        },
    }


async def test_a_payment_is_verified_however_its_notification_names_it(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox
) -> None:
    forms = requests_for("x")
    for form, has_secret in itertools.product(forms, (True, False)):
        purchase = await begin_local_purchase(tenant, rival, local)
        path = purchase.path if has_secret else PATH
        answer = await notify(api, path, **requests_for(purchase.payment_id)[form])
        assert (answer.status, answer.json) == (200, {"status": "processed"}), (form, has_secret)
    rows = await rival.rows("SELECT count(*) FROM checkouts WHERE status = 'completed'")
    assert rows == [(2 * len(forms),)]


async def test_of_several_ids_the_first_that_is_ours_counts(api: Api, purchase: LocalPurchase) -> None:
    """An `id` may be that of the notification."""
    body = json.dumps({"id": "notification-0001", "result": {"payment_id": purchase.payment_id}}).encode()
    answer = await notify(api, PATH, method="POST", content=body, headers=JSON, params={"payment_id": "unknown-0001"})
    assert answer.json == {"status": "processed"}


UNREADABLE: dict[str, dict[str, Any]] = {
    "nothing": {"method": "GET"},
    "an empty body": {"method": "POST"},
    "broken JSON": {"method": "POST", "content": b"{", "headers": JSON},
    "a list": {"method": "POST", "content": b"[]", "headers": JSON},
    "an object as an id": {"method": "POST", "content": b'{"payment_id": {"id": 1}}', "headers": JSON},
    "true": {"method": "POST", "content": b'{"payment_id": true}', "headers": JSON},
    "short": {"method": "GET", "params": {"payment_id": "abcde"}},
    "long": {"method": "GET", "params": {"payment_id": "a" * 101}},
    "a path": {"method": "GET", "params": {"payment_id": "../../generate_payment"}},
    "a line end": {"method": "GET", "params": {"payment_id": "abcdefgh\n"}},
    "a zero": {"method": "GET", "params": {"payment_id": "abcdefgh\0"}},
    "not ASCII": {"method": "GET", "params": {"payment_id": "abcdefghé"}},
    "many parameters": {"method": "POST", "content": b"&".join([b"a=1"] * 5000), "headers": FORM},
    "another media type": {"method": "POST", "content": b"payment_id=abcdefgh", "headers": {"Content-Type": "text/x"}},
}


async def test_without_a_well_formed_id_no_checkout_is_found(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase
) -> None:
    for path, (name, request) in itertools.product((PATH, purchase.path), UNREADABLE.items()):
        answer = await notify(api, path, **request)
        assert (answer.status, answer.code) == (404, "checkout_not_found"), name
    assert await local.calls("local") == []
    assert await rival.rows("SELECT 1 FROM payment_receipts") == []


async def test_what_is_not_ours_is_not_found_and_nobody_is_asked(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase, tenant: Tenant, people: People
) -> None:
    other = await begin_local_purchase(await people.tenant_of("ada"), rival, local)
    second = await begin_local_purchase(tenant, rival, local)
    wrong = [
        (PATH, "unknown-payment-0001"),
        (purchase.path, "unknown-payment-0001"),
        (f"{PATH}/unknown-secret", purchase.payment_id),
        (f"{PATH}/{purchase.payment_id}", purchase.payment_id),
        (other.path, purchase.payment_id),
        (second.path, purchase.payment_id),
        (PATH, purchase.checkout_id),
        (PATH, purchase.secret),
    ]
    for path, payment_id in wrong:
        answer = await notify(api, path, params={"payment_id": payment_id})
        assert (answer.status, answer.code) == (404, "checkout_not_found"), path
    assert await local.calls("local") == []
    assert await rival.rows("SELECT 1 FROM payment_receipts") == []


async def test_a_notification_before_our_commit_is_not_found_and_counts_later(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase
) -> None:
    """The payment's id is stored with the page; until then nobody can have paid."""
    kept = await rival.rows("SELECT kind, digest, organization_id, subject_id FROM billing_references")
    await rival.run("DELETE FROM billing_references WHERE kind = 'local_payment'")
    assert (await notify_of(api, purchase)).code == "checkout_not_found"
    assert await local.calls("local") == []
    for row in kept:
        await rival.run("INSERT INTO billing_references VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", *row)
    assert (await notify_of(api, purchase)).json == {"status": "processed"}


async def test_a_processed_payment_is_answered_without_asking(
    api: Api, rival: Rival, local: RunningSandbox, purchase: LocalPurchase
) -> None:
    """Not even the limit is touched."""
    await notify_of(api, purchase)
    before = await rival.rows("SELECT verification_count FROM local_verifications")

    for _ in range(3):
        assert (await notify_of(api, purchase)).json == {"status": "processed"}

    assert len(await local.calls("local")) == 1
    assert await rival.rows("SELECT verification_count FROM local_verifications") == before
    assert await rival.rows("SELECT count(*) FROM subscriptions") == [(1,)]


async def test_a_payment_that_a_job_has_counted_is_answered_without_asking(
    api: Api, tenant: Tenant, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    purchase = await insert_local_checkout(tenant, rival, status="completed", completed_at=clock.now())

    assert (await notify_of(api, purchase)).json == {"status": "processed"}
    assert await local.calls("local") == []
    assert await rival.rows("SELECT event_id, status FROM payment_receipts") == [(purchase.payment_id, "processed")]


async def test_a_body_of_more_than_a_mebibyte_is_refused(api: Api, purchase: LocalPurchase) -> None:
    body = urlencode({"payment_id": purchase.payment_id, "padding": "x" * 1024 * 1024}).encode()
    answer = await notify(api, PATH, method="POST", content=body, headers=FORM)
    assert answer.code == "payload_too_large"


async def test_a_field_that_is_too_long_for_an_id_is_not_decoded(
    api: Api, purchase: LocalPurchase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form of a mebibyte that was all escapes held the event loop for 130 ms, and anybody may send one."""
    lengths = []
    parse = local_notification.parse_qsl

    def note_and_parse(text: str) -> list[tuple[str, str]]:
        lengths.append(len(text))
        return parse(text)

    monkeypatch.setattr(local_notification, "parse_qsl", note_and_parse)
    body = urlencode({"padding": "ß" * 10_000, "payment_id": purchase.payment_id}).encode()

    assert (await notify(api, PATH, method="POST", content=body, headers=FORM)).json == {"status": "processed"}
    assert max(lengths) < 200

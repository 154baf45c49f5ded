"""The client of the card provider: what it reads, how long it waits, and what it never says."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest
import structlog
from support.billing.card_purchase import ADVISED, CARD_SECRET, CUSTOMER, FINAL, put_object, sell_price
from support.billing.offers import PRICE as OFFERED
from support.outside.misbehaving_server import answer, dripping, misbehaving_server, silent, slow_headers
from support.outside.running_sandbox import RunningSandbox, running_sandbox
from support.tenancy.given_settings import given_settings

from soundmark.core.domain.billing.card import CardPrice
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.providers.stripe.client import API_VERSION, CardObjectMissing, CardProvider
from soundmark.kit.crypto.secret import Secret

SETTINGS = given_settings(card_secret_key=Secret(CARD_SECRET))
SINCE = datetime(2026, 11, 20, tzinfo=UTC)
SUBSCRIPTION: dict[str, Any] = {
    "id": "sub_MARK",
    "object": "subscription",
    "status": "active",
    "items": {"object": "list", "data": []},
    "cancel_at_period_end": False,
}
PRICE: dict[str, Any] = {"id": "price_MARK", "object": "price", "active": True, "currency": "eur", "unit_amount": 4900}


@pytest.fixture
async def server() -> AsyncIterator[RunningSandbox]:
    """A server that the code under test calls."""
    async with running_sandbox(CARD_SECRET_KEY=CARD_SECRET) as running:
        await sell_price(running)
        yield running
        assert await running.complaints() == []


@pytest.fixture
async def client(server: RunningSandbox) -> AsyncIterator[CardProvider]:
    """The client under test."""
    provider = CardProvider(f"{server.url}/card", SETTINGS)
    yield provider
    await provider.aclose()


CALLS: dict[str, Callable[[CardProvider], Awaitable[Any]]] = {
    "read_session": lambda client: client.read_session("cs_MARK"),
    "read_subscription": lambda client: client.read_subscription("sub_MARK"),
    "read_price": lambda client: client.read_price("price_MARK"),
    "expire_session": lambda client: client.expire_session("cs_MARK"),
    "open_portal": lambda client: client.open_portal(CUSTOMER, "https://console.example.org/billing"),
    "list_events": lambda client: client.list_events(SINCE, ["invoice.paid"]),
}


async def test_a_subscription_is_read_with_its_latest_invoice(server: RunningSandbox, client: CardProvider) -> None:
    await put_object(server, "/v1/subscriptions/sub_MARK", SUBSCRIPTION)

    assert (await client.read_subscription("sub_MARK")).status == "active"

    (asked,) = await server.calls("card")
    assert (asked["operation"], asked["path"]) == ("read_subscription", "/card/v1/subscriptions/sub_MARK")
    assert parse_qsl(asked["query"]) == [("expand[0]", "latest_invoice")]
    assert asked["idempotency_key"] is None


def make_lines(*ends: int, has_more: bool) -> dict[str, Any]:
    lines = [{"amount": 1, "subscription": "sub_MARK", "period": {"start": 0, "end": end}} for end in ends]
    return {"object": "list", "data": lines, "has_more": has_more}


@pytest.mark.parametrize(("status", "has_more", "end"), [("paid", True, 2), ("paid", False, 1), ("open", True, 1)])
async def test_a_paid_invoice_of_many_lines_is_read_to_its_end(
    server: RunningSandbox, client: CardProvider, status: str, has_more: bool, end: int
) -> None:
    """The provider includes ten, and the line of the new period may be the eleventh."""
    invoice = {"id": "in_MARK", "object": "invoice", "status": status, "amount_paid": 1, "currency": "eur"}
    latest = {**invoice, "lines": make_lines(1, has_more=has_more)}
    await put_object(server, "/v1/subscriptions/sub_MARK", {**SUBSCRIPTION, "latest_invoice": latest})
    await put_object(server, "/v1/invoices/in_MARK/lines", make_lines(1, 2, has_more=False))

    found = (await client.read_subscription("sub_MARK")).latest_invoice

    assert found is not None
    assert max(line.period_end for line in found.lines).timestamp() == end
    asked = [(call["operation"], call["query"]) for call in (await server.calls("card"))[1:]]
    assert asked == ([("list_lines", "limit=100")] if end == 2 else [])


async def test_a_session_is_read_and_closed(server: RunningSandbox, client: CardProvider) -> None:
    headers = {"authorization": f"Bearer {CARD_SECRET}", "stripe-version": API_VERSION, "idempotency-key": "k" * 16}
    params = {"mode": "subscription", "line_items[0][price]": OFFERED, "line_items[0][quantity]": "1"}
    urls = {"success_url": "http://core.test/", "cancel_url": "http://core.test/"}
    made = await server.client.post("/card/v1/checkout/sessions", data={**params, **urls}, headers=headers)
    reference = made.json()["id"]

    closed = await client.expire_session(reference)

    assert (closed.status, await client.read_session(reference)) == ("expired", closed)
    assert await client.expire_session(reference) == closed, "the provider refuses, and the session says why"
    assert [call["operation"] for call in await server.calls("card")] == [
        "create_session",
        "expire_session",
        "read_session",
        "expire_session",
        "read_session",
    ]


@pytest.mark.parametrize("name", ["read_session", "read_subscription"])
async def test_what_the_provider_does_not_have_is_missing(client: CardProvider, name: str) -> None:
    with pytest.raises(CardObjectMissing) as missing:
        await CALLS[name](client)

    assert "MARK" not in str(missing.value)


async def test_a_portal_that_the_provider_does_not_have_is_unavailable() -> None:
    """A 404 is no object of ours that is missing, so no caller of the portal expects it."""
    async with misbehaving_server(answer(b'{"error": {"code": "resource_missing"}}', status="404 Not Found")) as server:
        provider = CardProvider(server.url, SETTINGS)
        with pytest.raises(PaymentProviderUnavailable):
            await CALLS["open_portal"](provider)
        await provider.aclose()


async def test_a_price_that_the_provider_does_not_have_is_none(server: RunningSandbox, client: CardProvider) -> None:
    assert await client.read_price("price_MARK") is None
    await put_object(server, "/v1/prices/price_MARK", PRICE)
    assert await client.read_price("price_MARK") == CardPrice(True, False, "EUR", 4900, None)


async def test_events_are_listed_page_by_page(server: RunningSandbox, client: CardProvider) -> None:
    events = [{"id": f"evt_{number}", "object": "event", "data": {"object": {"x": [1]}}} for number in range(2)]
    await put_object(server, "/v1/events", {"object": "list", "data": events, "has_more": False})

    assert await client.list_events(SINCE, ["invoice.paid", "checkout.session.completed"]) == events

    (asked,) = await server.calls("card")
    assert parse_qsl(asked["query"]) == [
        ("created[gte]", str(int(SINCE.timestamp()))),
        ("types[0]", "invoice.paid"),
        ("types[1]", "checkout.session.completed"),
        ("limit", "100"),
    ]


async def test_a_list_of_events_without_an_end_is_read_so_far(server: RunningSandbox, client: CardProvider) -> None:
    await put_object(server, "/v1/events", {"object": "list", "data": [{"id": "evt_1"}], "has_more": True})

    with structlog.testing.capture_logs() as logs:
        assert len(await client.list_events(SINCE, ["invoice.paid"])) == 20
    assert [(each["event"], each["log_level"]) for each in logs] == [("card_events_left_out", "warning")]
    assert dict(parse_qsl((await server.calls("card"))[-1]["query"]))["starting_after"] == "evt_1"


async def test_a_provider_without_a_list_of_events_has_none(server: RunningSandbox, client: CardProvider) -> None:
    await put_object(server, "/v1/events", {})
    assert await client.list_events(SINCE, ["invoice.paid"]) == []


async def test_another_object_than_was_asked_for_is_refused(server: RunningSandbox, client: CardProvider) -> None:
    await put_object(server, "/v1/subscriptions/sub_MARK", {**SUBSCRIPTION, "id": "sub_somebodyElses"})

    with pytest.raises(PaymentProviderUnavailable):
        await client.read_subscription("sub_MARK")


@pytest.mark.parametrize("fault", ["refused", "rate_limited", "html", "html_as_json", "list", "redirect", "endless"])
async def test_nonsense_is_not_asked_for_twice(server: RunningSandbox, client: CardProvider, fault: str) -> None:
    for number, call in enumerate(CALLS.values(), start=1):
        await server.misbehave("card", fault)
        with pytest.raises(PaymentProviderUnavailable):
            await call(client)
        assert len(await server.calls("card")) == number


@pytest.mark.parametrize("fault", ["lost_answer", "half_body", "server_error"])
async def test_a_read_is_repeated_after_a_lost_answer_or_a_failure(
    server: RunningSandbox, client: CardProvider, fault: str
) -> None:
    await put_object(server, "/v1/subscriptions/sub_MARK", SUBSCRIPTION)
    await server.misbehave("card", fault)

    assert (await client.read_subscription("sub_MARK")).status == "active"
    assert len(await server.calls("card")) == 2


async def test_a_failure_that_lasts_is_asked_for_four_times(server: RunningSandbox, client: CardProvider) -> None:
    await server.misbehave("card", "server_error", times=10, headers=ADVISED)

    with pytest.raises(PaymentProviderUnavailable):
        await client.read_subscription("sub_MARK")

    assert len(await server.calls("card")) == 4


async def test_a_conflict_is_repeated_unless_the_provider_advises_against_it(
    server: RunningSandbox, client: CardProvider
) -> None:
    await put_object(server, "/v1/subscriptions/sub_MARK", SUBSCRIPTION)
    await server.misbehave("card", "conflict", headers=FINAL)

    with pytest.raises(PaymentProviderUnavailable):
        await client.read_subscription("sub_MARK")

    assert len(await server.calls("card")) == 1


@pytest.mark.parametrize("behaviour", [silent, slow_headers, dripping])
async def test_a_call_ends_at_its_deadline_whatever_the_provider_does(behaviour: Any) -> None:
    async with misbehaving_server(behaviour) as server:
        provider = CardProvider(server.url, SETTINGS, timeout_s=0.3)
        async with asyncio.timeout(5):
            with pytest.raises(PaymentProviderUnavailable):
                await provider.read_subscription("sub_MARK")
        await provider.aclose()


async def test_a_provider_that_is_down_is_unavailable() -> None:
    provider = CardProvider("http://127.0.0.1:9", SETTINGS)

    with pytest.raises(PaymentProviderUnavailable):
        await provider.read_subscription("sub_MARK")
    await provider.aclose()


async def test_a_secret_key_that_no_header_can_hold_is_unavailable_at_once(server: RunningSandbox) -> None:
    provider = CardProvider(f"{server.url}/card", given_settings(card_secret_key=Secret("sk_MARK_\u00dc")))
    with structlog.testing.capture_logs() as logs, pytest.raises(PaymentProviderUnavailable):
        await provider.read_session("cs_MARK")
    assert [each["reason"] for each in logs] == ["unusable_key"]
    assert await server.calls("card") == []
    await provider.aclose()


async def test_without_a_secret_key_nothing_is_sent(server: RunningSandbox) -> None:
    provider = CardProvider(f"{server.url}/card", given_settings())

    assert not await provider.is_configured()
    with pytest.raises(PaymentProviderUnavailable):
        await provider.read_subscription("sub_MARK")
    assert await server.calls("card") == []
    await provider.aclose()


@pytest.mark.parametrize("fault", ["refused", "lost_answer", "html", "server_error", "half_body", None])
async def test_nothing_logs_a_secret_a_reference_or_an_address(
    server: RunningSandbox,
    fault: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The SDK would, if it is asked to by its environment or by the level of its logger."""
    monkeypatch.setattr("stripe._util.STRIPE_LOG", "debug")
    caplog.set_level(logging.DEBUG, logger="stripe")
    if fault is not None:
        await server.misbehave("card", fault, times=4, merge={"error": {"message": "MARK"}})
    provider = CardProvider(f"{server.url}/card", SETTINGS)
    results: list[Any] = []
    with structlog.testing.capture_logs() as logs:
        for call in CALLS.values():
            results += await asyncio.gather(call(provider), return_exceptions=True)
    await provider.aclose()

    raised = [result for result in results if isinstance(result, Exception)]
    assert {type(problem) for problem in raised} <= {PaymentProviderUnavailable, CardObjectMissing}
    assert {problem.__cause__ for problem in raised} <= {None}
    said = [repr(raised), repr(logs), caplog.text, *capfd.readouterr()]
    assert not any(word in text for text in said for word in ("MARK", "sk_test", "example.org", "/v1/"))
    assert await server.calls("card") != []

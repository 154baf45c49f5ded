"""The client of the card provider: what it reads, how long it waits, and what it never says."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest
import structlog
from support.outside.card_stand_in import CARD_SECRET, CUSTOMER, CardStandIn, running_card
from support.outside.misbehaving_server import answer, dripping, misbehaving_server, silent, slow_headers
from support.outside.outside_server import Fault
from support.tenancy.given_settings import given_settings

from soundmark.core.domain.billing.card import CardPrice
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.providers.stripe.client import CardObjectMissing, CardProvider
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
async def server() -> AsyncIterator[CardStandIn]:
    async with running_card() as running:
        yield running
        assert running.complaints == []


@pytest.fixture
async def client(server: CardStandIn) -> AsyncIterator[CardProvider]:
    provider = CardProvider(server.url, SETTINGS)
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


async def test_a_subscription_is_read_with_its_latest_invoice(server: CardStandIn, client: CardProvider) -> None:
    server.objects["sub_MARK"] = SUBSCRIPTION

    assert (await client.read_subscription("sub_MARK")).status == "active"

    (request,) = server.received
    assert (request.method, request.path) == ("GET", "/v1/subscriptions/sub_MARK")
    assert parse_qsl(request.query) == [("expand[0]", "latest_invoice")]
    assert "idempotency-key" not in request.headers


def make_lines(*ends: int, has_more: bool) -> dict[str, Any]:
    lines = [{"amount": 1, "subscription": "sub_MARK", "period": {"start": 0, "end": end}} for end in ends]
    return {"object": "list", "data": lines, "has_more": has_more}


@pytest.mark.parametrize(("status", "has_more", "end"), [("paid", True, 2), ("paid", False, 1), ("open", True, 1)])
async def test_a_paid_invoice_of_many_lines_is_read_to_its_end(
    server: CardStandIn, client: CardProvider, status: str, has_more: bool, end: int
) -> None:
    """The provider includes ten, and the line of the new period may be the eleventh."""
    invoice = {"id": "in_MARK", "object": "invoice", "status": status, "amount_paid": 1, "currency": "eur"}
    latest = {**invoice, "lines": make_lines(1, has_more=has_more)}
    server.objects["sub_MARK"] = {**SUBSCRIPTION, "latest_invoice": latest}
    server.objects["lines"] = make_lines(1, 2, has_more=False)

    found = (await client.read_subscription("sub_MARK")).latest_invoice

    assert found is not None
    assert max(line.period_end for line in found.lines).timestamp() == end
    asked = [(request.path, request.query) for request in server.received[1:]]
    assert asked == ([("/v1/invoices/in_MARK/lines", "limit=100")] if end == 2 else [])


async def test_a_session_is_read_and_closed(server: CardStandIn, client: CardProvider) -> None:
    server.sessions["cs_MARK"] = {"id": "cs_MARK", "object": "checkout.session", "status": "open"}

    await client.expire_session("cs_MARK")

    assert (await client.read_session("cs_MARK")).status == "expired"
    assert [request.path for request in server.received] == [
        "/v1/checkout/sessions/cs_MARK/expire",
        "/v1/checkout/sessions/cs_MARK",
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


async def test_a_price_that_the_provider_does_not_have_is_none(server: CardStandIn, client: CardProvider) -> None:
    assert await client.read_price("price_MARK") is None
    server.objects["price_MARK"] = PRICE
    assert await client.read_price("price_MARK") == CardPrice(True, False, "EUR", 4900, None)


async def test_events_are_listed_page_by_page(server: CardStandIn, client: CardProvider) -> None:
    events = [{"id": f"evt_{number}", "object": "event", "data": {"object": {"x": [1]}}} for number in range(2)]
    server.objects["/v1/events"] = {"object": "list", "data": events, "has_more": False}

    assert await client.list_events(SINCE, ["invoice.paid", "checkout.session.completed"]) == events

    (request,) = server.received
    assert parse_qsl(request.query) == [
        ("created[gte]", str(int(SINCE.timestamp()))),
        ("types[0]", "invoice.paid"),
        ("types[1]", "checkout.session.completed"),
        ("limit", "100"),
    ]


async def test_a_list_of_events_without_an_end_is_read_so_far(server: CardStandIn, client: CardProvider) -> None:
    server.objects["/v1/events"] = {"object": "list", "data": [{"id": "evt_1"}], "has_more": True}

    with structlog.testing.capture_logs() as logs:
        assert len(await client.list_events(SINCE, ["invoice.paid"])) == 20
    assert [(each["event"], each["log_level"]) for each in logs] == [("card_events_left_out", "warning")]
    assert dict(parse_qsl(server.received[-1].query))["starting_after"] == "evt_1"


async def test_a_provider_without_a_list_of_events_has_none(client: CardProvider) -> None:
    assert await client.list_events(SINCE, ["invoice.paid"]) == []


async def test_another_object_than_was_asked_for_is_refused(server: CardStandIn, client: CardProvider) -> None:
    server.objects["sub_MARK"] = {**SUBSCRIPTION, "id": "sub_somebodyElses"}

    with pytest.raises(PaymentProviderUnavailable):
        await client.read_subscription("sub_MARK")


@pytest.mark.parametrize("fault", ["refused", "limited", "html", "html_body", "not_an_object", "redirect", "endless"])
async def test_nonsense_is_not_asked_for_twice(server: CardStandIn, client: CardProvider, fault: Fault) -> None:
    for number, call in enumerate(CALLS.values(), start=1):
        server.faults.append(fault)
        with pytest.raises(PaymentProviderUnavailable):
            await call(client)
        assert len(server.received) == number


@pytest.mark.parametrize("fault", ["lost", "half", "advised_500", "stored_500"])
async def test_a_read_is_repeated_after_a_lost_answer_or_a_failure(
    server: CardStandIn, client: CardProvider, fault: Fault
) -> None:
    server.objects["sub_MARK"] = SUBSCRIPTION
    server.faults.append(fault)

    assert (await client.read_subscription("sub_MARK")).status == "active"
    assert len(server.received) == 2


async def test_a_failure_that_lasts_is_asked_for_four_times(server: CardStandIn, client: CardProvider) -> None:
    server.faults += ["advised_500"] * 10

    with pytest.raises(PaymentProviderUnavailable):
        await client.read_subscription("sub_MARK")

    assert len(server.received) == 4


async def test_a_conflict_is_repeated_unless_the_provider_advises_against_it(
    server: CardStandIn, client: CardProvider
) -> None:
    server.objects["sub_MARK"] = SUBSCRIPTION
    server.faults.append("final_409")

    with pytest.raises(PaymentProviderUnavailable):
        await client.read_subscription("sub_MARK")

    assert len(server.received) == 1


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


async def test_a_secret_key_that_no_header_can_hold_is_unavailable_at_once(server: CardStandIn) -> None:
    provider = CardProvider(server.url, given_settings(card_secret_key=Secret("sk_MARK_\u00dc")))
    with structlog.testing.capture_logs() as logs, pytest.raises(PaymentProviderUnavailable):
        await provider.read_session("cs_MARK")
    assert [each["reason"] for each in logs] == ["unusable_key"]
    assert server.received == []
    await provider.aclose()


async def test_without_a_secret_key_nothing_is_sent(server: CardStandIn) -> None:
    provider = CardProvider(server.url, given_settings())

    assert not await provider.is_configured()
    with pytest.raises(PaymentProviderUnavailable):
        await provider.read_subscription("sub_MARK")
    assert server.received == []
    await provider.aclose()


@pytest.mark.parametrize("fault", ["refused", "lost", "html", "stored_500", "half", None])
async def test_nothing_logs_a_secret_a_reference_or_an_address(
    server: CardStandIn,
    fault: Fault | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The SDK would, if it is asked to by its environment or by the level of its logger."""
    monkeypatch.setattr("stripe._util.STRIPE_LOG", "debug")
    caplog.set_level(logging.DEBUG, logger="stripe")
    server.faults += [fault] * 4 if fault is not None else []
    provider = CardProvider(server.url, SETTINGS)
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
    assert server.received != []

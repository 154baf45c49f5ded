"""The client of the local provider: what it reads of a payment, and what it never says."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog
from support.billing.local_purchase import PRIVATE_KEY, PUBLIC_KEY, add_payment, set_payment
from support.outside.misbehaving_server import answer, dripping, misbehaving_server, silent
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.given_settings import given_settings

from soundmark.core.problems import PaymentNotVerified, PaymentProviderUnavailable
from soundmark.core.providers.flouci.client import LocalPayment, LocalPaymentMissing, LocalProvider
from soundmark.kit.crypto.secret import Secret

KEYS = {"local_public_key": Secret(PUBLIC_KEY), "local_secret_key": Secret(PRIVATE_KEY)}
SETTINGS = given_settings(**KEYS)
PAYMENT = "MARKpayment-of-the-test"
FAULTS = ["lost_answer", "half_body", "server_error", "rate_limited", "redirect", "endless", "html_as_json"]


@pytest.fixture
async def server(outside: RunningSandbox) -> RunningSandbox:
    """A server that the code under test calls."""
    await add_payment(outside, PAYMENT, "bco_1", amount=29_500)
    return outside


def url_of(server: RunningSandbox) -> str:
    return server.settings()["LOCAL_API_URL"]


@pytest.fixture
async def client(server: RunningSandbox) -> AsyncIterator[LocalProvider]:
    """The client under test."""
    provider = LocalProvider(url_of(server), SETTINGS)
    yield provider
    await provider.aclose()


async def test_a_payment_is_read_without_its_payer(server: RunningSandbox, client: LocalProvider) -> None:
    assert await client.verify(PAYMENT) == LocalPayment(
        is_success=True, status="SUCCESS", amount_minor=29_500, tracking_id="bco_1"
    )
    (call,) = await server.calls("local")
    assert call["path"] == f"/local/api/v2/verify_payment/{PAYMENT}"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": "success"}, ("success", 29_500, "bco_1")),
        ({"amount": "29500"}, ("SUCCESS", None, "bco_1")),
        ({"amount": True}, ("SUCCESS", None, "bco_1")),
        ({"amount": 29_500.5}, ("SUCCESS", None, "bco_1")),
        ({"developer_tracking_id": None}, ("SUCCESS", 29_500, None)),
        ({"developer_tracking_id": 7}, ("SUCCESS", 29_500, None)),
    ],
    ids=str,
)
async def test_amount_and_tracking_id_are_read_exactly_or_not_at_all(
    server: RunningSandbox, client: LocalProvider, changes: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """Whoever asked compares them: an amount as text is not the amount."""
    await set_payment(server, PAYMENT, answer={"amount": 29_500, **changes})

    payment = await client.verify(PAYMENT)

    assert (payment.status, payment.amount_minor, payment.tracking_id) == expected


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"success": false, "result": {"status": "FAILURE", "amount": 29500}}', "FAILURE"),
        (b'{"success": false, "result": {"message": "no"}}', ""),
        (b'{"success": false}', ""),
        (b'{"success": false, "result": "no"}', ""),
    ],
)
async def test_an_answer_without_success_is_no_success(body: bytes, status: str) -> None:
    payment = await verify_with(body)

    assert payment == LocalPayment(is_success=False, status=status, amount_minor=None, tracking_id=None)


async def verify_with(body: bytes, *, status: str = "200 OK", media_type: str = "application/json") -> LocalPayment:
    async with misbehaving_server(answer(body, status=status, media_type=media_type)) as server:
        provider = LocalProvider(server.url, SETTINGS)
        try:
            return await provider.verify(PAYMENT)
        finally:
            await provider.aclose()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"success": true}',
        b'{"success": "true", "result": {"status": "SUCCESS", "amount": 1}}',
        b'{"success": true, "result": {"amount": 1}}',
        b'{"success": true, "result": {"status": "SUCCESS"}}',
        b'{"success": true, "result": {"status": 7, "amount": 1}}',
        b'{"success": true, "success": true, "result": {"status": "SUCCESS", "amount": 1}}',
    ],
)
async def test_an_answer_without_the_documented_members_is_the_providers_failure(body: bytes) -> None:
    with pytest.raises(PaymentProviderUnavailable):
        await verify_with(body)


@pytest.mark.parametrize("media_type", ["text/html", "application/problem+json", ""])
async def test_an_answer_that_is_not_json_verifies_nothing(media_type: str) -> None:
    body = b'{"success": true, "result": {"status": "SUCCESS", "amount": 1, "developer_tracking_id": "bco_1"}}'

    with pytest.raises(PaymentNotVerified):
        await verify_with(body, media_type=media_type)


async def test_a_media_type_with_parameters_is_json() -> None:
    body = b'{"success": true, "result": {"status": "SUCCESS", "amount": 1}}'

    assert (await verify_with(body, media_type="application/json; charset=utf-8")).is_success


@pytest.mark.parametrize("status", ["401 Unauthorized", "429 Too Many", "500 Fault"])
async def test_a_refusal_is_the_providers_failure(status: str) -> None:
    with pytest.raises(PaymentProviderUnavailable):
        await verify_with(b'{"success": true}', status=status)


async def test_a_payment_that_the_provider_does_not_have_is_missing(client: LocalProvider) -> None:
    with pytest.raises(LocalPaymentMissing):
        await client.verify("MARKpayment-unknown")


@pytest.mark.parametrize("fault", FAULTS)
async def test_nothing_is_asked_for_twice(server: RunningSandbox, client: LocalProvider, fault: str) -> None:
    """The provider bans callers that ask in a loop."""
    await server.misbehave("local", fault)

    with pytest.raises(PaymentProviderUnavailable):
        await client.verify(PAYMENT)

    assert len(await server.calls("local")) == 1


@pytest.mark.parametrize("behaviour", [silent, dripping])
async def test_a_call_ends_at_its_deadline(behaviour: Any) -> None:
    async with misbehaving_server(behaviour) as server:
        provider = LocalProvider(server.url, SETTINGS, timeout_s=0.3)
        async with asyncio.timeout(5):
            with pytest.raises(PaymentProviderUnavailable):
                await provider.verify(PAYMENT)
        await provider.aclose()


@pytest.mark.parametrize("missing", KEYS)
async def test_without_both_keys_nothing_is_sent(server: RunningSandbox, missing: str) -> None:
    settings = given_settings(**{name: value for name, value in KEYS.items() if name != missing})
    provider = LocalProvider(url_of(server), settings)

    assert not await provider.is_configured()
    with pytest.raises(PaymentProviderUnavailable):
        await provider.verify(PAYMENT)
    assert await server.calls("local") == []
    await provider.aclose()


async def test_a_key_that_no_header_can_hold_is_unavailable(server: RunningSandbox) -> None:
    provider = LocalProvider(url_of(server), given_settings(**KEYS | {"local_public_key": Secret("MARK_\u00dc")}))
    with structlog.testing.capture_logs() as logs, pytest.raises(PaymentProviderUnavailable):
        await provider.verify(PAYMENT)
    assert [each["reason"] for each in logs] == ["unusable_key"]
    assert await server.calls("local") == []
    await provider.aclose()


@pytest.mark.parametrize("fault", ["refused", "lost_answer", "html", "server_error", None])
async def test_nothing_of_keys_payers_and_payments_is_logged(
    server: RunningSandbox, client: LocalProvider, fault: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    if fault is not None:
        await server.misbehave("local", fault, merge={"message": "MARK payer"})
    with structlog.testing.capture_logs() as logs:
        (result,) = await asyncio.gather(client.verify(PAYMENT), return_exceptions=True)

    assert isinstance(result, LocalPayment | PaymentProviderUnavailable | PaymentNotVerified)
    for text in (repr(result), repr(logs), *capfd.readouterr()):
        assert "MARK" not in text
        assert "payer" not in text

"""The client of the card provider, through its official SDK."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import stripe
import structlog

from soundmark.core.domain.billing.card import (
    CHECKOUT_KEY,
    OFFER_KEY,
    ORGANIZATION_KEY,
    CardPrice,
    CardSession,
    CardSubscription,
)
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.live.platform_settings import PlatformSettings
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.core.providers.pages import is_page_url
from soundmark.core.providers.stripe import shapes
from soundmark.core.providers.stripe.transport import CUSTOMER_MISSING, CallFailed, Transport
from soundmark.settings.registry import CardSettings

API_VERSION: Final = "2025-03-31.basil"  # API v1, "Versioning", 6.
CALL_TIMEOUT_S: Final = 10.0  # The whole call, repeated requests included.
_SESSION_MARGIN: Final = timedelta(minutes=5)  # The provider takes 24 hours at most, by its own clock.
_EVENTS_AT_ONCE: Final = 100
_LINES_AT_ONCE: Final = 100
_EVENT_PAGES_MAX: Final = 20
_INVALID: Final = 400
_NOT_FOUND: Final = 404
_log: Final = structlog.get_logger()

T = TypeVar("T")


class CardObjectMissing(Exception):
    """The card provider has no such object."""


class CardProvider:
    """Calls the card provider. The secret key is read anew for each call.

    Every method raises PaymentProviderUnavailable if the provider is not configured, refuses, cannot be reached within
    ten seconds, or does not answer as documented; a request that creates something may have created it. No error and
    no log line repeats a secret, a reference or a URL.
    """

    def __init__(
        self,
        api_url: str,
        settings: PlatformSettings,
        *,
        timeout_s: float = CALL_TIMEOUT_S,
        extra_ca_file: Path | None = None,
    ) -> None:
        self._api_url: Final = api_url
        self._settings: Final = settings
        self._timeout_s: Final = timeout_s
        self._transport: Final = Transport(extra_ca_file)
        self._sending_once: Final = Transport(extra_ca_file, sends_max=1)

    async def is_configured(self) -> bool:
        """Return whether the secret key is set."""
        return (await self._settings.read(CardSettings)).card_secret_key is not None

    async def create_session(
        self,
        checkout: Checkout,
        *,
        success_url: str,
        cancel_url: str,
        customer: str | None,
        customer_email: str | None,
        idempotency_keys: AsyncIterator[str],
    ) -> CardSession:
        """Open a page on which the checkout is paid; the result has its `url`.

        If the provider stored a failure under one idempotency key, the next one is used; without the customer, if it
        was deleted at the provider. The same key must come with the same arguments, and then leads to the same session.
        """
        buyer = _buyer(customer, customer_email)

        async def create(client: stripe.StripeClient) -> Any:
            nonlocal buyer
            async for key in idempotency_keys:
                params: Any = {**_session_params(checkout, success_url, cancel_url), **buyer}
                try:
                    return await client.v1.checkout.sessions.create_async(params, {"idempotency_key": key})
                except CallFailed as failed:
                    if failed.reason == CUSTOMER_MISSING:
                        buyer = _buyer(None, customer_email)
                    elif not failed.is_spent:
                        raise
            raise CallFailed("attempts_spent")

        try:
            session = await self._call(create, shapes.read_session)
        except CardObjectMissing:
            raise _fail("no_such_route", _NOT_FOUND) from None
        is_ours = session.client_reference_id == checkout.id and session.metadata.get(CHECKOUT_KEY) == checkout.id
        if not is_ours or session.url is None or not is_page_url(session.url):
            raise _fail("other_session")
        return session

    async def expire_session(self, reference: str) -> CardSession:
        """Close the page of a session, and return the session, which is open no more.

        The provider refuses if the session has expired already, or was completed on its page.

        Raises: CardObjectMissing.
        """

        async def expire(client: stripe.StripeClient) -> Any:
            try:
                return await client.v1.checkout.sessions.expire_async(reference)
            except CallFailed as failed:
                if failed.status != _INVALID:
                    raise
                return await client.v1.checkout.sessions.retrieve_async(reference)

        session = await self._call(expire, shapes.read_session)
        if session.reference != reference:
            raise _fail("other_session")
        if session.status not in {"expired", "complete"}:
            raise _fail("still_open")
        return session

    async def read_session(self, reference: str) -> CardSession:
        """Return a session.

        Raises: CardObjectMissing.
        """
        session = await self._call(
            lambda client: client.v1.checkout.sessions.retrieve_async(reference), shapes.read_session
        )
        if session.reference != reference:
            raise _fail("other_session")
        return session

    async def read_subscription(self, reference: str) -> CardSubscription:
        """Return a subscription with its latest invoice.

        The provider includes ten lines of an invoice, prorations first. If there are more and it is paid, a second call
        reads a hundred.

        Raises: CardObjectMissing.
        """
        subscription = await self._call(
            lambda client: client.v1.subscriptions.retrieve_async(reference, {"expand": ["latest_invoice"]}),
            shapes.read_subscription,
        )
        if subscription.reference != reference:
            raise _fail("other_subscription")
        invoice = subscription.latest_invoice
        if invoice is None or invoice.status != "paid" or not invoice.has_more_lines:
            return subscription
        params: Any = {"limit": _LINES_AT_ONCE}
        lines = await self._call(
            lambda client: client.v1.invoices.line_items.list_async(invoice.reference, params), shapes.read_lines
        )
        return replace(subscription, latest_invoice=replace(invoice, lines=lines))

    async def read_price(self, reference: str) -> CardPrice | None:
        """Return a price; None if the provider has no such price."""
        try:
            return await self._call(
                lambda client: client.v1.prices.retrieve_async(reference),
                lambda found: shapes.read_price(found, reference),
            )
        except CardObjectMissing:
            return None

    async def open_portal(self, customer: str, return_url: str) -> str:
        """Return the URL of a page on which a customer manages their subscriptions, for a short time."""
        params: Any = {"customer": customer, "return_url": return_url}
        try:
            url = await self._call(
                lambda client: client.v1.billing_portal.sessions.create_async(params), shapes.read_portal_url
            )
        except CardObjectMissing:
            raise _fail("no_such_route", _NOT_FOUND) from None
        if not is_page_url(url):
            raise _fail("other_page")
        return url

    async def list_events(self, created_since: datetime, types: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the events of these types since then, newest first; none if the provider has no list of events.

        Not more than 2,000 are read; a warning says that there are more. What is in an event is not checked.
        """
        params: dict[str, Any] = {
            "created": {"gte": int(created_since.timestamp())},
            "types": list(types),
            "limit": _EVENTS_AT_ONCE,
        }
        listed: list[Mapping[str, Any]] = []
        for _ in range(_EVENT_PAGES_MAX):
            try:
                page = await self._list_page(params)
            except CardObjectMissing:
                break
            listed += page.data
            if not page.has_more or not page.data:
                break
            params["starting_after"] = page.last_id
        else:
            _log.warning("card_events_left_out", read_count=len(listed))
        return listed

    async def check_access(self) -> None:
        """List one price, without sending a request twice, to learn whether the provider accepts the secret key.

        Raises: CallFailed, whose reason may also be `not_configured`, `deadline`, `malformed` or `sdk`.
        """
        params: Any = {"limit": 1}
        await self._ask(lambda client: client.v1.prices.list_async(params), shapes.read_prices, self._sending_once)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.close_async()
        await self._sending_once.close_async()

    async def _list_page(self, params: Any) -> shapes.EventPage:
        return await self._call(lambda client: client.v1.events.list_async(params), shapes.read_events)

    async def _call(
        self, request: Callable[[stripe.StripeClient], Awaitable[Any]], read: Callable[[Mapping[str, Any]], T]
    ) -> T:
        """Make one call within the deadline and read what it returns.

        Raises: CardObjectMissing; PaymentProviderUnavailable.
        """
        try:
            return await self._ask(request, read, self._transport)
        except CallFailed as failed:
            if failed.status == _NOT_FOUND:
                raise CardObjectMissing from None
            raise _fail(failed.reason, failed.status) from None

    async def _ask(
        self,
        request: Callable[[stripe.StripeClient], Awaitable[Any]],
        read: Callable[[Mapping[str, Any]], T],
        transport: Transport,
    ) -> T:
        """Do the same as `_call`.

        Raises: CallFailed.
        """
        secret = (await self._settings.read(CardSettings)).card_secret_key
        if secret is None:
            raise CallFailed("not_configured")
        client = stripe.StripeClient(
            secret.reveal(),
            stripe_version=API_VERSION,
            base_addresses={"api": self._api_url},
            http_client=transport,
            max_network_retries=0,
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await request(client)
            return read(found.to_dict())
        except TimeoutError:
            raise CallFailed("deadline") from None
        except shapes.ShapeInvalid:
            raise CallFailed("malformed") from None
        except stripe.StripeError:
            raise CallFailed("sdk") from None  # Its text repeats the response.


def _session_params(checkout: Checkout, success_url: str, cancel_url: str) -> dict[str, Any]:
    """Return the parameters of a session; they depend on nothing that changes between two attempts."""
    assert checkout.price_reference is not None, "a checkout of the card provider has a price"
    metadata = {
        CHECKOUT_KEY: checkout.id,
        ORGANIZATION_KEY: checkout.organization_id,
        OFFER_KEY: checkout.offer_id,
    }
    return {
        "mode": "subscription",
        "line_items": [{"price": checkout.price_reference, "quantity": 1}],
        "client_reference_id": checkout.id,
        "metadata": metadata,
        "subscription_data": {"metadata": metadata},  # The provider does not copy the session's metadata.
        "success_url": success_url,
        "cancel_url": cancel_url,
        "expires_at": int((checkout.expires_at - _SESSION_MARGIN).timestamp()),
    }


def _buyer(customer: str | None, customer_email: str | None) -> dict[str, str]:
    """Return the parameters that name who buys: a known customer, or the address to begin with."""
    if customer is not None:
        return {"customer": customer}
    return {} if customer_email is None else {"customer_email": customer_email}


def _fail(reason: str, status: int | None = None) -> PaymentProviderUnavailable:
    """Log why the provider failed, in our own words, and return the problem to raise."""
    _log.warning("card_call_failed", reason=reason, status=status)
    return PaymentProviderUnavailable()

"""Signing a receiver's event with the integration's secret and forwarding it to Audience, byte for byte."""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Final, Self, TypeAlias

import httpx2

from soundmark_sdk.clock import Clock
from soundmark_sdk.delivering import Deliverer, DeliveryLimits, Outcome
from soundmark_sdk.loop_thread import LoopThread
from soundmark_sdk.publisher.events import check_event
from soundmark_sdk.shapes import INTEGRATION_ID

_SECRET: Final = re.compile(r"xhm_[A-Za-z0-9_-]{43}")

# The secret (`xhm_…`), or a function that returns the one to use now: after a rotation, the new one.
HmacSecret: TypeAlias = str | Callable[[], str]


class AsyncPublisher:
    """Forwards events of one integration, for one event loop; safe for any number of concurrent events.

    `audience_url` is the service's public address: Core forwards `/v1/events` as it is, and Audience takes it as well.
    The secret is asked for only once an event may be signed, goes nowhere, and is never shown.
    """

    def __init__(  # noqa: PLR0913 - each is a setting, and named
        self,
        audience_url: str,
        integration_id: str,
        hmac_secret: HmacSecret,
        *,
        limits: DeliveryLimits | None = None,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError for an address that is not https, no integration's id, or what is no secret."""
        if INTEGRATION_ID.fullmatch(integration_id) is None:
            raise ValueError("That is no integration's id.")
        if isinstance(hmac_secret, str):
            _checked(hmac_secret)
        self.integration_id: Final = integration_id

        def authorise(body: bytes) -> Mapping[str, str]:
            secret = hmac_secret if isinstance(hmac_secret, str) else hmac_secret()
            return {"X-Svc-Signature": sign(body, secret)}

        self._deliverer = Deliverer(
            audience_url,
            authorise,
            limits=limits or DeliveryLimits(),
            allow_insecure_http=allow_insecure_http,
            transport=transport,
            clock=clock,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._deliverer.address!r}, {self.integration_id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed publisher forwards nothing any more."""
        await self._deliverer.aclose()

    async def forward(self, body: bytes) -> Outcome:
        """Forward the bytes of an event as they are, signed, and return what became of it.

        Retries send the same bytes, so an event whose answer was lost is answered `duplicate` and counts once.

        Raises: DeliveryFailure: `event_invalid` before anything is signed for what is no event of this integration.
            RuntimeError after `aclose`.
        """
        check_event(body, self.integration_id)
        return await self._deliverer.deliver(body)


class Publisher:
    """The same for blocking code, safe to share between threads; use it as a context manager, or `close` it."""

    def __init__(  # noqa: PLR0913 - each is a setting, and named
        self,
        audience_url: str,
        integration_id: str,
        hmac_secret: HmacSecret,
        *,
        limits: DeliveryLimits | None = None,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError as `AsyncPublisher` does."""
        self._publisher = AsyncPublisher(
            audience_url,
            integration_id,
            hmac_secret,
            limits=limits,
            allow_insecure_http=allow_insecure_http,
            transport=transport,
            clock=clock,
        )
        self._loop = LoopThread("publisher", end=self._publisher.aclose)

    def __repr__(self) -> str:
        return repr(self._publisher).removeprefix("Async")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; closing again does nothing."""
        self._loop.close()

    def forward(self, body: bytes) -> Outcome:
        """See `AsyncPublisher`. RuntimeError after `close`."""
        return self._loop.run(lambda: self._publisher.forward(body))


def sign(body: bytes, hmac_secret: str) -> str:
    """Return the `X-Svc-Signature` of these bytes: the key is the secret's whole text, prefix included.

    Raises: ValueError for what is no secret.
    Source: wire contract, section 6.
    """
    return "sha256=" + hmac.new(_checked(hmac_secret).encode("ascii"), body, hashlib.sha256).hexdigest()


def _checked(secret: str) -> str:
    if _SECRET.fullmatch(secret) is None:
        raise ValueError("An HMAC secret is xhm_ and 43 characters.")
    return secret

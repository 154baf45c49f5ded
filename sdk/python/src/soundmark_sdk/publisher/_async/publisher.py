"""Sign a receiver's event with the integration's secret and forward it to Audience, byte for byte."""

from collections.abc import Callable, Mapping
from typing import Final, Self, TypeAlias

import httpx2

from soundmark_sdk.clock import Clock
from soundmark_sdk.delivery import Deliverer, DeliveryLimits, Outcome
from soundmark_sdk.http_exchange import ServiceConnection
from soundmark_sdk.members import INTEGRATION_ID
from soundmark_sdk.publisher.events import check_event
from soundmark_sdk.publisher.signing import check_secret, sign
from soundmark_sdk.runners import AsyncRunner

# The secret (`xhm_…`), or a function that returns the current one, for example after a rotation.
HmacSecret: TypeAlias = str | Callable[[], str]


class AsyncPublisher:
    """A forwarder of one integration's events. Use it as a context manager, or close it.

    `Publisher` is for blocking code and safe to share between threads; `AsyncPublisher` is for the tasks of one event
    loop.

    `audience_url` is the service's public address: Core passes `/v1/events` on unchanged, and Audience accepts it as
    well. The secret is read only when an event is about to be signed. It is never sent or shown.
    """

    def __init__(
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
        """Raises: ValueError for an address that is not https, or what is not an integration's id or a secret."""
        if INTEGRATION_ID.fullmatch(integration_id) is None:
            raise ValueError("That is not the id of an integration.")
        if isinstance(hmac_secret, str):
            check_secret(hmac_secret)

        def authorise(body: bytes) -> Mapping[str, str]:
            secret = hmac_secret if isinstance(hmac_secret, str) else hmac_secret()
            return {"X-Svc-Signature": sign(body, secret)}

        connection = ServiceConnection(
            audience_url, owner="publisher", allow_insecure_http=allow_insecure_http, transport=transport
        )
        self.integration_id: Final = integration_id
        self._address = connection.base_url
        self._deliverer = Deliverer(connection, authorise, limits=limits or DeliveryLimits(), clock=clock)
        self._runner = AsyncRunner("publisher", end=connection.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r}, {self.integration_id!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed publisher forwards nothing."""
        await self._runner.aclose()

    async def forward(self, body: bytes) -> Outcome:
        """Sign the bytes of an event, forward them unchanged, and return the event's outcome.

        Retries send the same bytes, so an event whose answer was lost is answered `duplicate` and counts once.

        Raises: DeliveryFailure, which is `event_invalid` before anything is signed when the bytes are not an event of
            this integration. RuntimeError after closing.
        """
        check_event(body, self.integration_id)
        return await self._runner.run(self._deliverer.deliver, body)

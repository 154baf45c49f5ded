"""Reporting measurements from a receiver to its publisher's backend, for asyncio and for blocking code."""

import re
from collections.abc import Callable, Mapping
from typing import Final, Self, TypeAlias

import httpx2

from soundmark_sdk.clock import Clock
from soundmark_sdk.delivering import Deliverer, DeliveryLimits, Outcome
from soundmark_sdk.loop_thread import LoopThread
from soundmark_sdk.measuring import Measurement

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,8192}")

# The reporting token, or a function that returns the one to use now.
ReportingToken: TypeAlias = str | Callable[[], str]


class AsyncReporter:
    """Reports to one publisher's backend, for one event loop; safe for any number of concurrent reports.

    `reporting_token` is what the publisher gives a receiver whose person agreed (`soundmark_sdk.publisher`), at most
    five minutes old: mostly a function, asked before each attempt. It goes over https only (plain http: loopback) and
    is never shown; redirects are not followed, and no cookie is kept.
    """

    def __init__(  # noqa: PLR0913 - each is a setting with a default, given by name
        self,
        base_url: str,
        reporting_token: ReportingToken,
        *,
        limits: DeliveryLimits | None = None,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError for an address that is not https, or an impossible token."""

        def authorise(_: bytes) -> Mapping[str, str]:
            token = reporting_token if isinstance(reporting_token, str) else reporting_token()
            return {"Authorization": f"Bearer {_checked(token)}"}

        if isinstance(reporting_token, str):
            _checked(reporting_token)
        self._deliverer = Deliverer(
            base_url,
            authorise,
            limits=limits or DeliveryLimits(),
            allow_insecure_http=allow_insecure_http,
            transport=transport,
            clock=clock,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._deliverer.address!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed reporter reports nothing any more."""
        await self._deliverer.aclose()

    async def report(self, measurement: Measurement | bytes) -> Outcome:
        """Deliver a measurement, or the `body` of one that was kept, and return what became of it.

        Repeating it is safe, also after any failure: it is the same event.

        Raises: DeliveryFailure. RuntimeError after `aclose`. ValueError for an impossible token.
        """
        return await self._deliverer.deliver(measurement if isinstance(measurement, bytes) else measurement.body)


class Reporter:
    """The same for blocking code, safe to share between threads; use it as a context manager, or `close` it."""

    def __init__(  # noqa: PLR0913 - each is a setting with a default, given by name
        self,
        base_url: str,
        reporting_token: ReportingToken,
        *,
        limits: DeliveryLimits | None = None,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError as `AsyncReporter` does."""
        self._reporter = AsyncReporter(
            base_url,
            reporting_token,
            limits=limits,
            allow_insecure_http=allow_insecure_http,
            transport=transport,
            clock=clock,
        )
        self._loop = LoopThread("reporter", end=self._reporter.aclose)

    def __repr__(self) -> str:
        return repr(self._reporter).removeprefix("Async")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; closing again does nothing."""
        self._loop.close()

    def report(self, measurement: Measurement | bytes) -> Outcome:
        """See `AsyncReporter`. RuntimeError after `close`."""
        return self._loop.run(lambda: self._reporter.report(measurement))


def _checked(token: str) -> str:
    if _TOKEN.fullmatch(token) is None:
        raise ValueError("The reporting token must be 1 to 8192 printable ASCII characters without spaces.")
    return token

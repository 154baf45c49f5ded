# Generated from `../_async/reporter.py` by `make_blocking.py`: change that file, then run this program.
"""Report measurements to the publisher's backend."""

import re
from collections.abc import Callable, Mapping
from typing import Final, Self, TypeAlias

import httpx2

from soundmark_sdk.clock import Clock
from soundmark_sdk.delivery import Deliverer, DeliveryLimits, Outcome
from soundmark_sdk.http_exchange import ServiceConnection
from soundmark_sdk.measuring import Measurement
from soundmark_sdk.runners import BlockingRunner

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,8192}")

# The reporting token, or a function that returns the current one.
ReportingToken: TypeAlias = str | Callable[[], str]


class Reporter:
    """A reporter to one publisher's backend. Use it as a context manager, or close it.

    `Reporter` is for blocking code and safe to share between threads; `AsyncReporter` is for the tasks of one event
    loop.

    The publisher gives a reporting token to each receiver whose person agreed (`soundmark_sdk.publisher`). It lives for
    at most five minutes, so `reporting_token` is usually a function, which is called before each attempt. The token
    goes over https only (plain http: loopback) and is never shown; redirects are not followed and cookies not kept.
    """

    def __init__(
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
            return {"Authorization": f"Bearer {_check_token(token)}"}

        if isinstance(reporting_token, str):
            _check_token(reporting_token)
        connection = ServiceConnection(
            base_url, owner="reporter", allow_insecure_http=allow_insecure_http, transport=transport
        )
        self._address = connection.base_url
        self._deliverer = Deliverer(connection, authorise, limits=limits or DeliveryLimits(), clock=clock)
        self._runner = BlockingRunner("reporter", end=connection.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A closed reporter reports nothing."""
        self._runner.close()

    def report(self, measurement: Measurement | bytes) -> Outcome:
        """Deliver a measurement, or the `body` of one that was kept, and return its outcome.

        Repeating it is safe, also after any failure: it is the same event.

        Raises: DeliveryFailure. RuntimeError after closing. ValueError for an impossible token.
        """
        body = measurement if isinstance(measurement, bytes) else measurement.body
        return self._runner.run(self._deliverer.deliver, body)


def _check_token(token: str) -> str:
    if _TOKEN.fullmatch(token) is None:
        raise ValueError("The reporting token must be 1 to 8192 printable ASCII characters without spaces.")
    return token

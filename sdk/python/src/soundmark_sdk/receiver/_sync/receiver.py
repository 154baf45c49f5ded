# Generated from `../_async/receiver.py` by `make_blocking.py`: change that file, then run this program.
"""Resolve broadcast tokens."""

from collections.abc import Iterable
from typing import Self

import httpx2

from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.http_exchange import ServiceConnection
from soundmark_sdk.offline_pack import OfflinePack, OfflineResolution
from soundmark_sdk.receiver.abuse_reports import AbuseCategory, write_report
from soundmark_sdk.receiver.resolver import Resolver
from soundmark_sdk.records import Resolution
from soundmark_sdk.runners import BlockingRunner
from soundmark_sdk.transparency.policy import LogPolicy


class Receiver:
    """A receiver of one service. Use it as a context manager, or close it.

    `Receiver` is for blocking code and safe to share between threads; `AsyncReceiver` is for the tasks of one event
    loop. Keep one for as long as the program listens, because it caches keys and connections.

    `timeout_s` covers each request from connecting to the last byte. `attempts_max` and `retry_wait_max_s` limit one
    `resolve` with its retries. Pass a `transport` for a proxy or another certificate authority; the proxies of the
    environment are not used. With `require_logged`, an answer is returned only once the transparency log proves
    that the Code was issued in public; the first resolution of a Code then waits up to ten seconds for it. While the
    service cannot be reached, `packs` answer, each until it ends; with `require_logged`, those alone that have a proof.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_s: float = 5.0,
        attempts_max: int = 3,
        retry_wait_max_s: float = 10.0,
        require_logged: LogPolicy | None = None,
        packs: Iterable[OfflinePack] = (),
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError for an address that is not https (plain http: loopback only), or an impossible limit."""
        connection = ServiceConnection(
            base_url, owner="receiver", allow_insecure_http=allow_insecure_http, transport=transport
        )
        self._resolver = Resolver(
            connection,
            SystemClock() if clock is None else clock,
            timeout_s=timeout_s,
            attempts_max=attempts_max,
            retry_wait_max_s=retry_wait_max_s,
            require_logged=require_logged,
            packs=packs,
        )
        self._runner = BlockingRunner("receiver", end=connection.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A call that still waits in another thread gets a RuntimeError."""
        self._runner.close()

    def resolve(self, token: str) -> Resolution | OfflineResolution:
        """Return the verified intent behind a broadcast token (`Frame.token`).

        It is an `OfflineResolution`, and nobody knows whether the Code was revoked since its `as_of`, if the service
        cannot be reached (no answer in time, 502, 503 or 504) and a pack answers. Without packs it never is.

        Repeating it is safe: resolving changes nothing at the service.

        Raises: ReceiverFailure, and nothing else, when there is no verified intent. A text that cannot be a token is
            `code_unavailable` without a request. RuntimeError after closing.
        Source: API v1, "Receiver-facing"; wire contract, sections 4 and 12; details, points A23 to A26.
        """
        return self._runner.run(self._resolver.resolve, token)

    def add_pack(self, pack: OfflinePack) -> None:
        """Keep one more pack, usually a newer one: a Code that it leaves out is no longer answered from older ones.

        Raises: RuntimeError after closing.
        """
        self._runner.run(self._resolver.add_pack, pack)

    def report_abuse(self, token: str, category: AbuseCategory, text: str = "", *, contact: str | None = None) -> None:
        """Report a Code that harms people to the operator of the service.

        `text` of up to 2,000 characters says what happened, `contact` of up to 254 how to reach the person, if they
        wish. It is sent once: a failure of the network leaves open whether it arrived.

        Raises: ReceiverFailure if the service did not say that it received the report. ValueError for a text or a
            contact that is too long. RuntimeError after closing.
        Source: contract, section 13.
        """
        report = write_report(token, category, text, contact)
        self._runner.run(self._resolver.report_abuse, report)

"""The client without asyncio in sight."""

from typing import Self

import httpx2

from soundmark_sdk.client.async_client import AsyncClient
from soundmark_sdk.client.blocking_groups import Groups
from soundmark_sdk.client.exchange import Credential
from soundmark_sdk.client.recovery import RecoveryStore
from soundmark_sdk.client.sender import BlockingSender
from soundmark_sdk.clock import Clock


class Client(Groups):
    """A client of one service with one credential for blocking code, safe to share between threads.

    It runs an `AsyncClient` on an event loop in a thread of its own, so that a limit holds for a whole request; the
    settings are those of `AsyncClient`. Use it as a context manager, or `close` it.
    """

    def __init__(  # noqa: PLR0913 - each is a setting with a default, given by name
        self,
        base_url: str,
        credential: Credential,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        recovery: RecoveryStore | None = None,
        timeout_s: float = 15.0,
        download_timeout_s: float = 300.0,
        attempts_max: int = 6,
        retry_wait_max_s: float = 30.0,
        allow_insecure_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises: ValueError as `AsyncClient` does."""
        self._client = AsyncClient(
            base_url,
            credential,
            organization_id=organization_id,
            project_id=project_id,
            recovery=recovery,
            timeout_s=timeout_s,
            download_timeout_s=download_timeout_s,
            attempts_max=attempts_max,
            retry_wait_max_s=retry_wait_max_s,
            allow_insecure_http=allow_insecure_http,
            transport=transport,
            clock=clock,
        )
        super().__init__(BlockingSender(self._client._sender))  # noqa: SLF001 - two halves of one client

    def __repr__(self) -> str:
        return repr(self._client).removeprefix("Async")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; closing again does nothing.

        Whoever still waits for an answer gets the RuntimeError of a closed client.
        """
        self._sender.close()

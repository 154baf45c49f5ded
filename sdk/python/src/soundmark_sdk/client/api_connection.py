"""Send calls to the service's API with a credential."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import BinaryIO, Final, TypeAlias

import httpx2

from soundmark_sdk.client.calls import Call
from soundmark_sdk.client.content_digest import ContentDigest
from soundmark_sdk.client.failures import AnswerMalformed, ServiceUnreachable
from soundmark_sdk.client.problems import read_problem
from soundmark_sdk.clock import Clock
from soundmark_sdk.http_exchange import BodyRefused, NoAnswer, Response, ServiceConnection

# A batch of 100 Codes, each with its intent (16 KiB at most) twice: 3.2 MiB and their other members.
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024

_CREDENTIAL: Final = re.compile(r"[\x21-\x7e]{1,8192}")

Credential: TypeAlias = str | Callable[[], str]
Progress: TypeAlias = Callable[[int, int | None], None]


class ApiConnection:
    """A connection to the API of one service, with one credential that nothing shows, or with none."""

    def __init__(self, connection: ServiceConnection, credential: Credential | None, clock: Clock) -> None:
        """Raises: ValueError for an impossible credential."""
        self._connection: Final = connection
        self._credential: Final = credential
        self._clock: Final = clock
        if isinstance(credential, str):
            self.read_credential()

    async def close(self) -> None:
        """Close the connections and refuse further calls."""
        await self._connection.close()

    def check_open(self) -> None:
        """Refuse calls after `close`.

        Raises: RuntimeError.
        """
        self._connection.check_open()

    def read_credential(self) -> str:
        """Return the credential for the next request.

        Raises: ValueError, without the credential, when there is none or it cannot stand in a header.
        """
        if self._credential is None:
            raise ValueError("This call needs a credential.")
        credential = self._credential if isinstance(self._credential, str) else self._credential()
        if _CREDENTIAL.fullmatch(credential) is None:
            raise ValueError("The credential must be 1 to 8192 printable ASCII characters without spaces.")
        return credential

    async def fetch(self, call: Call, *, timeout_s: float) -> bytes:
        """Return the body of a successful answer, read within `timeout_s` seconds and `ANSWER_BYTES_MAX` bytes.

        Raises: ApiProblem, ServiceUnreachable, AnswerMalformed. ValueError for an impossible credential.
        """
        async with self._exchange(call, timeout_s) as response:
            return await response.read(ANSWER_BYTES_MAX)

    async def fetch_location(self, call: Call, *, timeout_s: float) -> str:
        """Return the `Location` of a successful answer, or an empty text if it has none.

        Raises: what `fetch` raises.
        """
        async with self._exchange(call, timeout_s) as response:
            await response.read(ANSWER_BYTES_MAX)
            return response.headers.get("location", "")

    async def download(self, call: Call, into: BinaryIO, *, on_progress: Progress | None, timeout_s: float) -> int:
        """Write the body of a successful answer into a file as it arrives, and return its size in bytes.

        After a failure the file may hold a part of the body. `on_progress` receives the number of bytes so far and the
        number of all bytes, where the service says it.

        Raises: what `fetch` raises, and what the file raises.
        """
        taken = 0
        digest = ContentDigest()

        def take(chunk: bytes) -> None:
            nonlocal taken
            into.write(chunk)
            taken += len(chunk)
            if call.is_digested:
                digest.update(chunk)
            if on_progress is not None:
                on_progress(taken, response.length)

        async with self._exchange(call, timeout_s) as response:
            await response.stream(take)
            if call.is_digested:
                digest.compare(response.headers)
        return taken

    @asynccontextmanager
    async def _exchange(self, call: Call, timeout_s: float) -> AsyncIterator[Response]:
        """Send a call and yield its response, if that is a success with a plain body."""
        credential = self.read_credential() if call.has_credential else None
        headers = _make_headers(call, credential)
        try:
            async with self._connection.send(
                call.method, call.write_target(), headers, call.body, timeout_s=timeout_s
            ) as response:
                await self._require_success(response, credential)
                yield response
        except NoAnswer as error:
            raise ServiceUnreachable(error.explanation, was_sent=error.was_sent) from None
        except BodyRefused as error:
            raise AnswerMalformed(f"The service's answer cannot be read: {error}") from None

    async def _require_success(self, response: Response, credential: str | None) -> None:
        if response.is_encoded:
            raise AnswerMalformed("The service's answer is encoded, although the request asked for a plain one.")
        if httpx2.codes.is_error(response.status):
            raise await read_problem(response, credential, self._clock.now())
        if not httpx2.codes.is_success(response.status):
            raise AnswerMalformed("The service answered with a redirect, which is never followed.")


def _make_headers(call: Call, credential: str | None) -> dict[str, str]:
    typed = {} if call.body is None else {"Content-Type": "application/json"}
    authorized = {} if credential is None else {"Authorization": f"Bearer {credential}"}
    return {
        # The second, because a refusal is a problem document, whatever the request asked for.
        "Accept": f"{call.accept}, application/problem+json;q=0.1",
        **authorized,
        **typed,
        **call.headers,
    }

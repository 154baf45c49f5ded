"""The client of the Audio component."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import Final

from soundmark.kit.http.outbound.private_call import PrivateChannel, PrivateRequest
from soundmark.wire.private.audio import RENDER, Protocol, RenderRequest

_AHEAD_COUNT: Final = 4  # For each row of frames: while one is rendered, others are on the way there or back.
_OF_ROWS_COUNT: Final = 16  # For all rows, so that a single WAV file never waits for more than these.


class AudioChannel:
    """Renders frames by calling the Audio component."""

    def __init__(self, channel: PrivateChannel) -> None:
        self._channel: Final = channel
        self._of_rows: Final = asyncio.Semaphore(_OF_ROWS_COUNT)

    async def render(self, frame: str, protocol: Protocol, *, request_id: str) -> bytes:
        """Return the WAV file of one frame: mono, 48 kHz, 16-bit PCM.

        Raises: AudioUnavailable if the component is down or too slow, or if the response is not a WAV file.
        """
        body = RenderRequest(frame=frame, protocol=protocol)
        response = await self._channel.fetch(RENDER, PrivateRequest(request_id=request_id, body=body))
        wav = response.body
        if wav[:4] != b"RIFF" or wav[8:12] != b"WAVE":
            raise self._channel.fail("malformed")
        return wav

    async def render_row(
        self, frames: Iterable[str], protocol: Protocol, *, request_id: str
    ) -> AsyncGenerator[bytes, None]:
        """Yield the WAV files of many frames in order, rendering a few ahead. The consumer must close the generator.

        Raises: AudioUnavailable, as `render` does for each.
        """
        ahead: deque[asyncio.Task[bytes]] = deque()
        try:
            for frame in frames:
                ahead.append(asyncio.create_task(self._render_of_row(frame, protocol, request_id)))
                if len(ahead) == _AHEAD_COUNT:
                    yield await ahead.popleft()
            while ahead:
                yield await ahead.popleft()
        finally:
            for rendering in ahead:
                rendering.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _render_of_row(self, frame: str, protocol: Protocol, request_id: str) -> bytes:
        async with self._of_rows:
            return await self.render(frame, protocol, request_id=request_id)

    async def is_ready(self) -> bool:
        """Return whether the component is ready."""
        return await self._channel.is_ready()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._channel.aclose()

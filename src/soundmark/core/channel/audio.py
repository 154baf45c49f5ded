"""The audio component, in Core's words."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from http import HTTPStatus
from typing import Final, Literal

import structlog

from soundmark.core.problems import AudioUnavailable
from soundmark.kit.private_call import PrivateCallFailed, PrivateChannel

Protocol = Literal[3, 4, 5]

WAV_TYPE: Final = "audio/wav"
_AHEAD_COUNT: Final = 4  # Of one row of frames: while one is rendered, others are on their way to and from there.
_OF_ROWS_COUNT: Final = 16  # Of all rows: a quarter of the component's queue. The rest is for who asks for one WAV.
_log: Final = structlog.get_logger()


class AudioChannel:
    """Renders frames by asking the audio component."""

    def __init__(self, channel: PrivateChannel) -> None:
        self._channel: Final = channel
        self._of_rows: Final = asyncio.Semaphore(_OF_ROWS_COUNT)

    async def render(self, frame: str, protocol: Protocol, *, request_id: str) -> bytes:
        """The WAV of one frame: mono, 48 kHz, 16-bit PCM.

        Raises: AudioUnavailable when the component is down, late or busy, and for any answer that is no WAV.
        """
        try:
            answer = await self._channel.post("/render", {"frame": frame, "protocol": protocol}, request_id=request_id)
        except PrivateCallFailed as error:
            _log.warning("audio_call_failed", reason=error.reason)
            raise AudioUnavailable from None
        is_wav = answer.media_type == WAV_TYPE and answer.body[:4] == b"RIFF" and answer.body[8:12] == b"WAVE"
        if answer.status != HTTPStatus.OK or not is_wav:
            _log.warning("audio_call_failed", reason="refused", status=answer.status)
            raise AudioUnavailable
        return answer.body

    async def render_row(
        self, frames: Iterable[str], protocol: Protocol, *, request_id: str
    ) -> AsyncGenerator[bytes, None]:
        """The WAVs of many frames in their order, a few of them rendered ahead. To be closed by whoever takes them.

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
        """Whether the component is ready."""
        return await self._channel.is_ready()

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._channel.aclose()

"""The audio component, in Core's words."""

from http import HTTPStatus
from typing import Final, Literal

import structlog

from soundmark.core.problems import AudioUnavailable
from soundmark.kit.private_call import PrivateCallFailed, PrivateChannel

Protocol = Literal[3, 4, 5]

WAV_TYPE: Final = "audio/wav"
_log: Final = structlog.get_logger()


class AudioChannel:
    """Renders frames by asking the audio component."""

    def __init__(self, channel: PrivateChannel) -> None:
        self._channel: Final = channel

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

    async def is_ready(self) -> bool:
        """Whether the component is ready."""
        return await self._channel.is_ready()

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._channel.aclose()

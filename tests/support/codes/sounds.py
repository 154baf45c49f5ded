"""The sound of a Code as Core renders it, for browsers and decoders under test."""

from soundmark.audio.synthesis import render_wav
from soundmark.wire.private.audio import Protocol


def render_token(token: str, protocol: Protocol = 4) -> bytes:
    """Return the WAV file of a broadcast token."""
    return render_wav(f"XRC1:{token}", protocol)

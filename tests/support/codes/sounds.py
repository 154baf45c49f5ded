"""The sound of a Code as Core renders it, for browsers and decoders under test."""

from soundmark.audio.render import Renderer
from soundmark.wire.private.audio import Protocol


def render_token(token: str, protocol: Protocol = 4) -> bytes:
    """Return the WAV file of a broadcast token."""
    renderer = Renderer()
    try:
        return renderer.render(f"XRC1:{token}", protocol)
    finally:
        renderer.close()

"""The sound of a frame at a level, as the samples that an output takes."""

import io
import wave
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from soundmark.audio.render import SAMPLE_RATE_HZ, Renderer
from soundmark.wire.private.audio import Protocol

RATE_HZ: Final = SAMPLE_RATE_HZ
SAMPLE_BYTES: Final = 2
# A rendered sound peaks at half of full scale.
DEFAULT_LEVEL_DBFS: Final = -6.0
_RENDERED_PEAK_DBFS: Final = 20 * float(np.log10(0.5))
_FULL_SCALE: Final = 32767
_KEPT_MAX: Final = 64

RenderSound: TypeAlias = Callable[[str], bytes]


def make_renderer(protocol: Protocol, level_dbfs: float) -> RenderSound:
    """Return a function from a frame to its sound: mono, 48 kHz, 16 bits, little-endian, its peak at `level_dbfs`."""
    gain = 1.0 if level_dbfs == DEFAULT_LEVEL_DBFS else 10 ** ((level_dbfs - _RENDERED_PEAK_DBFS) / 20)

    @lru_cache(maxsize=_KEPT_MAX)
    def render(frame: str) -> bytes:
        renderer = Renderer()
        try:
            wav = renderer.render(frame, protocol)
        finally:
            renderer.close()
        with wave.open(io.BytesIO(wav), "rb") as reader:
            samples = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
        if gain == 1.0:
            return samples.tobytes()
        scaled = np.clip(np.rint(samples * gain), -_FULL_SCALE, _FULL_SCALE)
        return scaled.astype("<i2").tobytes()

    return render

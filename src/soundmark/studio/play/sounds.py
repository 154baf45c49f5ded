"""The sound of a frame at a level, as the samples that an output takes."""

import io
import wave
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from soundmark.audio.synthesis import SAMPLE_RATE_HZ, render_wav
from soundmark.wire.private.audio import Protocol

RATE_HZ: Final = SAMPLE_RATE_HZ
SAMPLE_BYTES: Final = 2
# That of a rendered sound, whose peak is below half of full scale.
DEFAULT_LEVEL_DBFS: Final = -6.0
_FULL_SCALE: Final = 32767
_KEPT_MAX: Final = 64

RenderSound: TypeAlias = Callable[[str], bytes]


def make_renderer(protocol: Protocol, level_dbfs: float) -> RenderSound:
    """Return a function from a frame to its sound, whose peak is below `level_dbfs`.

    The sound is mono, 48 kHz, 16 bits, little-endian.
    """
    gain = 10 ** ((level_dbfs - DEFAULT_LEVEL_DBFS) / 20)

    @lru_cache(maxsize=_KEPT_MAX)
    def render(frame: str) -> bytes:
        with wave.open(io.BytesIO(render_wav(frame, protocol)), "rb") as reader:
            rendered = reader.readframes(reader.getnframes())
        scaled = np.rint(np.frombuffer(rendered, "<i2") * gain).clip(-_FULL_SCALE, _FULL_SCALE)
        samples: bytes = scaled.astype("<i2").tobytes()
        return samples

    return render

"""Convert a stream of samples to 48 kHz, the rate at which frames are made."""

from typing import Final, TypeAlias

import numpy as np
import soxr
from numpy.typing import NDArray

Samples: TypeAlias = NDArray[np.float32]

RATE_HZ: Final = 48_000
# Frames reach up to 19.5 kHz (measured), and the filter passes nine tenths of half the rate. Video recorders of NTSC
# have 44,056 Hz.
RATE_MIN_HZ: Final = 44_000
# Four times the highest rate in use. It limits the size of the filter.
RATE_MAX_HZ: Final = 768_000
# Loses 0.01 dB at 19.5 kHz, and lets no alias below that through above -140 dB (measured: docs/adr/0016).
_QUALITY: Final = "HQ"


class Resampler:
    """A converter from one fixed rate to 48 kHz.

    The joined output does not depend on the sizes of the pieces of input. It is some 20 ms late, and `flush` returns
    the rest.
    """

    def __init__(self, sample_rate: int) -> None:
        """Raises: ValueError for a rate below 44 kHz, whose filter would cut a frame off, or above 768 kHz."""
        if not RATE_MIN_HZ <= sample_rate <= RATE_MAX_HZ:
            raise ValueError(f"Frames can be heard only at {RATE_MIN_HZ} to {RATE_MAX_HZ} samples per second.")
        self._stream: Final = (
            None
            if sample_rate == RATE_HZ
            else soxr.ResampleStream(sample_rate, RATE_HZ, 1, dtype="float32", quality=_QUALITY)
        )

    def feed(self, samples: Samples) -> Samples:
        """Return the output at 48 kHz that these samples (mono, -1..1) complete."""
        if self._stream is None:
            return samples
        converted: Samples = self._stream.resample_chunk(samples)
        return converted

    def flush(self) -> Samples:
        """Return the rest of the output. What follows begins a new stream."""
        rest: Samples = np.zeros(0, np.float32)
        if self._stream is not None:
            rest = self._stream.resample_chunk(rest, last=True)
            self._stream.clear()
        return rest

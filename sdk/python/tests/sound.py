"""Frames as sound, and the damage that sound suffers on its way."""

from typing import Any, Final

import ggwave
import numpy as np
from numpy.typing import NDArray

TOKENS: Final = ("brd_Zk3-_9aBcD01xYz7", "brd_0000000000000000", "brd_----____AAAAzzzz")
PROTOCOLS: Final = (3, 4, 5)
RATE_HZ: Final = 48_000

Sound = NDArray[np.float64]


def frame(token: str) -> str:
    return f"XRC1:{token}"


def play(text: str, protocol: int = 4) -> Sound:
    """Return the waveform that Core's audio component renders for a text, with a little silence around it."""
    ggwave.disableLog()
    wave = np.frombuffer(ggwave.encode(text, protocolId=protocol, volume=25), np.float32).astype(np.float64)
    return np.concatenate([np.zeros(1234), wave, np.zeros(4321)])


def play_16_bits(text: str, protocol: int) -> NDArray[np.int16]:
    """Return exactly the samples of Core's audio component: 16 bits at half of full scale, without silence."""
    ggwave.disableLog()
    instance = ggwave.init(ggwave.getDefaultParameters() | {"sampleFormatOut": 4})
    try:
        return np.frombuffer(ggwave.encode(text, protocolId=protocol, volume=50, instance=instance), np.int16)
    finally:
        ggwave.free(instance)


def resample(sound: Sound, rate_hz: int) -> Sound:
    """Convert from 48 kHz in the frequency domain, which is not the method under test."""
    count = round(len(sound) * rate_hz / RATE_HZ)
    spectrum = np.fft.rfft(sound)
    kept = np.zeros(count // 2 + 1, complex)
    shared = min(len(spectrum), len(kept))
    kept[:shared] = spectrum[:shared]
    return np.fft.irfft(kept, count) * (count / len(sound))


def add_white_noise(sound: Sound, snr_db: float, seed: int) -> Sound:
    """Add noise over the whole band, relative to the power of the sound itself."""
    power = np.mean(sound[np.flatnonzero(sound)[0] : np.flatnonzero(sound)[-1]] ** 2)
    noise: Any = np.random.default_rng(seed).normal(0, np.sqrt(power / 10 ** (snr_db / 10)), len(sound))
    return sound + noise


def drop_out(sound: Sound, at_s: float, duration_s: float) -> Sound:
    cut = sound.copy()
    cut[int(at_s * RATE_HZ) : int((at_s + duration_s) * RATE_HZ)] = 0
    return cut

"""Degradations of a sound between a loudspeaker and a decoder, each by itself.

Every degradation takes a sound and a generator and returns a sound; samples are floats in -1..1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Samples = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sound:
    """Mono samples, their rate, and the width in which they will be stored."""

    samples: Samples
    rate_hz: int = 48_000
    stored_bits: int = 16


Degradation = Callable[[Sound, Generator], Sound]

_PEAK: Final = 0.95


def nothing(sound: Sound, _: Generator) -> Sound:
    return sound


def white_noise(snr_db: float) -> Degradation:
    """Add noise over the whole band, 0 to 24 kHz; the ratio is that of the powers of the whole sound and the noise."""

    def degrade(sound: Sound, chance: Generator) -> Sound:
        noise = chance.standard_normal(len(sound.samples))
        return _mixed(sound, noise, snr_db)

    return degrade


def low_noise(snr_db: float, *, below_hz: int) -> Degradation:
    """Add noise below `below_hz`, falling by 3 dB per octave: what speech, music and traffic are to this decoder."""

    def degrade(sound: Sound, chance: Generator) -> Sound:
        spectrum = np.fft.rfft(chance.standard_normal(len(sound.samples)))
        frequencies = np.fft.rfftfreq(len(sound.samples), 1 / sound.rate_hz)
        shape = np.where(frequencies < below_hz, 1 / np.sqrt(np.maximum(frequencies, 50)), 0)
        return _mixed(sound, np.fft.irfft(spectrum * shape, len(sound.samples)), snr_db)

    return degrade


def volume(factor: float) -> Degradation:
    return lambda sound, _: replace(sound, samples=sound.samples * factor)


def dropout(duration_s: float, *, count: int = 1) -> Degradation:
    """Put silence of this length at random positions in the sound."""

    def degrade(sound: Sound, chance: Generator) -> Sound:
        samples = sound.samples.copy()
        length = round(duration_s * sound.rate_hz)
        audible = np.flatnonzero(samples)
        for _ in range(count):
            start = chance.integers(audible[0], audible[-1] - length)
            samples[start : start + length] = 0
        return replace(sound, samples=samples)

    return degrade


def clipping(gain: float) -> Degradation:
    """Amplify beyond full scale and clip there."""
    return lambda sound, _: replace(sound, samples=np.clip(sound.samples * gain, -1, 1))


def stored_in(bits: int) -> Degradation:
    return lambda sound, _: replace(sound, stored_bits=bits)


def silence(*, before_s: float, after_s: float) -> Degradation:
    def degrade(sound: Sound, _: Generator) -> Sound:
        before, after = (np.zeros(round(duration_s * sound.rate_hz)) for duration_s in (before_s, after_s))
        return replace(sound, samples=np.concatenate([before, sound.samples, after]))

    return degrade


def rate(rate_hz: int) -> Degradation:
    """Convert to another sample rate, by the exact (Fourier) method."""

    def degrade(sound: Sound, _: Generator) -> Sound:
        divisor = np.gcd(rate_hz, sound.rate_hz)
        up, down = rate_hz // divisor, sound.rate_hz // divisor
        whole = -(-len(sound.samples) // down) * down
        spectrum = np.fft.rfft(sound.samples, whole)
        length = whole // down * up
        samples = np.fft.irfft(spectrum[: length // 2 + 1], length) * (up / down)
        return replace(sound, samples=samples, rate_hz=rate_hz)

    return degrade


def clock_error(parts_per_million: float) -> Degradation:
    """Play faster than the recording: two clocks that differ, or a walking listener (3000 ppm is 1 m/s)."""

    def degrade(sound: Sound, _: Generator) -> Sound:
        # With sixteenfold oversampling, the error of linear interpolation is 50 dB below a tone at 19.5 kHz.
        fine = rate(16 * sound.rate_hz)(sound, _).samples
        positions = np.arange(0, len(fine) - 1, 16 * (1 + parts_per_million * 1e-6))
        return replace(sound, samples=np.interp(positions, np.arange(len(fine)), fine))

    return degrade


def echoes(*delays_and_levels: tuple[float, float]) -> Degradation:
    """Add later copies of the sound: seconds after it, and decibels relative to it."""

    def degrade(sound: Sound, _: Generator) -> Sound:
        samples = sound.samples.copy()
        for delay_s, level_db in delays_and_levels:
            shift = round(delay_s * sound.rate_hz)
            samples[shift:] += sound.samples[:-shift] * 10 ** (level_db / 20)
        return replace(sound, samples=_fitted(samples))

    return degrade


def roll_off(*, from_hz: int, db_at_20_khz: float) -> Degradation:
    """Attenuate linearly from `from_hz` up, as a loudspeaker or microphone does."""

    def degrade(sound: Sound, _: Generator) -> Sound:
        spectrum = np.fft.rfft(sound.samples)
        frequencies = np.fft.rfftfreq(len(sound.samples), 1 / sound.rate_hz)
        loss_db = np.maximum(frequencies - from_hz, 0) / (20_000 - from_hz) * db_at_20_khz
        return replace(sound, samples=np.fft.irfft(spectrum * 10 ** (-loss_db / 20), len(sound.samples)))

    return degrade


def one_after_another(*degradations: Degradation) -> Degradation:
    def degrade(sound: Sound, chance: Generator) -> Sound:
        for degradation in degradations:
            sound = degradation(sound, chance)
        return sound

    return degrade


def _mixed(sound: Sound, noise: Samples, snr_db: float) -> Sound:
    audible = sound.samples[np.flatnonzero(sound.samples)]
    wanted_rms = np.sqrt(np.mean(audible**2)) / 10 ** (snr_db / 20)
    return replace(sound, samples=_fitted(sound.samples + noise * wanted_rms / np.sqrt(np.mean(noise**2))))


def _fitted(samples: Samples) -> Samples:
    # A recorder turns its gain down before it clips; clipping is a condition of its own.
    return samples * min(1.0, _PEAK / float(np.abs(samples).max()))


_ROOM: Final = echoes((0.004, -6), (0.011, -10), (0.023, -13), (0.041, -18))
_PHONE: Final = roll_off(from_hz=14_000, db_at_20_khz=20)

CONDITIONS: Final[Mapping[str, Degradation]] = {
    "nothing but random silence before it": nothing,
    **{f"white noise, SNR {snr_db} dB": white_noise(snr_db) for snr_db in (20, 10, 5, 0, -3, -5, -8, -10)},
    "noise below 10 kHz, 20 dB above the sound": low_noise(-20, below_hz=10_000),
    "resampled to 44.1 kHz, heard at 44.1 kHz": rate(44_100),
    "resampled to 44.1 kHz and back": one_after_another(rate(44_100), rate(48_000)),
    "resampled to 96 kHz, heard at 96 kHz": rate(96_000),
    **{f"volume 1/{part}": volume(1 / part) for part in (10, 100, 1_000, 10_000)},
    **{f"one dropout of {ms} ms": dropout(ms / 1000) for ms in (20, 50, 100, 150, 200)},
    "three dropouts of 50 ms": dropout(0.05, count=3),
    "5 s of silence before and after": silence(before_s=5, after_s=5),
    "clipped, 12 dB over full scale": clipping(8),
    "clipped, 26 dB over full scale": clipping(40),
    "stored in 8 bits": stored_in(8),
    "stored in 8 bits, volume 1/10": one_after_another(volume(0.1), stored_in(8)),
    **{f"clock error {ppm} ppm": clock_error(ppm) for ppm in (100, 300, 1_000, 3_000)},
    "echoes of a small room": _ROOM,
    "weaker by 20 dB from 14 to 20 kHz": _PHONE,
    "all at once (see below)": one_after_another(
        _PHONE,
        _ROOM,
        clock_error(100),
        volume(1 / 30),
        low_noise(-20, below_hz=10_000),
        white_noise(20),
        dropout(0.05),
        rate(44_100),
    ),
}

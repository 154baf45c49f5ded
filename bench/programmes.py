"""Five programmes that a Code is laid under, generated here so that everybody measures with the same ones.

Each is stereo at 48 kHz, of equal loudness, with peaks that leave room for a Code. What counts is where their energy
lies in time and pitch, above all from 15 to 19.5 kHz, where a codec decides what to keep.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

RATE_HZ: Final = 48_000
# About the level of broadcasters (EBU R 128: -23 LUFS); most streams are slightly louder.
PROGRAMME_RMS_DBFS: Final = -20.0
# Limited there, so that a Code 6 dB below the programme still fits under full scale.
_PEAK: Final = 0.6
_SEED: Final = 20261122

Mono = NDArray[np.float64]
Stereo = NDArray[np.float32]


def make_programme(name: str, duration_s: float, *, take: int = 0) -> Stereo:
    """Return the programme called `name`, of shape (samples, 2), at -20 dBFS RMS; the same one in every run.

    Each take is another sound of the same kind.
    """
    count = round(duration_s * RATE_HZ)
    chance = default_rng([_SEED, *name.encode()] + [take] * (take > 0))
    middle, left, right = (PROGRAMMES[name](count, chance) for _ in range(3))
    sides = np.stack([middle + 0.3 * left, middle + 0.3 * right], axis=1)
    return _levelled(sides).astype(np.float32)


def speech(count: int, chance: Generator) -> Mono:
    """Syllables: a buzzing voice through three formants, hisses that fade above 4 to 8 kHz, and pauses between."""
    sound = np.zeros(count)
    at = 0
    while at < count:
        length = int(chance.uniform(0.08, 0.3) * RATE_HZ)
        if chance.random() < 0.3:
            syllable = _shaped(chance.standard_normal(length), _hiss(chance.uniform(4_000, 8_000))) * 0.5
        else:
            syllable = _voiced(length, chance)
        _add(sound, at, syllable * np.hanning(length))
        at += length + int(chance.choice([0.0, 0.02, 0.25], p=[0.6, 0.25, 0.15]) * RATE_HZ)
    return sound


def tones(count: int, chance: Generator) -> Mono:
    """Chords of plucked strings with sixteen harmonics each, a new one twice a second."""
    sound = np.zeros(count)
    length = RATE_HZ
    seconds = np.arange(length) / RATE_HZ
    for at in range(0, count, RATE_HZ // 2):
        root_hz = 110 * 2 ** (chance.integers(0, 12) / 12)
        for interval in (0, 4, 7, 12):
            pitch_hz = root_hz * 2 ** (interval / 12)
            for harmonic in range(1, 17):
                decay = np.exp(-seconds * (2 + harmonic / 2))
                phase = chance.uniform(0, 2 * np.pi)
                _add(sound, at, decay * np.sin(2 * np.pi * pitch_hz * harmonic * seconds + phase) / harmonic**1.5)
    return sound


def drums(count: int, chance: Generator) -> Mono:
    """A bass drum, a snare drum and a hi-hat, whose hiss reaches into the band of Codes; eight strokes a second."""
    sound = np.zeros(count)
    seconds = np.arange(RATE_HZ // 3) / RATE_HZ
    for stroke, at in enumerate(range(0, count, RATE_HZ // 8)):
        if stroke % 4 == 0:
            _add(
                sound, at, 1.5 * np.sin(2 * np.pi * (50 * seconds - 4 * np.exp(-30 * seconds))) * np.exp(-12 * seconds)
            )
        if stroke % 8 == 4:
            snare = _shaped(chance.standard_normal(len(seconds)), _hiss(3_000))
            _add(sound, at, 0.6 * snare * np.exp(-18 * seconds))
        if chance.random() < 0.8:
            hat = _shaped(chance.standard_normal(len(seconds)), _hiss(9_000))
            _add(sound, at, 0.35 * chance.uniform(0.4, 1) * hat * np.exp(-40 * seconds))
    return sound


def pink_noise(count: int, chance: Generator) -> Mono:
    """Noise that falls by 3 dB an octave up to 20 kHz: rain, applause, a crowd."""
    return _shaped(chance.standard_normal(count), lambda hz: np.where(hz < 20_000, 1 / np.sqrt(np.maximum(hz, 30)), 0))


def dense_mix(count: int, chance: Generator) -> Mono:
    """All of them at once with a bass, driven into a limiter: what a pop station sends."""
    seconds = np.arange(count) / RATE_HZ
    bass = np.sin(2 * np.pi * 55 * seconds) + 0.5 * np.sin(2 * np.pi * 110 * seconds)
    parts = [
        _unit(part) * weight
        for part, weight in (
            (speech(count, chance), 0.8),
            (tones(count, chance), 0.8),
            (drums(count, chance), 1.0),
            (pink_noise(count, chance), 0.15),
            (bass, 0.5),
        )
    ]
    mix: Mono = np.tanh(1.5 * np.sum(parts, axis=0))
    return mix


PROGRAMMES: Final[Mapping[str, Callable[[int, Generator], Mono]]] = {
    "speech": speech,
    "tones": tones,
    "drums": drums,
    "pink noise": pink_noise,
    "dense mix": dense_mix,
}


def _voiced(length: int, chance: Generator) -> Mono:
    pitch_hz = chance.uniform(90, 220)
    formants = chance.uniform((300, 900, 2_300), (800, 2_200, 3_200))
    harmonics = np.arange(1, int(12_000 / pitch_hz))
    weights = sum(1 / (1 + ((harmonics * pitch_hz - formant) / 120) ** 2) for formant in formants) / harmonics**0.5
    seconds = np.arange(length) / RATE_HZ
    phases = chance.uniform(0, 2 * np.pi, len(harmonics))
    voice: Mono = weights @ np.sin(2 * np.pi * np.outer(harmonics, pitch_hz * seconds) + phases[:, np.newaxis])
    return voice


def _hiss(from_hz: float) -> Callable[[Mono], Mono]:
    """Return a slope of 12 dB an octave up to `from_hz`, and one of 18 dB down from there, as consonants have."""
    return lambda hz: np.minimum(hz / from_hz, 1) ** 2 * np.minimum(from_hz / np.maximum(hz, 1), 1) ** 3


def _shaped(noise: Mono, shape: Callable[[Mono], Mono]) -> Mono:
    hz = np.fft.rfftfreq(len(noise), 1 / RATE_HZ).astype(np.float64)
    return _unit(np.fft.irfft(np.fft.rfft(noise) * shape(hz), len(noise)))


def _unit(sound: Mono) -> Mono:
    unit: Mono = sound / np.sqrt(np.mean(sound**2))
    return unit


def _add(sound: Mono, at: int, part: Mono) -> None:
    sound[at : at + len(part)] += part[: len(sound) - at]


def _levelled(sound: NDArray[np.float64]) -> NDArray[np.float64]:
    target_rms = 10 ** (PROGRAMME_RMS_DBFS / 20)
    # A limiter takes some of the loudness away, which the next round gives back.
    for _ in range(8):
        sound = _PEAK * np.tanh(sound * (target_rms / np.sqrt(np.mean(sound**2))) / _PEAK)
    levelled: NDArray[np.float64] = sound * min(target_rms / np.sqrt(np.mean(sound**2)), _PEAK / np.abs(sound).max())
    return levelled

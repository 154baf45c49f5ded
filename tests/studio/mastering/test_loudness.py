"""Integrated loudness and true peak, against the EBU's own test signals (Tech 3341, which gives them in words)."""

from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from soundmark.studio.mastering.loudness import LoudnessMeter, PeakMeter, weigh_channels

RATE_HZ: Final = 48_000
SURROUND: Final = (0, 1, 2, 3, 4, 5)


def make_tone(parts: list[tuple[float, float]], rate: int = RATE_HZ, hz: float = 1_000.0) -> NDArray[np.float64]:
    """Return a tone whose parts have these peak levels in dBFS and durations in seconds."""
    levels = np.concatenate([np.full(round(seconds * rate), 10 ** (dbfs / 20)) for dbfs, seconds in parts])
    return np.asarray(levels * np.sin(2 * np.pi * hz * np.arange(len(levels)) / rate))


def measure(sound: NDArray[np.float64], weights: list[float], rate: int = RATE_HZ, block: int = 70_001) -> float | None:
    meter = LoudnessMeter(rate, weights)
    for at in range(0, len(sound), block):
        meter.feed(sound[at : at + block])
    return meter.integrated_lufs()


@pytest.mark.parametrize(
    ("parts", "expected_lufs"),
    [
        ([(-23.0, 20.0)], -23.0),
        ([(-33.0, 20.0)], -33.0),
        ([(-36.0, 10.0), (-23.0, 60.0), (-36.0, 10.0)], -23.0),
        ([(-72.0, 10.0), (-36.0, 10.0), (-23.0, 60.0), (-36.0, 10.0), (-72.0, 10.0)], -23.0),
        ([(-26.0, 20.0), (-20.0, 20.1), (-26.0, 20.0)], -23.0),
    ],
)
def test_the_loudness_of_the_cases_1_to_5(parts: list[tuple[float, float]], expected_lufs: float) -> None:
    sound = make_tone(parts)
    assert measure(np.stack([sound, sound], axis=1), weigh_channels(2, None)) == pytest.approx(expected_lufs, abs=0.1)


def test_the_loudness_of_case_6_weighs_the_loudspeakers() -> None:
    """-28 in front, -24 in the centre and -30 behind are -23 together; the loudspeaker for effects does not count."""
    front, centre, behind = (make_tone([(dbfs, 20.0)]) for dbfs in (-28.0, -24.0, -30.0))
    loud = make_tone([(-6.0, 20.0)])
    sound = np.stack([front, front, centre, loud, behind, behind], axis=1)
    for speakers in (SURROUND, None):
        assert measure(sound, weigh_channels(6, speakers)) == pytest.approx(-23.0, abs=0.1)
    five = np.delete(sound, 3, axis=1)
    assert measure(five, weigh_channels(5, None)) == pytest.approx(-23.0, abs=0.1)


@pytest.mark.parametrize("rate", [44_100, 96_000, 192_000])
def test_the_loudness_does_not_depend_on_the_rate_or_on_the_blocks(rate: int) -> None:
    sound = make_tone([(-23.0, 5.0)], rate)[:, None].repeat(2, axis=1)
    assert measure(sound, [1.0, 1.0], rate) == pytest.approx(-23.0, abs=0.1)
    assert measure(sound, [1.0, 1.0], rate, block=999) == pytest.approx(measure(sound, [1.0, 1.0], rate))


def test_silence_and_less_than_a_gating_block_have_no_loudness() -> None:
    assert measure(np.zeros((RATE_HZ, 1)), [1.0]) is None
    assert measure(make_tone([(-23.0, 0.39)])[:, None], [1.0]) is None
    assert PeakMeter(RATE_HZ, 1).peak_dbtp() is None


@pytest.mark.parametrize(("divisor", "phase_degrees"), [(4, 0), (4, 45), (6, 60), (8, 67.5)])
def test_the_true_peak_of_the_cases_15_to_18(divisor: int, phase_degrees: float) -> None:
    """Half of full scale, whatever lies between the samples: -6 dBTP, within +0.2 and -0.4 dB."""
    angles = 2 * np.pi * np.arange(RATE_HZ) / divisor + np.deg2rad(phase_degrees)
    meter = PeakMeter(RATE_HZ, 1)
    sound = 0.5 * np.sin(angles) * np.hanning(RATE_HZ)
    for at in range(0, len(sound), 777):
        meter.feed(sound[at : at + 777, None])
    meter.feed(np.zeros((0, 1)), last=True)
    peak = meter.peak_dbtp()
    assert peak is not None
    assert -6.4 <= peak <= -5.8

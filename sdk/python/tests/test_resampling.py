import numpy as np
import pytest
from soundmark_sdk.resampling import RATE_HZ, Resampler, Samples

RATES = (44_000, 44_100, 44_101, 50_000, 88_200, 96_000, 192_000, 352_800)


def make_tone(frequency_hz: float, rate_hz: int) -> Samples:
    return np.sin(2 * np.pi * frequency_hz * np.arange(rate_hz // 4) / rate_hz).astype(np.float32)


def measure_level_db(samples: Samples) -> float:
    """Return the level of a continuous tone, without the edges where the filter starts and ends."""
    return float(20 * np.log10(np.sqrt(2 * np.mean(samples[1000:-1000] ** 2)) + 1e-12))


@pytest.mark.parametrize("rate_hz", RATES)
@pytest.mark.parametrize("frequency_hz", [1000, 15_000, 17_250, 19_500])
def test_the_band_of_the_frames_passes_unchanged(rate_hz: int, frequency_hz: float) -> None:
    assert abs(measure_level_db(Resampler(rate_hz).feed(make_tone(frequency_hz, rate_hz)))) < 0.2


@pytest.mark.parametrize("rate_hz", RATES[4:])
@pytest.mark.parametrize("frequency_hz", [28_600, 30_000, 33_000])
def test_aliases_in_the_band_of_the_frames_are_suppressed(rate_hz: int, frequency_hz: float) -> None:
    assert measure_level_db(Resampler(rate_hz).feed(make_tone(frequency_hz, rate_hz))) < -80


@pytest.mark.parametrize("rate_hz", RATES)
def test_a_tone_keeps_its_frequency(rate_hz: int) -> None:
    converted = Resampler(rate_hz).feed(make_tone(17_000, rate_hz))[1000:-1000]
    expected = np.exp(2j * np.pi * 17_000 * np.arange(len(converted)) / RATE_HZ)
    in_phase = abs(np.mean(converted * expected)) * 2
    assert in_phase == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("rate_hz", RATES)
def test_pieces_give_the_same_result_as_the_whole(rate_hz: int) -> None:
    sound = np.random.default_rng(1).normal(0, 0.3, 30_000).astype(np.float32)
    whole, pieces = Resampler(rate_hz), Resampler(rate_hz)
    at_once = np.concatenate([whole.feed(sound), whole.flush()])
    cut = [pieces.feed(piece) for piece in np.array_split(sound, [1, 2, 3, 100, 101, 9000, 9001, 29_999])]
    assert np.allclose(np.concatenate([*cut, pieces.flush()]), at_once, atol=1e-6)
    assert len(at_once) == pytest.approx(len(sound) * RATE_HZ / rate_hz, abs=1)

"""The margin: what it is in white noise, after a low-pass, and how the receiver confirms it."""

from typing import Final

import numpy as np
import pytest
from numpy.random import default_rng
from numpy.typing import NDArray
from support.studio.programmes import FRAME, OTHER_FRAME

from soundmark.studio.mastering.frame_tones import make_frame_tones, receive
from soundmark.studio.mastering.margins import find_cutoff, grade, hears, predict_margin, verify_margin

TONES: Final = make_frame_tones(FRAME, 4)
SAMPLES: Final = TONES.render()


def add_noise(snr_db: float, seed: int = 1) -> NDArray[np.float64]:
    """Return the frame in white noise; the ratio is that of the powers of all of both."""
    power = np.mean(np.square(SAMPLES)) * 10 ** (-snr_db / 10)
    return np.asarray(SAMPLES + default_rng(seed).standard_normal(TONES.length) * np.sqrt(power))


def cut_off(cutoff_hz: float) -> NDArray[np.float64]:
    """Return the frame after an encoder with this low-pass, and with the noise that every encoder makes."""
    spectrum = np.fft.rfft(SAMPLES)
    spectrum[np.fft.rfftfreq(TONES.length, 1 / 48_000) > cutoff_hz] = 0
    return np.fft.irfft(spectrum, TONES.length) + add_noise(30.0) - SAMPLES


def predict(sound: NDArray[np.float64]) -> float:
    return float(predict_margin(receive(sound, TONES).ratios, TONES.tells))


def test_a_frame_has_one_tone_in_each_sixth_of_each_group() -> None:
    """And 52 of them tell the token and its checks: 26 bytes of two tones each."""
    for protocol, blocks in ((3, 9), (4, 6), (5, 3)):
        tones = make_frame_tones(FRAME, protocol)  # type: ignore[arg-type]  # these three are the protocols
        assert tones.tones.shape == tones.powers.shape == tones.tells.shape == (13, 6)
        assert (tones.tones // 16 == np.arange(6)).all()
        assert (tones.tells.sum(), tones.group) == (52, blocks * 1024)
    other = make_frame_tones(OTHER_FRAME, 4)
    assert (other.tones == TONES.tones)[~TONES.tells].all()
    assert (other.tones == TONES.tones)[TONES.tells].mean() < 0.5


def test_the_margin_is_what_white_noise_leaves() -> None:
    """Decibel by decibel; at -18.7 dB, where the receiver hears 95 of 100 of our frames, it is gone."""
    margins = {
        snr_db: np.mean([predict(add_noise(snr_db, seed)) for seed in range(8)]) for snr_db in (-18.7, -10, 0, 10)
    }
    assert margins[-18.7] == pytest.approx(-0.5, abs=0.5)
    assert margins[0] == pytest.approx(19.0, abs=1.0)
    assert margins[10] - margins[0] == pytest.approx(10.0, abs=0.5)


def test_a_receiver_hears_what_has_a_margin() -> None:
    """And nothing two decibels below: the prediction is that of the decoder as it is."""
    for snr_db, is_heard in ((-17.7, True), (-21.2, False)):
        sounds = [add_noise(snr_db, seed) for seed in range(6)]
        assert all(predict(sound) > 0 if is_heard else predict(sound) < -2 for sound in sounds)
        assert [hears(sound, FRAME) for sound in sounds] == [is_heard] * 6


@pytest.mark.parametrize(
    ("cutoff_hz", "is_recoverable"), [(20_000, True), (18_400, True), (18_000, True), (17_200, False), (16_000, False)]
)
def test_below_18_khz_too_little_is_left(cutoff_hz: float, is_recoverable: bool) -> None:
    received = receive(cut_off(cutoff_hz), TONES)
    assert (predict_margin(received.ratios, TONES.tells) > 0) == is_recoverable
    found = find_cutoff(received, TONES)
    assert found is None if cutoff_hz == 20_000 else found == pytest.approx(cutoff_hz, abs=400)


def test_the_receiver_confirms_at_most_what_was_predicted() -> None:
    surroundings = 0.001 * default_rng(2).standard_normal(TONES.length + 19_200)
    sound = np.pad(0.1 * SAMPLES, 9_600) + surroundings
    received = receive(sound[9_600:-9_600], TONES)
    margin_db, is_heard = verify_margin(sound, received, TONES, default_rng(3))
    assert is_heard
    assert 5.0 < margin_db <= predict_margin(received.ratios, TONES.tells)


def test_a_frame_that_is_not_heard_has_no_margin() -> None:
    noise = default_rng(4).standard_normal(TONES.length)
    margin_db, is_heard = verify_margin(noise, receive(noise, TONES), TONES, default_rng(5))
    assert not is_heard
    assert margin_db <= 0
    assert not hears(np.zeros(48_000), FRAME)


def test_grades() -> None:
    """From 6 good, from 3 fair."""
    grades = [grade(margin_db, is_heard=True) for margin_db in (6.0, 5.9, 3.0, 2.9)]
    assert grades == ["good", "fair", "fair", "weak"]
    assert grade(9.0, is_heard=False) == "lost"

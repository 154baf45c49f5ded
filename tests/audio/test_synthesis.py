"""The synthesiser: what ggwave hears of its sounds, their exact bytes, their level and their spectrum."""

import hashlib
import io
import math
import wave
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.rendering import count_heard, synthesise_by_ggwave
from soundmark.audio import synthesis
from soundmark.audio.synthesis import PROTOCOLS, render_wav, synthesise
from soundmark.wire.private.audio import Protocol

FRAME = "XRC1:brd_aZ09-_bY18-_cX27"
# One frame with the lowest, and one with the highest tones of a nibble's sixteen in most places.
FRAMES = [FRAME, "XRC1:brd_0000000000000000", "XRC1:brd_oooooooooooooooo", "XRC1:brd_----------------"]


def samples_of(wav: bytes) -> NDArray[np.float64]:
    with wave.open(io.BytesIO(wav)) as reader:
        assert reader.getparams()[:3] == (1, 2, synthesis.SAMPLE_RATE_HZ)
        return np.frombuffer(reader.readframes(reader.getnframes()), "<i2") / 32768


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ggwave_decodes_every_frame(
    decode: Callable[[bytes], str | None], protocol: Protocol, subtests: pytest.Subtests
) -> None:
    for frame in FRAMES:
        with subtests.test(frame=frame):
            assert decode(render_wav(frame, protocol)) == frame


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_ggwave_hears_our_frames_in_noise_in_which_it_loses_its_own(protocol: Protocol) -> None:
    """They are four decibels apart; `python -m bench rendering` measures the distance. The noise is always the same."""
    assert count_heard(synthesise_by_ggwave, protocol, -11.5, 8) <= 6
    assert count_heard(synthesise, protocol, -15.5, 8) >= 7


@pytest.mark.parametrize(
    ("protocol", "samples_count", "digest"),
    [
        (3, 152_576, "20db778bbbee4137d579be040cc57e9933e5ef857af149a333e9024bcdcdc35d"),
        (4, 112_640, "10a41a6fa495678c7e587d04935264271933f24fcba6c894139b7c422a733de5"),
        (5, 72_704, "fb7ca53dd8734bd9b91eb036202b52c6c41240f4c260eb76e93aaacff93c1ff0"),
    ],
)
def test_a_sound_has_the_same_bytes_on_every_machine(protocol: Protocol, samples_count: int, digest: str) -> None:
    wav = render_wav(FRAME, protocol)

    assert len(wav) == 44 + 2 * samples_count
    assert hashlib.sha256(wav).hexdigest() == digest
    assert render_wav(FRAME, protocol) == wav


def test_no_table_depends_on_the_last_digit_of_a_sine() -> None:
    """Mathematical libraries differ there. A value halfway between two steps would be rounded differently."""
    circle = [math.sin(2 * math.pi * step / 1024) for step in range(1024)]
    exact = [amplitude * 2**23 * sine for sine in circle for amplitude in (0.5 / 6, 0.07)]
    for length in (460, 921, 1382, 2457):
        exact += [2**30 * math.sin(math.pi * (place + 0.5) / (2 * length)) ** 2 for place in range(length)]

    assert min(abs(value % 1 - 0.5) for value in exact) > 1e-6


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_wav_file_is_the_sound_within_the_dither(protocol: Protocol) -> None:
    sound = synthesise(FRAME, protocol)
    error_steps = (samples_of(render_wav(FRAME, protocol)) - sound) * 32768

    assert sound.dtype == np.float32
    assert np.abs(error_steps).max() <= 1.5
    assert abs(error_steps.mean()) < 0.01
    assert error_steps.std() == pytest.approx(0.5, abs=0.01)  # Rounding and two uniform steps of noise: 1/12 + 1/6.


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_sample_exceeds_half_of_full_scale(protocol: Protocol, subtests: pytest.Subtests) -> None:
    """The strong markers stay within what the groups of some frames reach."""
    for frame in FRAMES:
        with subtests.test(frame=frame):
            sound = np.abs(synthesise(frame, protocol))
            marker, end = sound[: 16 * 1024], sound[-16 * 1024 :]

            assert max(marker.max(), end.max()) < 0.48
            assert sound.max() < 0.5


@pytest.mark.parametrize(
    ("protocol", "below_db", "edge_db"), [(3, -120, -98), (4, -115, -90), (5, -103, -77)], ids=["3", "4", "5"]
)
def test_fades_leave_nothing_audible(protocol: Protocol, below_db: float, edge_db: float) -> None:
    """ggwave's linear fades leave -81 to -75 dB below 14 kHz, and -74 to -61 dB from there to 14.8 kHz."""
    spectrum = np.abs(np.fft.rfft(synthesise(FRAME, protocol).astype(np.float64))) ** 2
    frequencies = np.linspace(0, 24_000, len(spectrum))

    below = spectrum[frequencies < 14_000].sum() / spectrum.sum()
    edge = spectrum[(frequencies >= 14_000) & (frequencies < 14_800)].sum() / spectrum.sum()

    assert 10 * math.log10(below) < below_db
    assert 10 * math.log10(edge) < edge_db


def test_each_call_returns_a_sound_of_its_own() -> None:
    """A caller may change it."""
    first = synthesise(FRAME, 4)
    kept = first.copy()
    first[:] = 1

    assert np.array_equal(synthesise(FRAME, 4), kept)


def test_a_malformed_frame_or_audible_protocol_is_refused(subtests: pytest.Subtests) -> None:
    makers: list[Callable[[str, Any], object]] = [render_wav, synthesise]
    for frame, protocol in [
        ("", 4),
        ("XRC1:", 4),
        (FRAME[:-1], 4),
        (FRAME + "A", 4),
        (FRAME + "\n", 4),
        (FRAME[:-1] + "é", 4),
        (FRAME.lower(), 4),
        *[(FRAME, protocol) for protocol in (-1, 0, 1, 2, 6, 9, 23)],
    ]:
        for make in makers:
            with subtests.test(frame=frame, protocol=protocol), pytest.raises(ValueError, match=r"^not an? "):
                make(frame, protocol)

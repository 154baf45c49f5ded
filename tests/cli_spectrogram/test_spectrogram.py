"""The picture of a sound, and the figures behind it."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from soundmark.audio.synthesis import PROTOCOLS, render_wav
from soundmark.cli.spectrogram import BAND_KHZ, draw, power, read_wav


@pytest.fixture(params=PROTOCOLS)
def wav(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A sound file of a Code, in each protocol."""
    path = tmp_path / "sound.wav"
    path.write_bytes(render_wav("XRC1:brd_aZ09-_bY18-_cX27", request.param))
    return path


def test_the_energy_lies_in_the_ultrasound_band(wav: Path) -> None:
    samples, rate = read_wav(wav)
    energy = power(samples)
    khz = np.linspace(0, rate / 2000, len(energy))

    in_band = energy[(khz > BAND_KHZ[0] - 0.5) & (khz < BAND_KHZ[1] + 0.5)]

    assert in_band.sum() > 0.95 * energy.sum()


def test_a_tone_appears_at_its_own_pitch() -> None:
    tone = np.sin(2 * np.pi * 6000 * np.arange(48_000) / 48_000)

    assert power(tone).argmax(axis=0).tolist() == [6000 * 1024 // 48_000] * 184


def test_the_picture_is_a_png_with_the_sound_in_the_upper_part(wav: Path, tmp_path: Path) -> None:
    picture = tmp_path / "sound.png"

    draw(wav, picture, title="XRC1:brd_…, <protocol> $\\frac$")

    with Image.open(picture) as image:
        image.load()
        assert (image.format, image.size) == ("PNG", (1320, 720))
        brightness = np.asarray(image.convert("L"), dtype=float)
    # The band is 15 to 19.5 of 24 kHz: bright rows above the middle of the spectrogram, black ones below it.
    assert brightness[270:370, 100:1100].mean() > 3 * brightness[450:600, 300:1100].mean()


def test_silence_has_a_picture_too(tmp_path: Path) -> None:
    """With nothing to compare with, nothing may be divided by zero."""
    wav = tmp_path / "silence.wav"
    made = render_wav("XRC1:brd_aZ09-_bY18-_cX27", 5)
    wav.write_bytes(made[:44] + bytes(len(made) - 44))

    draw(wav, tmp_path / "silence.png", title="silence")

    with Image.open(tmp_path / "silence.png") as image:
        assert image.size == (1320, 720)

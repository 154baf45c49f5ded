"""A picture of a sound: where its energy lies, in time and in pitch."""

import wave
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BAND_KHZ: Final = (15.0, 19.5)  # ggwave's ultrasound protocols, measured: docs/sound.md.
_WINDOW: Final = 1024
_HOP: Final = 256
_FLOOR_DB: Final = -90.0


def read_wav(path: Path) -> tuple[Any, int]:
    """Samples from -1 to 1 and their rate in Hz, of a mono 16-bit WAV."""
    with wave.open(str(path), "rb") as sound:
        assert (sound.getnchannels(), sound.getsampwidth()) == (1, 2), "Core renders mono, 16 bits"
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(np.float32) / 32768
        return samples, sound.getframerate()


def power_db(samples: Any) -> Any:
    """The spectrogram: one row for each of 513 pitches, one column for each 256 samples, in dB below the loudest."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_HOP] * np.hanning(_WINDOW)
    power = np.abs(np.fft.rfft(frames, axis=1)).T ** 2
    return 10 * np.log10(np.maximum(power / max(float(power.max()), 1e-12), 10 ** (_FLOOR_DB / 10)))


def draw(wav_path: Path, png_path: Path, *, title: str) -> None:
    """The picture of `wav_path` is written to `png_path`: the wave above, the spectrogram below."""
    samples, rate = read_wav(wav_path)
    seconds = len(samples) / rate
    figure = Figure(figsize=(11, 6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3))
    figure.suptitle(title, fontsize=12)
    above.plot(np.arange(len(samples)) / rate, samples, linewidth=0.3, color="#335577")
    above.set_ylim(-1, 1)
    above.set_ylabel("amplitude")
    extent = (0.0, seconds, 0.0, rate / 2000)
    image = below.imshow(power_db(samples), origin="lower", aspect="auto", extent=extent, cmap="magma")
    for edge in BAND_KHZ:
        below.axhline(edge, color="white", linewidth=0.8, linestyle="--")
    below.text(
        seconds * 0.01, BAND_KHZ[0] - 0.4, "ultrasound band, 15 to 19.5 kHz", color="white", va="top", fontsize=9
    )
    below.set_xlabel("seconds")
    below.set_ylabel("kHz")
    figure.colorbar(image, ax=below, label="dB below the loudest")
    figure.savefig(png_path)

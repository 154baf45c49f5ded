"""A picture of a sound: where its energy lies, in time and in pitch."""

import wave
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine

BAND_KHZ: Final = (15.0, 19.5)  # ggwave's ultrasound protocols, measured: docs/sound.md.
_WINDOW: Final = 1024
_HOP: Final = 256
_FLOOR_DB: Final = -90.0
_COLUMNS: Final = 1000  # About as many as the picture has pixels there.
_PAPER, _INK, _SOFT, _WAVE = "#fbfbf9", "#1d2125", "#5b636b", "#8a2a6b"


def read_wav(path: Path) -> tuple[Any, int]:
    """Return the samples, from -1 to 1, of a mono 16-bit WAV, and their rate in Hz."""
    with wave.open(str(path), "rb") as sound:
        assert (sound.getnchannels(), sound.getsampwidth()) == (1, 2), "Core renders mono, 16 bits"
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(np.float32) / 32768
        return samples, sound.getframerate()


def power(samples: Any) -> Any:
    """Return the energy at 513 pitches, 0 to half the sample rate (rows), in steps of 256 samples (columns)."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_HOP] * np.hanning(_WINDOW)
    return np.abs(np.fft.rfft(frames, axis=1)).T ** 2


def draw(wav_path: Path, png: BinaryIO, *, title: str) -> None:
    """Draw `wav_path` into `png`, 1320 by 720: the wave above, the spectrogram below."""
    samples, rate = read_wav(wav_path)
    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.12)  # Inches.
    figure = Figure(figsize=(11, 6), dpi=120, layout=layout, facecolor=_PAPER)
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3.2))
    facts = f"{len(samples) / rate:.2f} s at {rate / 1000:g} kHz"
    above.set_title(title, loc="left", fontsize=12, fontweight="bold", color=_INK, parse_math=False)
    above.set_title(facts, loc="right", fontsize=10, color=_SOFT)
    _draw_wave(above, samples, rate)
    image = _draw_spectrogram(below, samples, rate)
    bar = figure.colorbar(image, ax=below, pad=0.015, aspect=28)
    bar.set_label("dB below the loudest", color=_INK)
    bar.outline.set_visible(False)
    figure.savefig(png, format="png")


def _draw_wave(axes: Axes, samples: Any, rate: int) -> None:
    # Lowest to highest for each column of pixels, since a line through 100,000 points would only be a smear.
    width = max(1, len(samples) // _COLUMNS)
    columns = samples[: len(samples) // width * width].reshape(-1, width)
    seconds = (np.arange(len(columns)) + 0.5) * width / rate
    axes.fill_between(seconds, columns.min(axis=1), columns.max(axis=1), color=_WAVE, linewidth=0)
    axes.set_ylim(-1, 1)
    axes.set_yticks([-1, 0, 1])
    axes.set_ylabel("amplitude", color=_INK)
    axes.set_facecolor("white")
    _plain(axes)


def _draw_spectrogram(axes: Axes, samples: Any, rate: int) -> AxesImage:
    energy = power(samples)
    loudness_db = 10 * np.log10(np.maximum(energy / max(float(energy.max()), 1e-12), 10 ** (_FLOOR_DB / 10)))
    extent = (0.0, len(samples) / rate, 0.0, rate / 2000)
    image = axes.imshow(loudness_db, origin="lower", aspect="auto", extent=extent, cmap="magma", vmin=_FLOOR_DB, vmax=0)
    for edge_khz in BAND_KHZ:
        axes.axhline(edge_khz, color="white", linewidth=0.8, linestyle=(0, (6, 4)), alpha=0.8)
    _label(axes, BAND_KHZ[1] + 0.8, "ultrasound: 15 to 19.5 kHz")
    _label(axes, BAND_KHZ[0] / 2, "what people hear")
    axes.set_yticks([0, 5, 10, 15, 20, 24])
    axes.set_xlabel("seconds", color=_INK)
    axes.set_ylabel("kHz", color=_INK)
    _plain(axes)
    return image


def _label(axes: Axes, khz: float, text: str) -> None:
    axes.text(0.012, khz, text, transform=axes.get_yaxis_transform(), color="white", fontsize=10, va="center")


def _plain(axes: Axes) -> None:
    axes.tick_params(colors=_SOFT, labelsize=9)
    for spine in axes.spines.values():
        spine.set_visible(False)

"""Explain why no frame was heard in a recording, or how well one was."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from soundmark_sdk.findings import Finding, explain_sound
from soundmark_sdk.hearing import Frame, hear_samples
from soundmark_sdk.levels import LevelMeter, Levels
from soundmark_sdk.markers import Markers, MarkerSearch
from soundmark_sdk.recording import Recording, open_recording, read_segments, scale_signal, split_signals
from soundmark_sdk.resampling import RATE_MAX_HZ, RATE_MIN_HZ, Resampler, Samples
from soundmark_sdk.sound_files.sounds import Sound, SoundReader


@dataclass(frozen=True, slots=True)
class Examination:
    """The contents of a recording, and what they mean for hearing frames.

    Where the format changes, the figures are those of the longest sound, or of the longest in which a frame was heard.
    `markers` is None at a sample rate that cannot carry them.
    """

    duration_s: float
    sample_rate: int
    channel_count: int
    frames: tuple[Frame, ...]
    levels: Levels
    markers: Markers | None
    findings: tuple[Finding, ...]


def examine(recording: Recording) -> Examination:
    """Hear a recording and measure it: its level, the band of the frames, where it is cut off, and frame markers.

    It accepts the files that `hear` accepts, and in addition every other sample rate.

    Raises: ValueError for any other file; OSError for a file that cannot be read.
    """
    with open_recording(recording) as reader:
        examinations = [_examine_sound(sound) for sound in reader.read_sounds()]
        if not examinations:
            raise ValueError(reader.obstacles[0])
        return _join(examinations, reader)


def _examine_sound(sound: Sound) -> Examination:
    rate, is_audible = sound.sample_rate, RATE_MIN_HZ <= sound.sample_rate <= RATE_MAX_HZ
    meter = LevelMeter(rate)
    searches = [_SignalSearch(rate) for _ in range(_count_signals(sound.channels))] if is_audible else []
    heard: dict[Frame, None] = {}
    count = 0
    for segment, repeated_count in read_segments(sound):
        fresh = np.nan_to_num(segment[repeated_count:], nan=0.0, posinf=0.0, neginf=0.0)
        count += len(fresh)
        meter.feed(fresh)
        if is_audible:
            for signal in split_signals(segment):
                heard.update(dict.fromkeys(hear_samples(signal, rate)))
            for search, signal in zip(searches, _split_columns(fresh), strict=True):
                search.feed(scale_signal(signal))
    markers = max((search.finish() for search in searches), key=_rank, default=None)
    return Examination(count / rate, rate, sound.channels, tuple(heard), meter.summarize(), markers, ())


def _join(examinations: list[Examination], reader: SoundReader) -> Examination:
    """Return the whole: the frames of every sound, and the figures of the longest, or of the longest with a frame."""
    main = max(examinations, key=lambda each: (bool(each.frames), each.duration_s))
    frames = tuple(dict.fromkeys(frame for each in examinations for frame in each.frames))
    notes = [Finding("partly_read", sentence) for sentence in dict.fromkeys(reader.obstacles)]
    notes += [Finding("damaged", sentence) for sentence in dict.fromkeys(reader.damage)]
    if len(examinations) > 1:
        text = f"The recording changes its format; the figures are those of a part of it, {main.duration_s:.2f} s long."
        notes.append(Finding("formats", text))
    findings = explain_sound(main.duration_s, main.sample_rate, frames, main.levels, main.markers)
    return replace(
        main,
        duration_s=sum(each.duration_s for each in examinations),
        frames=frames,
        findings=(*findings, *notes) if frames else (*notes, *findings),
    )


class _SignalSearch:
    """A search for markers at any sample rate."""

    def __init__(self, sample_rate: int) -> None:
        self._resampler: Final = Resampler(sample_rate)
        self._search: Final = MarkerSearch()

    def feed(self, samples: Samples) -> None:
        self._search.feed(self._resampler.feed(samples))

    def finish(self) -> Markers:
        self._search.feed(self._resampler.flush())
        return self._search.summarize()


def _count_signals(channel_count: int) -> int:
    return channel_count + 1 if channel_count > 1 else 1


def _split_columns(samples: Samples) -> list[Samples]:
    """Return the signals that `hear` listens to: the mean of several channels, and each channel."""
    channels = [samples[:, channel] for channel in range(samples.shape[1])]
    return [samples.mean(axis=1), *channels] if len(channels) > 1 else channels


def _rank(markers: Markers) -> tuple[int, float]:
    return markers.start_count + markers.end_count, markers.contrast_db or 0.0

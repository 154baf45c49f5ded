"""Explain why no frame was heard in a recording, or how well one was."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import soundfile

from soundmark_sdk.hearing import Frame, hear_samples
from soundmark_sdk.levels import LevelMeter, Levels
from soundmark_sdk.markers import Markers, MarkerSearch
from soundmark_sdk.recording import Recording, open_recording, read_segments, split_signals
from soundmark_sdk.resampling import RATE_MAX_HZ, RATE_MIN_HZ, Resampler, Samples

FindingCode: TypeAlias = Literal[
    "heard",
    "rate_too_low",
    "rate_too_high",
    "silent",
    "too_short",
    "quiet",
    "clipped",
    "cut_off",
    "band_empty",
    "no_frame",
    "begins_late",
    "ends_early",
    "wrong_speed",
    "unreadable",
]

# The airtime of the fastest protocol: docs/sound.md.
_AIRTIME_MIN_S: Final = 1.5
_SILENT_DBFS: Final = -90.0  # Below the last of 16 bits.
_QUIET_DBFS: Final = -50.0
_CLIPPED_SHARE: Final = 0.001
# White noise in the last of 16 bits has -105 dBFS in this band.
_BAND_EMPTY_DBFS: Final = -95.0
_SPEED_ERROR: Final = 0.001  # It loses two thirds to nine tenths of the frames: docs/sound.md.


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: a code, and a sentence for people."""

    code: FindingCode
    sentence: str


@dataclass(frozen=True, slots=True)
class Examination:
    """The contents of a recording, and what they mean for hearing frames.

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

    Raises: ValueError for any other file; OSError for a file that cannot be read, or that has no positions.
    """
    with open_recording(recording) as sound:
        return _examine_sound(sound)


def _examine_sound(sound: soundfile.SoundFile) -> Examination:
    rate, is_audible = sound.samplerate, RATE_MIN_HZ <= sound.samplerate <= RATE_MAX_HZ
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
                search.feed(signal)
    markers = max((search.finish() for search in searches), key=_rank, default=None)
    levels = meter.summarize()
    duration_s = count / rate
    findings = _collect_findings(duration_s, rate, tuple(heard), levels, markers)
    return Examination(duration_s, rate, sound.channels, tuple(heard), levels, markers, findings)


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


def _collect_findings(
    duration_s: float, sample_rate: int, frames: tuple[Frame, ...], levels: Levels, markers: Markers | None
) -> tuple[Finding, ...]:
    """Return the findings, the most important first."""
    if frames:
        contrast_db = markers.contrast_db if markers is not None else None
        return (_describe_frames(frames, contrast_db), *_check_clipping(levels))
    if sample_rate < RATE_MIN_HZ:
        text = (
            f"The sample rate is {sample_rate} Hz, which holds nothing above {sample_rate / 2000:.4g} kHz; "
            f"frames need {RATE_MIN_HZ} Hz or more."
        )
        return (Finding("rate_too_low", text),)
    if markers is None:
        return (Finding("rate_too_high", f"The sample rate is {sample_rate} Hz, more than {RATE_MAX_HZ} Hz."),)
    if levels.peak_dbfs is None or levels.peak_dbfs < _SILENT_DBFS:
        return (Finding("silent", "The recording is silent."),)
    return (
        *_check_duration(duration_s),
        *_check_loudness(levels),
        *_check_clipping(levels),
        *_check_band(levels, markers),
    )


def _describe_frames(frames: tuple[Frame, ...], contrast_db: float | None) -> Finding:
    count = "A frame was" if len(frames) == 1 else f"{len(frames)} frames were"
    contrast = (
        "" if contrast_db is None else f" Its marker tones are {contrast_db:.0f} dB above the sound between them."
    )
    return Finding("heard", f"{count} heard.{contrast}")


def _check_duration(duration_s: float) -> list[Finding]:
    if duration_s >= _AIRTIME_MIN_S:
        return []
    text = f"The recording lasts {duration_s:.2f} s; a whole frame lasts 1.5, 2.4 or 3.2 s, depending on its protocol."
    return [Finding("too_short", text)]


def _check_loudness(levels: Levels) -> list[Finding]:
    if levels.peak_dbfs is None or levels.peak_dbfs >= _QUIET_DBFS:
        return []
    return [Finding("quiet", f"The recording is very quiet: its loudest sample is at {levels.peak_dbfs:.0f} dBFS.")]


def _check_clipping(levels: Levels) -> list[Finding]:
    if levels.full_scale_share < _CLIPPED_SHARE:
        return []
    text = f"The recording is clipped: {100 * levels.full_scale_share:.1f} % of its samples are at full scale."
    return [Finding("clipped", text)]


def _check_band(levels: Levels, markers: Markers) -> list[Finding]:
    """Return the findings about the band of the frames, for a recording in which no frame was heard."""
    is_there = markers.start_count + markers.end_count > 0
    damage = [_describe_damage(markers)] if is_there else []
    if levels.cut_hz is not None and not any(finding.code == "wrong_speed" for finding in damage):
        text = (
            f"The recording is cut off at about {levels.cut_hz / 1000:.1f} kHz, below the 19.5 kHz that frames reach: "
            "a codec, an FM transmission or a filter removed the rest."
        )
        return [Finding("cut_off", text), *damage]
    if is_there:
        return damage
    if levels.band_dbfs is None or levels.band_dbfs < _BAND_EMPTY_DBFS:
        return [Finding("band_empty", "The band from 15 to 19.5 kHz is empty.")]
    text = f"The band from 15 to 19.5 kHz holds sound ({levels.band_dbfs:.0f} dBFS), but no frame begins or ends in it."
    return [Finding("no_frame", text)]


def _describe_damage(markers: Markers) -> Finding:
    error = markers.speed - 1
    if abs(error) >= _SPEED_ERROR:
        way = "fast" if error > 0 else "slow"
        text = f"The recording has a frame, but plays about {100 * abs(error):.1f} % too {way}; only 0.03 % is safe."
        return Finding("wrong_speed", text)
    if not markers.end_count:
        return Finding(
            "ends_early", "A frame begins, but its end is missing: the recording stops, or is interrupted, before it."
        )
    if not markers.start_count:
        return Finding("begins_late", "A frame ends, but its beginning is missing: the recording begins too late.")
    text = (
        "A frame begins and ends, but cannot be decoded: noise, a codec, a gap or an echo damaged it. "
        f"Its marker tones are {markers.contrast_db or 0:.0f} dB above the sound between them."
    )
    return Finding("unreadable", text)

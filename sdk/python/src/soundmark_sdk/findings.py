"""Say in sentences why no frame was heard, or how well one was. No sentence claims more than was measured."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from soundmark_sdk.hearing import Frame
from soundmark_sdk.levels import Levels
from soundmark_sdk.markers import SPEED_ERROR_MAX, Markers
from soundmark_sdk.resampling import RATE_MAX_HZ, RATE_MIN_HZ

FindingCode: TypeAlias = Literal[
    "heard",
    "rate_too_low",
    "rate_too_high",
    "partly_read",
    "damaged",
    "formats",
    "empty",
    "silent",
    "too_short",
    "quiet",
    "clipped",
    "cut_off",
    "tone",
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
_TONE_SHARE: Final = 1 / 3
# Where the band has this much more than what is below it, there is hardly a programme. A marker has 20 dB more, since
# its lowest tone is at the edge.
_PROGRAMME_DB: Final = 10.0
# The tones of a marker end at 16.5 kHz, and those of a whole frame above this: docs/sound-decoder.md.
_FRAME_TOP_HZ: Final = 18_700
_SPEED_ERROR: Final = 0.005  # What the decoder tolerates: docs/sound.md.
# What makes a recording play at these speeds.
_KNOWN_SPEEDS: Final = {
    25 / 24: "as a film of 24 pictures a second does at 25",
    24 / 25: "as a film of 25 pictures a second does at 24",
    48_000 / 44_100: "as a recording of 44.1 kHz does that is labelled 48 kHz",
    44_100 / 48_000: "as a recording of 48 kHz does that is labelled 44.1 kHz",
}
_KNOWN_SPEED_ERROR: Final = 0.001


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: a code, and a sentence for people."""

    code: FindingCode
    sentence: str


def explain_sound(
    duration_s: float, sample_rate: int, frames: tuple[Frame, ...], levels: Levels, markers: Markers | None
) -> tuple[Finding, ...]:
    """Return the findings, the most important first."""
    if frames:
        contrast_db = markers.contrast_db if markers is not None else None
        return (_describe_frames(frames, contrast_db), *_check_clipping(levels))
    if not duration_s:
        return (Finding("empty", "The recording is empty: it holds no samples."),)
    if sample_rate < RATE_MIN_HZ:
        text = (
            f"The sample rate is {sample_rate} Hz, which holds nothing above {sample_rate / 2000:.4g} kHz; "
            f"frames are heard at {RATE_MIN_HZ} Hz or more."
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
    count, whose = ("A frame was", "Its") if len(frames) == 1 else (f"{len(frames)} frames were", "Their")
    contrast = f" {whose} {_describe_contrast(contrast_db)}" if contrast_db is not None else ""
    return Finding("heard", f"{count} heard.{contrast}")


def _describe_contrast(contrast_db: float) -> str:
    return f"marker tones are {contrast_db:.0f} dB above the sound between them."


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
    if is_there and abs(markers.speed - 1) >= _SPEED_ERROR:
        return [_describe_speed(markers.speed)]
    tone = _check_tone(levels)
    # Beside a tone, a marker may look like its opposite, or like none.
    damage = [_describe_damage(markers)] if is_there and not tone else []
    if levels.cut_hz is not None and not _ends_by_itself(levels.cut_hz, levels, markers, has_tone=bool(tone)):
        text = (
            f"The recording is cut off at about {levels.cut_hz / 1000:.1f} kHz, below the 19.5 kHz that frames reach: "
            "a codec, an FM transmission, a lower sample rate or a filter may have removed the rest."
        )
        return [Finding("cut_off", text), *tone, *damage]
    if is_there:
        return [*tone, *damage]
    if levels.band_dbfs is None or levels.band_dbfs < _BAND_EMPTY_DBFS:
        return [Finding("band_empty", "The band from 15 to 19.5 kHz is empty.")]
    text = f"The band from 15 to 19.5 kHz holds sound ({levels.band_dbfs:.0f} dBFS), but no frame begins or ends in it."
    return [*tone, Finding("no_frame", text)]


def _ends_by_itself(cut_hz: float, levels: Levels, markers: Markers, *, has_tone: bool) -> bool:
    """Return whether the sound is hardly more than tones, which may reach no higher by themselves."""
    band_dbfs, below_dbfs = levels.band_dbfs, levels.below_dbfs
    if band_dbfs is None or (below_dbfs is not None and below_dbfs > band_dbfs - _PROGRAMME_DB):
        return False
    # Of a frame without its beginning or end, perhaps nothing else is there than the other marker.
    is_part = (markers.start_count > 0) != (markers.end_count > 0)
    return has_tone or is_part or cut_hz >= _FRAME_TOP_HZ


def _check_tone(levels: Levels) -> list[Finding]:
    if levels.tone_hz is None or levels.tone_share < _TONE_SHARE:
        return []
    text = (
        f"A steady tone at {levels.tone_hz / 1000:.1f} kHz has {100 * levels.tone_share:.0f} % of the energy in the "
        "band from 15 to 19.5 kHz, and may cover a frame."
    )
    return [Finding("tone", text)]


def _describe_speed(speed: float) -> Finding:
    error, way = abs(speed - 1), "fast" if speed > 1 else "slow"
    if error >= SPEED_ERROR_MAX:
        return Finding("wrong_speed", f"The recording has a frame, but plays {100 * error:.0f} % or more too {way}.")
    known = [words for each, words in _KNOWN_SPEEDS.items() if abs(speed / each - 1) < _KNOWN_SPEED_ERROR]
    reason = "".join(f", {words}" for words in known)
    return Finding("wrong_speed", f"The recording has a frame, but plays about {100 * error:.1f} % too {way}{reason}.")


def _describe_damage(markers: Markers) -> Finding:
    starts, ends = markers.start_count, markers.end_count
    if not ends:
        begun = "A frame begins, but its end is" if starts == 1 else f"{starts} frames begin, but their ends are"
        return Finding("ends_early", f"{begun} missing: the recording stops before it, or the sound was interrupted.")
    if not starts:
        ended = "A frame ends, but its beginning is" if ends == 1 else f"{ends} frames end, but their beginnings are"
        return Finding("begins_late", f"{ended} missing: the recording begins after it, or the sound was interrupted.")
    if starts == ends == 1:
        text = (
            "A frame begins and ends, but cannot be decoded as a Code: it is another application's, or noise, a codec, "
            "a gap or an echo damaged it."
        )
        return Finding("unreadable", f"{text} Its {_describe_contrast(markers.contrast_db or 0)}")
    text = f"{starts} frame{'s begin' if starts > 1 else ' begins'} and {ends} end{'' if ends > 1 else 's'}"
    text += (
        ", but none can be decoded as a Code: they are another application's, or noise, a codec, a gap, an echo or an "
        "interruption damaged them."
    )
    return Finding("unreadable", f"{text} Their {_describe_contrast(markers.contrast_db or 0)}")

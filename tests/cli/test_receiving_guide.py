"""docs/guides/receiving.md: every program on the page runs as printed, and prints the output on the page."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

import pytest
from soundmark_sdk import Reason
from soundmark_sdk.failures import RETRYABLE_REASONS

from soundmark.cli.demo import INTENT

from .conftest import Service, environ

PAGE: Final = (Path(__file__).parents[2] / "docs" / "guides" / "receiving.md").read_text(encoding="utf-8")
SERVICE: Final = "http://127.0.0.1:8080"
# A program, and the block below it with its output.
PROGRAMS: Final = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

# A test machine has no microphone: a fake PortAudio package plays the demo's sound.
SOUNDDEVICE: Final = '''
import numpy as np
import soundfile


class PortAudioError(Exception):
    """The name that the SDK looks for."""


def query_devices(device, kind):
    return {"default_samplerate": 48_000.0}


class InputStream:
    def __init__(self, *, samplerate, device, channels, dtype):
        self.sound, _ = soundfile.read(".soundmark/demo.wav", dtype=dtype)

    def start(self):
        pass

    def close(self):
        pass

    def read(self, count):
        block, self.sound = self.sound[:count], self.sound[count:]
        return np.pad(block, (0, count - len(block)))[:, np.newaxis], False
'''


@pytest.fixture
def checkout(service: Service, tmp_path: Path) -> Path:
    """A folder in which `make up` ran."""
    (tmp_path / ".soundmark").mkdir()
    (tmp_path / ".soundmark" / "demo.wav").write_bytes(service.sound_of(service.make_code(intent=INTENT)))
    (tmp_path / "sounddevice.py").write_text(SOUNDDEVICE)
    return tmp_path


def run(program: str, checkout: Path, url: str) -> str:
    script = checkout / "program.py"
    script.write_text(program.replace(SERVICE, url), encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60, cwd=checkout, env=environ({})
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def names() -> Iterator[str]:
    """Return the heading above each program."""
    for program, _ in PROGRAMS:
        yield re.findall(r"^## (.*)$", PAGE[: PAGE.index(program)], re.MULTILINE)[-1]


@pytest.mark.parametrize(("program", "printed"), PROGRAMS, ids=names())
def test_a_program_prints_the_output_on_the_page(program: str, printed: str, checkout: Path, service: Service) -> None:
    pattern = re.escape(printed).replace("…", ".+")
    assert re.fullmatch(pattern, run(program, checkout, service.url))


def test_no_program_is_left_out() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") > 5


def test_the_table_of_failures_is_the_closed_set() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (yes|no) \| \S.*\| \S.*\|$", PAGE, re.MULTILINE)
    assert rows == [(reason, "yes" if reason in RETRYABLE_REASONS else "no") for reason in get_args(Reason)]

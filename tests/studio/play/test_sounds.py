"""The samples of a frame, at a level."""

import numpy as np
import pytest
import soundfile
from soundmark_sdk import hear
from support.studio.playout_lines import make_frame

from soundmark.audio.synthesis import render_wav
from soundmark.studio.play.sounds import DEFAULT_LEVEL_DBFS, make_renderer


@pytest.mark.parametrize(("level_dbfs", "peak"), [(-6.0, 0.5), (-20.0, 0.1), (0.0, 1.0)])
def test_a_frame_peaks_at_its_level_and_is_heard(
    level_dbfs: float, peak: float, tmp_path: pytest.TempPathFactory
) -> None:
    samples = np.frombuffer(make_renderer(4, level_dbfs)(make_frame(1)), "<i2")
    assert 0.9 * peak < np.abs(samples.astype(int)).max() / 32768 <= 1.01 * peak
    path = f"{tmp_path}/sound.wav"
    soundfile.write(path, samples, 48_000)
    assert [frame.text for frame in hear(path)] == [make_frame(1)]


def test_a_faster_protocol_is_shorter() -> None:
    assert len({len(make_renderer(protocol, -6.0)(make_frame(1))) for protocol in (3, 4, 5)}) == 3


def test_at_its_own_level_it_is_what_core_renders() -> None:
    assert make_renderer(4, DEFAULT_LEVEL_DBFS)(make_frame(1)) == render_wav(make_frame(1), 4)[44:]

"""What the ggwave of npm hears, which is older than PyPI's and compiled to WebAssembly."""

import json
import subprocess
from pathlib import Path

from numpy.random import default_rng

from bench.decoding import random_frame
from bench.rendering import mix_with_noise
from soundmark.audio.synthesis import PROTOCOLS, synthesise

from .test_sdk import NODE

SILENT_DB, NOISY_DB = 60, -15
COUNT = 4


def test_the_ggwave_of_npm_hears_our_frames_of_each_protocol_in_noise(tmp_path: Path) -> None:
    """It loses its own at a level of -12 dB."""
    chance = default_rng(1)
    sent: dict[Path, str] = {}
    for protocol in PROTOCOLS:
        for level_db in (SILENT_DB, NOISY_DB):
            for number in range(COUNT):
                frame, path = random_frame(chance), tmp_path / f"{protocol}.{level_db}.{number}"
                mix_with_noise(synthesise(frame, protocol), level_db, chance).astype("<f4").tofile(path)
                sent[path] = frame

    ran = subprocess.run(
        [NODE, "hear_by_ggwave.mjs", *sent],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    heard = dict(zip(sent, map(json.loads, ran.stdout.splitlines()), strict=True))
    assert [path.name for path in sent if heard[path] != sent[path]] == []

"""What a program measured of a Code in a programme, for decode certificates."""

from typing import Any

REPETITION = {"at_ms": 12_000, "protocol": 4, "level_db": -12, "margin_db": 9.4, "cutoff_hz": None}
CODEC = {"name": "mp3", "setting": "192 kbit/s", "heard": 0, "of": 1}


def make_measurement(**changes: Any) -> dict[str, Any]:
    """Return a valid body of a decode certificate, except for `changes`."""
    return {
        "file_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "file_name": "Morgen-Übersicht 7.wav",
        "duration_ms": 3_600_000,
        "sample_rate": 48_000,
        "tool": {"name": "soundmark", "version": "0.1.0"},
        "repetitions": [REPETITION, {**REPETITION, "at_ms": 312_000, "level_db": None, "cutoff_hz": 18_400}],
        "codecs": [CODEC],
        **changes,
    }

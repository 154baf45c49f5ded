"""The certificate of a master: what was measured, as the service signs it."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import soundmark
from soundmark.studio.mastering.codecs import CodecResult
from soundmark.studio.mastering.programme import Programme
from soundmark.studio.mastering.repetitions import Repetition

_TOOL: Final = "soundmark"
_NAME_MAX: Final = 255
_NO_NAME: Final = re.compile(r"[/\\\x00-\x1f\x7f-\x9f]")


def describe_measurement(
    programme: Programme, digest: str, repetitions: Sequence[Repetition], codecs: Sequence[CodecResult]
) -> dict[str, Any]:
    """Return the body of `POST /v1/codes/{xr_id}/decode-certificates` for the repetitions of one Code.

    `digest` is that of the file, from `digest_file`. Repetitions that begin in one millisecond are one.

    Source: contract, section 12.
    """
    by_time = {round(each.at_s * 1000): each for each in sorted(repetitions, key=lambda each: each.at_s)}
    return {
        "file_sha256": digest,
        "file_name": _NO_NAME.sub("_", programme.path.name)[:_NAME_MAX],
        "duration_ms": max(1, round(programme.duration_s * 1000)),
        "sample_rate": programme.sample_rate,
        "tool": {"name": _TOOL, "version": soundmark.__version__[:40]},
        "repetitions": [_describe(at_ms, each) for at_ms, each in by_time.items()],
        "codecs": [_describe_codec(each) for each in codecs],
    }


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    Raises: OSError.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _describe(at_ms: int, repetition: Repetition) -> Mapping[str, Any]:
    return {
        "at_ms": at_ms,
        "protocol": repetition.protocol,
        "level_db": repetition.level_db,
        "margin_db": repetition.margin_db,
        "cutoff_hz": repetition.cutoff_hz,
    }


def _describe_codec(result: CodecResult) -> Mapping[str, Any]:
    return {
        "name": result.codec.name,
        "setting": result.codec.setting,
        "heard": result.heard_count,
        "of": len(result.repetitions),
    }

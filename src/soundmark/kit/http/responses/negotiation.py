"""Choosing the media type of a resource that the caller prefers (RFC 9110, section 12.5.1)."""

import itertools
import re
from collections.abc import Sequence
from typing import Final

_RANGE: Final = re.compile(r"\s*([\w!#$&^.+*-]+)/([\w!#$&^.+*-]+)\s*((?:;[^;]*)*)", re.ASCII)
_QUALITY: Final = re.compile(r";\s*[qQ]=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?=;|$)", re.ASCII)
_ANY: Final = "*"
_RANGES_MAX: Final = 64  # Browsers send fewer than ten.


def choose_media_type(accept: Sequence[str], offered: Sequence[str]) -> str | None:
    """Return the one of `offered` that the `Accept` headers prefer; of several, the first.

    Without a header, return the first; if they accept none, None. Malformed media ranges are ignored, and so is what
    follows the first 64.
    """
    parts = itertools.islice((part for header in accept for part in header.split(",", _RANGES_MAX)), _RANGES_MAX)
    ranges = [parsed for part in parts if (parsed := _range(part)) is not None]
    if not accept or not any(header.strip() for header in accept):
        return offered[0]
    best = max(offered, key=lambda media_type: _quality(media_type, ranges))  # Of equals, max keeps the first.
    return best if _quality(best, ranges) > 0 else None


def _range(part: str) -> tuple[str, str, float] | None:
    match = _RANGE.fullmatch(part)
    if match is None:
        return None
    quality = _QUALITY.search(match[3])
    return match[1].lower(), match[2].lower(), 1.0 if quality is None else float(quality[1])


def _quality(media_type: str, ranges: Sequence[tuple[str, str, float]]) -> float:
    """Return the quality that the most specific matching range gives `media_type`; 0 if none matches."""
    main, _, sub = media_type.partition("/")
    for candidate in ((main, sub), (main, _ANY), (_ANY, _ANY)):
        found = [quality for *media_range, quality in ranges if tuple(media_range) == candidate]
        if found:
            return max(found)
    return 0.0

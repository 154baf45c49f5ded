"""How a log is served: the paths of tiles, and the bundles of its entries.

Source: C2SP, tlog-tiles.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from soundmark.core.domain.log.tree import TILE_WIDTH

LEVEL_MAX: Final = 63
_NUMBER_MAX: Final = 2**55
# The largest number has six groups. A path of thousands has more digits than Python turns into an integer.
_NUMBER: Final = r"(?P<number>(?:x[0-9]{3}/){0,5}[0-9]{3})(?:\.p/(?P<width>[1-9][0-9]{0,2}))?"
_TILE: Final = re.compile(rf"(?:(?P<level>0|[1-9][0-9]?)|(?P<entries>entries))/{_NUMBER}")


class TileRequest(NamedTuple):
    """A tile, or with `level` None a bundle of entries, of which `width` hashes or entries are requested."""

    level: int | None
    number: int
    width: int


def parse_path(path: str) -> TileRequest | None:
    """Return what a path below `tile/` names; None for a path that names nothing, or in another spelling."""
    match = _TILE.fullmatch(path)
    if match is None:
        return None
    number = int(match["number"].replace("x", "").replace("/", ""))
    level = None if match["entries"] else int(match["level"])
    width = int(match["width"] or TILE_WIDTH)
    request = TileRequest(level, number, width)
    is_known = (level is None or level <= LEVEL_MAX) and number <= _NUMBER_MAX
    is_partial = match["width"] is not None
    if not is_known or (is_partial and width >= TILE_WIDTH) or format_path(request) != path:
        return None
    return request


def format_path(request: TileRequest) -> str:
    """Return the path of a tile or bundle below `tile/`."""
    level = "entries" if request.level is None else str(request.level)
    number, text = request.number, f"{request.number % 1000:03d}"
    while number >= 1000:  # noqa: PLR2004 - three digits a step
        number //= 1000
        text = f"x{number % 1000:03d}/{text}"
    partial = "" if request.width == TILE_WIDTH else f".p/{request.width}"
    return f"{level}/{text}{partial}"


def write_bundle(entries: Iterable[bytes]) -> bytes:
    """Return the bundle of these entries."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def read_bundle(data: bytes) -> list[bytes]:
    """Return the entries of a bundle.

    Raises: ValueError if it ends within one.
    """
    entries, at = list[bytes](), 0
    while at < len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if end > len(data):
            raise ValueError("the bundle ends within an entry")
        entries.append(data[at + 2 : end])
        at = end
    return entries

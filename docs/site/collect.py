"""Gather the pages of the documentation site from the repository: `collect.py FOLDER`.

Documents stay where readers of the repository look for them, so their links lead through the repository. Here a link to
another page leads to its place in the site. One to a file that is no page becomes plain text.
"""

import posixpath
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from reference import write_reference

ROOT: Final = Path(__file__).parents[2]
# Documents outside docs/, and where they are in the site.
ELSEWHERE: Final = {
    "README.md": "index.md",
    "CODE_OF_CONDUCT.md": "contributing/conduct.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "SECURITY.md": "contributing/security.md",
    "CHANGELOG.md": "changelog.md",
    "bench/MEASURED.md": "explanation/measurements.md",
    "bench/RESULTS.md": "explanation/benchmarks.md",
    "examples/README.md": "guides/examples.md",
    "sdk/js/README.md": "reference/javascript-sdk.md",
    "sdk/python/README.md": "reference/python-sdk.md",
    "tools/mutants/README.md": "contributing/mutants.md",
}
# What is a picture or a file to download.
ASSETS: Final = {"src/soundmark/console/static/icon.svg": "assets/icon.svg"}

_FENCE: Final = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_ITEM: Final = re.compile(r"(?:[-*]|\d+\.) +")
_INDENT: Final = 4  # What Python-Markdown needs below an item of a list; CommonMark takes the width of the item's mark.


def find_places() -> dict[str, str]:
    """Return where each document of the repository is in the site."""
    docs = [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*")) if path.is_file()]
    inside = {
        path.as_posix(): path.relative_to("docs").as_posix() for path in docs if not path.is_relative_to("docs/site")
    }
    return inside | ELSEWHERE | ASSETS


def collect(folder: Path) -> None:
    """Write every page, picture and download of the site into an empty folder."""
    places = find_places()
    for source, place in places.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith(".md"):
            text = (ROOT / source).read_text(encoding="utf-8")
            target.write_text(convert(text, source, places), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, target)
    write_reference(folder)


def convert(text: str, source: str, places: Mapping[str, str]) -> str:
    """Return a document of the repository as a page of the site."""
    parts = []
    for is_code, part in _split_code(text):
        parts.append(part if is_code else _LINK.sub(lambda match: _move_link(match, source, places), part))
    return _indent_lists(re.sub(r"^<!--.*-->\n", "", "".join(parts), flags=re.MULTILINE))


def _split_code(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a document, and whether each is a block of code."""
    end = 0
    for match in _FENCE.finditer(text):
        yield False, text[end : match.start()]
        yield True, match[0]
        end = match.end()
    yield False, text[end:]


def _move_link(match: re.Match[str], source: str, places: Mapping[str, str]) -> str:
    mark, text, target = match.groups()
    if re.match(r"[a-z]+:|#", target):
        return match[0]
    path, _, anchor = target.partition("#")
    named = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    place = places.get(named) or places.get(f"{named}/README.md") or places.get(f"{named}/index.md")
    if place is None:
        return str(text)
    moved = posixpath.relpath(place, posixpath.dirname(places[source]) or ".")
    return f"{mark}[{text}]({moved}{'#' + anchor if anchor else ''})"


def _indent_lists(text: str) -> str:
    """Indent what belongs to an item of a list as far as Python-Markdown wants it."""
    lines = []
    width = 0  # Of the mark of the item that we are in; 0 outside of lists.
    for line in text.split("\n"):
        item = _ITEM.match(line)
        if item is not None:
            width = item.end()
        elif line and not line.startswith(" " * width):
            width = 0
        is_below = width and line.startswith(" " * width) and item is None
        lines.append(" " * (_INDENT - width) + line if is_below else line)
    return "\n".join(lines)


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    collect(Path(sys.argv[1]))

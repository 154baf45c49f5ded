"""The files, headings, commands, metrics and problems that documents name exist; every dependency has its reason."""

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from prometheus_client import REGISTRY

from soundmark import cli
from soundmark.kit.http.responses import problems as kit_problems
from soundmark.kit.http.responses.problems import Kind, Problem

ROOT: Final = Path(__file__).parent.parent
DOCUMENTS: Final = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "sdk/**/*.md", "bench/**/*.md", "tools/**/*.md", "examples/*.md")
    for path in ROOT.glob(pattern)
    if ".venv" not in path.parts
)
OPERATING: Final = (ROOT / "docs" / "guides" / "operating.md").read_text(encoding="utf-8")
ALARMS: Final = (ROOT / "docs" / "operating" / "alarms.md").read_text(encoding="utf-8")

_CODE: Final = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
# A file that a sentence names: `docs/sound.md`, `CONTRIBUTING.md`, `docs/adr/`.
_NAMED: Final = re.compile(
    r"`((?:deploy|docs|sdk|src|tests|bench|requirements|scripts|tools)/[\w./-]*|[A-Z]+\.md|[\w-]+\.toml)`"
)


def prose(path: Path) -> str:
    return _CODE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """Return the anchor of each heading, which a link may name after `#`."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def broken_links(path: Path) -> Iterator[str]:
    for link in _LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        file = path.parent / target if target else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield link


def test_every_link_leads_somewhere() -> None:
    assert len(DOCUMENTS) > 20
    assert {name(path): links for path in DOCUMENTS if (links := list(broken_links(path)))} == {}


def rows_twice(path: Path) -> Iterator[str]:
    """Return the rows that begin with the same two cells as another row of their table, and every repeated line."""
    seen: set[tuple[str, ...]] = set()
    before = ""
    for line in prose(path).splitlines():
        cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:3]) if line.startswith("|") else ()
        if not cells:
            seen.clear()
        if (cells and cells in seen) or (line.strip() and line == before):
            yield line
        seen.add(cells)
        before = line


def test_no_table_has_a_row_twice() -> None:
    """A merge may repeat one."""
    assert {name(path): rows for path in DOCUMENTS if (rows := list(rows_twice(path)))} == {}


def test_every_named_file_exists() -> None:
    missing = {
        f"{name(path)}: {file}"
        for path in DOCUMENTS
        for file in _NAMED.findall(prose(path))
        if not any((base / file).exists() for base in (ROOT, path.parent))
    }
    assert missing == set()


def test_every_named_command_exists() -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        commands = re.findall(r"(?:`|^ *|bin/)soundmark ([a-z]+(?:-[a-z]+)*)", text, re.MULTILINE)
        targets = re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)
        assert set(commands) <= set(cli._COMMANDS), name(path)
        assert set(targets) <= known, name(path)


def test_every_metric_has_an_alarm() -> None:
    components = ("core.app", "core.worker", "audience.app", "audio.app", "kit.http.server.serve")
    for module in (f"soundmark.{component}" for component in components):
        importlib.import_module(module)
    # The client names a counter without the `_total` that it is read with.
    known = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in REGISTRY.collect()
        if metric.name.startswith("soundmark_")
    }
    # Only there where spans are recorded; the guide on tracing names it.
    assert set(re.findall(r"`(soundmark_\w+)`", ALARMS)) == known - {"soundmark_spans_lost_total"}


def test_the_guide_names_every_503() -> None:
    importlib.import_module("soundmark.core.problems")
    core = {problem for problem in Problem.__subclasses__() if problem.__module__ == "soundmark.core.problems"}
    every = {*core, kit_problems.DatabaseUnavailable}
    unavailable = {problem.code for problem in every if problem.kind is Kind.UNAVAILABLE}
    assert set(re.findall(r"^\| 503 `(\w+)` \|", OPERATING, re.MULTILINE)) == unavailable


def dependencies() -> set[str]:
    """Return every package that we name as a requirement: at run time, in tests, and to build."""
    expected: list[str] = []
    for file in (ROOT / "pyproject.toml", ROOT / "sdk" / "python" / "pyproject.toml"):
        declared = tomllib.loads(file.read_text(encoding="utf-8"))
        expected += declared["build-system"]["requires"] + declared["project"]["dependencies"]
        for extra in declared["project"].get("optional-dependencies", {}).values():
            expected += extra
    for file in (ROOT / "requirements").glob("*.in"):
        expected += [line for line in file.read_text(encoding="utf-8").splitlines() if re.match(r"[a-z]", line)]
    for file in (ROOT / "tests").glob("*/package.json"):
        expected += json.loads(file.read_text(encoding="utf-8"))["dependencies"]
    return {re.split(r"[\[<>=~!; ]", one)[0] for one in expected} - {"soundmark-sdk"}


def test_every_dependency_has_its_reason() -> None:
    listed = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    reasons = re.findall(r"^- `([@/\w-]+)`: \S", listed, re.MULTILINE)
    assert sorted(set(reasons)) == sorted(reasons), "a dependency stands twice"
    assert set(reasons) == dependencies()


def test_decisions_are_numbered_without_gaps() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [int(path.name[:4]) for path in records]
    assert numbers == list(range(1, len(records) + 1))
    for number, path in zip(numbers, records, strict=True):
        assert path.read_text(encoding="utf-8").startswith(f"# {number}. ")


@pytest.mark.parametrize("component", ["core", "audience"])
def test_every_lock_has_its_rank(component: str) -> None:
    """Each component has its own database, store and order; Audience's stands below its heading."""
    of_core, heading, of_audience = (ROOT / "docs" / "locks.md").read_text("utf-8").partition("\n## Audience\n")
    assert heading
    ranked = set(re.findall(r"`(\w+\.(?:lock|hold)\w*)`", of_core if component == "core" else of_audience))
    found = {
        f"{path.stem}.{function}"
        for path in (ROOT / "src" / "soundmark" / component / "store").rglob("*.py")
        for function in re.findall(r"^async def ((?:lock|hold)\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert ranked == found

"""docs/threat-model.md and docs/asvs.md claim only what tests show: every test and file that they name exists."""

import re
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
THREATS: Final = (DOCS / "threat-model.md").read_text("utf-8")
ASVS: Final = (DOCS / "asvs.md").read_text("utf-8")
LEVELS: Final = dict(
    line.split() for line in (ROOT / "tests" / "asvs_5_0_0.txt").read_text("utf-8").splitlines() if line[:1] != "#"
)
STATES: Final = {"met", "in part", "not met", "elsewhere", "does not apply"}
_NAMED: Final = re.compile(r"`((?:src|tests|sdk|docs)/[\w./-]+)(?:::(\w+))?`")
_LINK: Final = re.compile(r"\]\([^)]+\)")


class Row(NamedTuple):
    """A requirement of the standard, as docs/asvs.md presents it."""

    number: str
    level: str
    requirement: str
    state: str
    reason: str
    evidence: str


ROWS: Final = [
    Row(*(cell.strip() for cell in line.strip("|").split(" | ")))
    for line in ASVS.splitlines()
    if re.match(r"\| \d", line)
]


def is_missing(file: str, function: str) -> bool:
    """Return whether a file, or the function that is named in it, does not exist."""
    path = ROOT / file
    if not path.exists():
        return True
    return bool(function) and not re.search(rf"^(async )?def {function}\(", path.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", [THREATS, ASVS], ids=["threat-model.md", "asvs.md"])
def test_what_is_named_exists(page: str) -> None:
    named = _NAMED.findall(page)
    assert len(named) > 20
    assert [f"{file}::{function}" for file, function in named if is_missing(file, function)] == []


def test_every_requirement_of_levels_1_and_2_is_there_once_in_order_and_with_its_level() -> None:
    assert (len(LEVELS), Counter(LEVELS.values())["1"]) == (253, 70)
    assert [(row.number, row.level) for row in ROWS] == list(LEVELS.items())


def test_a_requirement_says_what_it_requires_and_why_it_has_its_state() -> None:
    assert {row.state for row in ROWS} == STATES
    assert [row.number for row in ROWS if not row.requirement or not row.reason] == []


def test_what_is_met_names_a_test_and_what_is_met_in_part_some_evidence() -> None:
    for row in ROWS:
        files = [file for file, _ in _NAMED.findall(row.evidence)]
        if row.state == "met":
            assert any("tests/" in file for file in files), row.number
        if row.state == "in part":
            assert files or _LINK.search(row.reason), row.number


def test_the_numbers_of_each_state_are_right_and_what_is_not_met_is_said_first() -> None:
    head = ASVS[: ASVS.index("\n## ")]
    stated = dict(re.findall(rf"^\| ({'|'.join(STATES)}) \|.*\| (\d+) \|$", head, re.MULTILINE))
    assert stated == {state: str(count) for state, count in Counter(row.state for row in ROWS).items()}
    assert re.findall(r"\d+\.\d+\.\d+", head[head.index("Not met are") :]) == [
        row.number for row in ROWS if row.state == "not met"
    ]

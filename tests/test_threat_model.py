"""docs/threat-model.md claims only what tests show: every test that it names exists."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
STATES: Final = {"met", "in part", "not met", "elsewhere"}
_NAMED: Final = re.compile(r"`((?:tests|sdk/python/tests)/[\w/]+\.py)(?:::(\w+))?`")


def requirements() -> dict[str, list[str]]:
    """Return the state, reason and tests of each row of the table, by its requirement."""
    section = PAGE[PAGE.index("## OWASP ASVS 5.0") : PAGE.index("### Cryptography")]
    lines = [line for line in section.splitlines() if re.match(r"\| \d", line)]
    rows = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in lines]
    return {row[0]: [*row[1:], ""][:3] for row in rows}


ROWS: Final = requirements()


def test_every_named_test_exists() -> None:
    named = _NAMED.findall(PAGE)
    assert len(named) > 50
    missing = []
    for file, function in named:
        path = ROOT / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if not text or (function and not re.search(rf"^(async )?def {function}\(", text, re.MULTILINE)):
            missing.append(f"{file}::{function}")
    assert missing == []


def test_a_requirement_names_its_test_or_what_is_missing() -> None:
    assert len(ROWS) > 50
    for requirement, (state, reason, tests) in ROWS.items():
        assert state in STATES, requirement
        assert reason, requirement
        assert bool(_NAMED.findall(tests)) or state != "met", requirement


def test_requirements_are_listed_once_and_in_order() -> None:
    numbers = [
        tuple(map(int, number.split(".")))
        for requirement in ROWS
        for number in re.findall(r"\d+\.\d+\.\d+", requirement)
    ]
    assert len(set(numbers)) == len(numbers)
    firsts = [tuple(map(int, requirement.split()[0].strip(",").split("."))) for requirement in ROWS]
    assert firsts == sorted(firsts)

"""The names of a form's fields, as the form and the list of its refusals say them."""

import re
from pathlib import Path

import pytest

import soundmark.console
from soundmark.console.language import LOCALES, get_language

FOLDER = Path(soundmark.console.__file__).parent / "templates"
_CONTROL = re.compile(r"""(?:field|choice|text_area|boxes|id_field)\("(\w+)", t\("([\w.]+)"\)""")
# Of a report, the days are in UTC and the last is included; a new entry's own id is no choice among others.
_OTHER_MEANINGS = {"reports.from", "reports.to", "lists.id"}


@pytest.mark.parametrize("code", LOCALES)
def test_a_refused_field_has_the_name_that_its_form_gives_it(code: str) -> None:
    language = get_language(code)
    labels = {found for path in FOLDER.rglob("*.html") for found in _CONTROL.findall(path.read_text(encoding="utf-8"))}

    assert len(labels) > 30, "the pattern finds the controls"
    differing = {
        f"{name}: {language.say(label)}"
        for name, label in labels
        if label not in _OTHER_MEANINGS
        and language.knows(f"fields.{name}")
        and language.say(f"fields.{name}") != language.say(label)
    }
    assert differing == set()

"""What templates share: the head of each page, and the names of fields in forms and in the list of their refusals."""

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


def test_every_page_begins_with_the_same_head() -> None:
    """A heading that only a reader of the screen needs is hidden; three pages are laid out by themselves."""
    own = {"components/page.html", "design/design.html", "listen/listen.html", "sign_in/front.html"}
    texts = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.html")}

    assert [
        name for name, text in texts.items() if name not in own and re.search("<h1(?! class=.visually-h)", text)
    ] == []

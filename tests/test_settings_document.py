"""docs/settings.md lists exactly the settings of the code, and explains each."""

import re
from typing import Final

import pytest
from settings_page import PAGE, RENEW, printed

from soundmark import settings
from soundmark.kit.settings import environment_name
from soundmark.settings.registry import PlatformFallbacks
from soundmark.supervision import plan

TEXT: Final = PAGE.read_text(encoding="utf-8")
VARIABLES: Final = sorted(environment_name(name) for name in settings.NAMES)


def section(heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def test_the_tables_match_the_settings() -> None:
    assert printed(TEXT) == TEXT, f"docs/settings.md and the settings differ: {RENEW}"


def test_every_model_of_settings_has_a_word() -> None:
    models = {
        value
        for value in vars(settings).values()
        if isinstance(value, type) and issubclass(value, settings.ProcessSettings)
    }
    assert models - {settings.ProcessSettings, settings.ServedSettings} == set(settings.READERS.values())
    words = re.findall(r"^\| ([a-z ]+) \|", section("Who reads what"), re.MULTILINE)
    assert set(words) == {*settings.READERS, "all", "word in the table"}


def test_the_page_has_a_row_for_each_setting_and_no_other() -> None:
    assert sorted(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) == VARIABLES


def test_every_name_on_the_page_is_known_to_a_process() -> None:
    assert set(re.findall(r"SOUNDMARK_[A-Z_]+[A-Z]", TEXT)) == set(VARIABLES)


def test_each_process_setting_is_explained(subtests: pytest.Subtests) -> None:
    for name in sorted(settings.NAMES - PlatformFallbacks.model_fields.keys()):
        with subtests.test(name=name):
            assert re.search(rf"^- .*`{environment_name(name)}`.*:", section("What they mean"), re.MULTILINE)


def test_settings_that_up_chooses_are_named() -> None:
    last = section("Under `soundmark up`")
    refused = last[last.index("`up` refuses") : last.index("A `SOUNDMARK_MASTER_KEY`")]
    assert set(re.findall(r"SOUNDMARK_([A-Z_]+)", refused)) == set(plan._OURS)

"""docs/settings.md says of every setting what the code says, and names none that does not exist."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import annotated_types
import pytest

from soundmark import settings
from soundmark.embedded import plan

PAGE: Final = (Path(__file__).parent.parent / "docs" / "settings.md").read_text(encoding="utf-8")
# The words by which the page names those who read settings.
READERS: Final[Mapping[str, type[settings.ProcessSettings]]] = {
    **settings.COMPONENTS,
    "core jobs": settings.CoreJobsSettings,
    "core database": settings.CoreDatabaseSettings,
    "audience jobs": settings.AudienceDatabaseSettings,
    "audience keys": settings.AudienceKeysSettings,
    "keys": settings.KeysSettings,
    "rotation": settings.RotationSettings,
    "legacy import": settings.LegacyImportSettings,
    "contract": settings.ContractSettings,
    "client": settings.ClientSettings,
    "up": settings.UpSettings,
}
NAMES: Final = sorted({name for model in READERS.values() for name in model.model_fields})


def rows(heading: str, columns_count: int) -> dict[str, list[str]]:
    """The rows of the table below a heading, by their first cell without backquotes."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None, heading
    lines = [line for line in section[1].splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(row) == columns_count for row in cells), cells
    assert len({row[0] for row in cells}) == len(cells), "a row stands twice"
    return {row[0].strip("`"): row[1:] for row in cells}


ROWS: Final = rows("The settings", 5)


def fields(name: str) -> dict[str, Any]:
    """The field of a setting in each model that has it, by reader."""
    return {reader: model.model_fields[name] for reader, model in READERS.items() if name in model.model_fields}


def constraints(annotation: Any) -> Iterator[Any]:
    """Whatever is annotated anywhere in a type."""
    for part in get_args(annotation):
        if isinstance(part, annotated_types.Ge | annotated_types.Le):
            yield part
        elif hasattr(part, "metadata"):  # Pydantic's Field inside Annotated.
            yield from part.metadata
        yield from constraints(part)


def range_of(field: Any) -> str | None:
    """How the page writes what a field allows; None where it is told in words."""
    found = [*field.metadata, *constraints(field.annotation)]
    least = next((part.ge for part in found if isinstance(part, annotated_types.Ge)), None)
    most = next((part.le for part in found if isinstance(part, annotated_types.Le)), None)
    if least is not None:
        return f"{least}..{'' if most is None else most}"
    for candidate in (field.annotation, *get_args(field.annotation)):
        if get_origin(candidate) is Literal:
            return ", ".join(f"`{choice}`" for choice in get_args(candidate))
    return None


def test_every_model_of_settings_has_a_word() -> None:
    models = {
        value
        for value in vars(settings).values()
        if isinstance(value, type) and issubclass(value, settings.ProcessSettings)
    }
    assert models - {settings.ProcessSettings, settings.ServedSettings} == set(READERS.values())
    assert set(rows("Who reads what", 2)) == {*READERS, "all"}


def test_the_page_has_a_row_for_each_setting_and_no_other() -> None:
    assert list(ROWS) == [f"SOUNDMARK_{name.upper()}" for name in NAMES]


def test_every_name_on_the_page_is_one_that_a_process_knows() -> None:
    known = {f"SOUNDMARK_{name}" for name in settings._KNOWN}
    assert set(re.findall(r"SOUNDMARK_[A-Z_]+[A-Z]", PAGE)) == known


@pytest.mark.parametrize("name", NAMES)
def test_a_row_says_what_the_code_says(name: str) -> None:
    required_by, default, allowed, read_by = ROWS[f"SOUNDMARK_{name.upper()}"]
    found = fields(name)

    required = [reader for reader, field in found.items() if field.is_required()]
    defaults = {field.default for field in found.values() if not field.is_required()}
    assert required_by == (", ".join(required) or "nobody")
    assert read_by == ("all" if len(found) == len(READERS) else ", ".join(found))
    assert len(defaults) <= 1, "the page has one cell for it"
    assert default == (written(defaults.pop()) if defaults else "–")
    in_code = range_of(next(iter(found.values())))
    if in_code is not None:
        assert allowed == in_code
    assert allowed


def written(default: Any) -> str:
    if default is None:
        return "unset"
    return "empty" if default == () else f"`{default}`"


@pytest.mark.parametrize("name", NAMES)
def test_each_setting_is_explained(name: str) -> None:
    explained = PAGE[PAGE.index("## What they mean") : PAGE.index("## Under `soundmark up`")]
    assert re.search(rf"^- .*`SOUNDMARK_{name.upper()}`.*:", explained, re.MULTILINE)


def test_what_up_decides_itself_is_named() -> None:
    last = PAGE[PAGE.index("## Under `soundmark up`") :]
    refused = last[last.index("refuses to be told") : last.index("A `SOUNDMARK_MASTER_KEY`")]
    assert set(re.findall(r"SOUNDMARK_([A-Z_]+)", refused)) == set(plan._OURS)

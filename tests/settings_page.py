"""The tables of docs/settings.md, generated from the settings; the prose around them is written by hand.

After an intended change: `.venv/bin/python tests/settings_page.py`, then read the diff.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import annotated_types
from pydantic.fields import FieldInfo

from soundmark.kit.settings import environment_name
from soundmark.settings import NAMES, READERS
from soundmark.settings.fields import Allowed
from soundmark.settings.registry import PlatformFallbacks, PlatformGroup

PAGE: Final = Path(__file__).parent.parent / "docs" / "settings.md"
RENEW: Final = "if it was changed on purpose, run `.venv/bin/python tests/settings_page.py` and review the diff"


def printed(page: str) -> str:
    """Return `page` with its tables as the code has them now."""
    tables = {"settings": _process_settings(), "platform settings": _platform_settings()}
    for name, table in tables.items():
        begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->\n"
        page, count = re.subn(f"{begin}.*?{end}", lambda _, it=begin + table + end: it, page, flags=re.DOTALL)
        assert count == 1, f"the page has one place for the table of {name}"
    return page


def _process_settings() -> str:
    head = ("setting", "required by", "default", "values", "read by")
    return _table(head, (_process_row(name) for name in sorted(NAMES - PlatformFallbacks.model_fields.keys())))


def _process_row(name: str) -> tuple[str, ...]:
    readers = {reader: model for reader, model in READERS.items() if name in model.model_fields}
    fields = {reader: model.model_fields[name] for reader, model in readers.items()}
    required_by = [reader for reader, field in fields.items() if field.is_required()]
    default = _cell({reader: _default_of(field) for reader, field in fields.items() if not field.is_required()})
    values = _cell({reader: _values(get_type_hints(it, include_extras=True)[name]) for reader, it in readers.items()})
    read_by = "all" if len(readers) == len(READERS) else ", ".join(readers)
    return f"`{environment_name(name)}`", ", ".join(required_by) or "–", default, values, read_by


def _cell(texts: dict[str, str]) -> str:
    """Return the text of all readers or, where they differ, each text with its readers."""
    different = dict.fromkeys(texts.values())
    if len(different) <= 1:
        return next(iter(different), "–")
    readers = {text: ", ".join(reader for reader, of_it in texts.items() if of_it == text) for text in different}
    return "; ".join(f"{text} ({readers[text]})" for text in different)


class _NamesOfSettings(dict[str, str]):
    """Every setting's variable in place of its value, for a default that is another setting."""

    def __missing__(self, name: str) -> str:
        return environment_name(name)


def _default_of(field: FieldInfo) -> str:
    return _default(field.get_default(call_default_factory=True, validated_data=_NamesOfSettings()))


def _platform_settings() -> str:
    groups: tuple[type[PlatformGroup], ...] = PlatformFallbacks.__bases__
    head = ("setting", "default", "values", "meaning")
    return "\n".join(f"### {group.title}\n\n{_table(head, _platform_rows(group))}" for group in groups)


def _platform_rows(group: type[PlatformGroup]) -> Iterator[tuple[str, ...]]:
    hints, defaults = get_type_hints(group, include_extras=True), group()
    for name, field in group.model_fields.items():
        assert field.description, f"{name} has a line of description"
        yield f"`{environment_name(name)}`", _default(getattr(defaults, name)), _values(hints[name]), field.description


def _default(value: Any) -> str:
    match value:
        case None:
            return "unset"
        case ():
            return "empty"
        case bool():
            return f"`{str(value).lower()}`"
        case _:
            return f"`{value}`"


def _values(hint: Any) -> str:
    parts = list(_parts(hint))
    for part in parts:
        if isinstance(part, Allowed):
            return part.text
        if get_origin(part) is Literal:
            return ", ".join(f"`{choice}`" for choice in get_args(part))
    if bool in parts:
        return "`true`, `false`"
    least = next(part.ge for part in parts if isinstance(part, annotated_types.Ge))
    most = next((part.le for part in parts if isinstance(part, annotated_types.Le)), "")
    return f"{least}..{most}"


def _parts(hint: Any) -> Iterator[Any]:
    """Yield a type, the types inside it, and what they are annotated with."""
    yield hint
    if isinstance(hint, FieldInfo):
        yield from hint.metadata
    for inner in (*get_args(hint), *getattr(hint, "__metadata__", ())):
        yield from _parts(inner)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def renew() -> None:
    """Print the tables of the page as the code has them now."""
    PAGE.write_text(printed(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    renew()

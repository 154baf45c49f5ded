"""Form bodies and queries as the card provider reads them: names in brackets make objects and lists."""

import re
from typing import Any, Final
from urllib.parse import parse_qsl

_NAME: Final = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_PART: Final = re.compile(r"\[([^\[\]]*)\]")
_FIELDS_MAX: Final = 500
_TEXT_CHARS_MAX: Final = 64 * 1024


class MalformedForm(ValueError):
    """The names do not make an object."""


def parse_form(text: str) -> dict[str, Any]:
    """Return what a body or a query says; `a[0][b]=1` and `a[][b]=1` make a list.

    Raises: MalformedForm.
    """
    if len(text) > _TEXT_CHARS_MAX:
        raise MalformedForm
    found: dict[str, Any] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict")
    except ValueError:
        raise MalformedForm from None
    for name, value in pairs:
        match = _NAME.fullmatch(name)
        if match is None:
            raise MalformedForm
        _put(found, [match[1], *_PART.findall(match[2])], value)
    return {name: _to_list(value) for name, value in found.items()}


def _put(target: dict[str, Any], path: list[str], value: str) -> None:
    *parents, last = path
    for part in parents:
        target = target.setdefault(part or str(len(target)), {})
        if not isinstance(target, dict):
            raise MalformedForm
    target[last or str(len(target))] = value


def _to_list(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    items = {name: _to_list(item) for name, item in value.items()}
    if items and all(name.isdecimal() for name in items):
        return [items[name] for name in sorted(items, key=int)]
    return items

"""JSON answers into records, by the records' own types."""

import dataclasses
import json
import types
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from soundmark_sdk import timestamps
from soundmark_sdk.client.failures import AnswerMalformed
from soundmark_sdk.client.records import Page, Record
from soundmark_sdk.failures import ReceiverFailure
from soundmark_sdk.records import Intent

R = TypeVar("R", bound=Record)

_MAPPINGS: Final = {Mapping, dict}
# Resolved once for each kind of record.
_HINTS: Final[dict[type[Record], dict[str, Any]]] = {}


def read_document(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body is.

    Raises: AnswerMalformed.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise AnswerMalformed("The service answered what is no JSON.") from None
    return _object(document, "answer")


def read_record(kind: type[R], document: Any, where: str = "answer") -> R:
    """Return the record that a JSON object holds: every member it needs, and any others.

    Raises: AnswerMalformed, naming the member that is missing or of another type; never what it held.
    """
    members = _object(document, where)
    values = {name: _read(hint, members, name, where) for name, hint in _hints(kind).items() if name != "document"}
    return kind(**values, document=members)


def read_page(kind: type[R], body: bytes) -> Page[R]:
    """Return one page of a list of `kind`.

    Raises: AnswerMalformed.
    """
    document = read_document(body)
    data = _read(tuple[kind, ...], document, "data", "answer")  # type: ignore[valid-type]  # a type at run time
    return Page(data, _read(str | None, document, "next_cursor", "answer"), document)


def _hints(kind: type[Record]) -> dict[str, Any]:
    if kind not in _HINTS:
        hints = get_type_hints(kind)
        _HINTS[kind] = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return _HINTS[kind]


def _read(hint: Any, members: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in members:
        raise AnswerMalformed(f"The service's {where} lacks the member {name}.")
    return _convert(hint, members[name], f"{where}.{name}")


def _convert(hint: Any, value: Any, where: str) -> Any:  # noqa: PLR0911 - one way out for each sort of type
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        return _any_of(get_args(hint), value, where)
    if origin is Literal:
        return _expect(value in get_args(hint), value, where)
    if origin is tuple:
        items = _expect(isinstance(value, list), value, where)
        return tuple(_convert(get_args(hint)[0], item, f"{where}[]") for item in items)
    if origin in _MAPPINGS:
        kept = _object(value, where)
        item_hint = get_args(hint)[1]
        if isinstance(item_hint, type) and issubclass(item_hint, Record):
            return {name: _convert(item_hint, item, f"{where}[]") for name, item in kept.items()}
        return kept
    if hint is datetime:
        return _moment(value, where)
    if hint is Intent:
        return _intent(value, where)
    if isinstance(hint, type) and issubclass(hint, Record):
        return read_record(hint, value, where)
    # A boolean is an int to Python and to nobody else.
    return _expect(type(value) is hint, value, where)


def _any_of(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in hints:
        return None
    others = [hint for hint in hints if hint is not type(None)]
    if len(others) == 1:
        return _convert(others[0], value, where)
    return _expect(type(value) in others, value, where)


def _intent(value: Any, where: str) -> Intent:
    members = _object(value, where)
    kind, action = _read(str, members, "type", where), _read(str, members, "action", where)
    return Intent(kind, action, _object(members.get("resource"), f"{where}.resource"))


def _moment(value: Any, where: str) -> datetime:
    try:
        return timestamps.parse(value)
    except ReceiverFailure:
        raise _other(where) from None


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _other(where)
    return value


def _expect(is_right: bool, value: Any, where: str) -> Any:
    if not is_right:
        raise _other(where)
    return value


def _other(where: str) -> AnswerMalformed:
    return AnswerMalformed(f"The service's {where} is of another type than the wire contract's.")

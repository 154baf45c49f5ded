"""Turn JSON answers into records."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from soundmark_sdk import timestamps
from soundmark_sdk.client.failures import AnswerMalformed
from soundmark_sdk.client.records import Page, Record
from soundmark_sdk.failures import Unverifiable

R = TypeVar("R", bound=Record)
T = TypeVar("T")

# The only two parts of msgspec's messages that are repeated. The rest may hold the value that was refused.
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
_PATH: Final = re.compile(r" - at `\$(.+)`$")
_INDEX: Final = re.compile(r"\[[^]]*\]")


@dataclass(frozen=True, slots=True)
class _Envelope:
    """The members that every list answer has."""

    data: list[Any]
    next_cursor: str | None


def read_document(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises: AnswerMalformed.
    """
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise AnswerMalformed("The service's answer is not JSON.") from None
    return _convert(dict[str, Any], document, "answer")


def read_record(kind: type[R], document: Any, where: str = "answer") -> R:
    """Return the record in a JSON object, which may have more members than the record.

    Raises: AnswerMalformed, which names the member that is missing or has another type, but not its value.
    """
    record = _convert(kind, document, where)
    _complete(record, document, where)
    return record


def read_page(kind: type[R], body: bytes) -> Page[R]:
    """Return one page of a list of `kind`.

    Raises: AnswerMalformed.
    """
    document = read_document(body)
    envelope = _convert(_Envelope, document, "answer")
    data = tuple(read_record(kind, item, "answer.data[]") for item in envelope.data)
    return Page(data, envelope.next_cursor, document)


def _convert(kind: type[T], value: Any, where: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        missing, path = _MISSING.match(str(error)), _PATH.search(str(error))
        place = where + (_INDEX.sub("[]", path[1]) if path else "")
        raise (_make_missing(place, missing[1]) if missing else _make_mistyped(place)) from None


def _complete(record: Record, document: Mapping[str, Any], where: str) -> None:
    """Give the record, and every record inside it, its JSON object; check how their timestamps are written.

    msgspec does neither: it keeps only the members that it knows, and it reads every spelling of RFC 3339.
    """
    object.__setattr__(record, "document", document)
    for field in fields(record):
        # A member that the record has a default for may be absent.
        if field.name != "document" and field.name in document:
            _complete_value(getattr(record, field.name), document[field.name], f"{where}.{field.name}")


def _complete_value(value: Any, original: Any, where: str) -> None:
    match value:
        case Record():
            _complete(value, original, where)
        case tuple():
            for item, original_item in zip(value, original, strict=True):
                _complete_value(item, original_item, f"{where}[]")
        case dict():
            for name, item in value.items():
                _complete_value(item, original[name], f"{where}[]")
        case datetime():
            try:
                timestamps.parse(original)
            except Unverifiable:
                raise _make_mistyped(where) from None
        case _:
            pass


def _make_missing(where: str, name: str) -> AnswerMalformed:
    return AnswerMalformed(f"The service's {where} lacks the member {name}.")


def _make_mistyped(where: str) -> AnswerMalformed:
    return AnswerMalformed(f"The service's {where} has the wrong type.")

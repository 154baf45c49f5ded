"""Reading a notification of the local provider, whose form is not documented: only a payment's id is taken from it.

Nothing else in it is used. Source: contract, section 7; `providers/flouci`.
"""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl

from soundmark.core.providers.flouci.client import PAYMENT_ID

MEMBERS: Final = ("payment_id", "id", "data", "result")  # Of a JSON body, all others are skipped.

_CANDIDATES_MAX: Final = 8
_FIELDS_MAX: Final = 64
# An id has at most 100 characters, which percent-encoding makes three times as long; so it does the longest name.
_FIELD_BYTES_MAX: Final = 3 * (100 + 24)
# Each place in which the provider, or somebody's recording of it, has put the id.
_NAMES: Final = ("payment_id", "id")
_OBJECTS: Final = ("data", "result")
_FIELDS: Final = (*_NAMES, *(f"{name}.payment_id" for name in _OBJECTS), *(f"{name}[payment_id]" for name in _OBJECTS))


def find_payment_ids(query_string: bytes, form: bytes, json: Any) -> list[str]:
    """Return the well-formed ids that the payment may have: those in the query, in a form, and in a JSON value."""
    found = [*_in_fields(query_string), *_in_fields(form), *_in_json(json)]
    well_formed = [text for text in found if PAYMENT_ID.fullmatch(text)]
    return list(dict.fromkeys(well_formed))[:_CANDIDATES_MAX]


def _in_fields(encoded: bytes) -> Iterator[str]:
    if encoded.count(b"&") >= _FIELDS_MAX:
        return
    # What is too long for an id is not decoded.
    short = b"&".join(field for field in encoded.split(b"&") if len(field) <= _FIELD_BYTES_MAX)
    fields = parse_qsl(short.decode("latin-1"))
    for name in _FIELDS:
        yield from (value for each, value in fields if each == name)


def _in_json(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    places: list[Any] = [value.get(name) for name in _NAMES]
    places += [inner.get("payment_id") for name in _OBJECTS if isinstance(inner := value.get(name), dict)]
    for each in places:
        if isinstance(each, str):
            yield each
        elif isinstance(each, int) and not isinstance(each, bool):
            yield str(each)

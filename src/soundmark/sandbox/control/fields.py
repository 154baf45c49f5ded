"""What a request to `/control` says: a JSON object or a form, checked field by field."""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from starlette.requests import Request

from soundmark.sandbox.pages import FormTooLarge, parse_fields, read_limited

_TEXT_CHARS_MAX: Final = 10_000
_YES: Final = {"true": True, "on": True, "1": True, "false": False, "": False, "0": False}


class ControlRefused(Exception):
    """The request cannot be carried out; the message says why."""

    def __init__(self, message: str, status: int = 422) -> None:
        super().__init__(message)
        self.status: Final = status


class Fields:
    """The fields of one request. In a form every value is text, and an empty one counts as absent."""

    def __init__(self, values: Mapping[str, Any], *, is_form: bool) -> None:
        self._values: Final = {name: value for name, value in values.items() if not (is_form and value == "")}
        self.is_form: Final = is_form

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text.

        Raises: ControlRefused.
        """
        value = self._values.get(name, default)
        if not isinstance(value, str) or len(value) > _TEXT_CHARS_MAX:
            raise ControlRefused(f"{name} must be a text")
        return value

    def choice(self, name: str, choices: Collection[str], default: str | None = None) -> str:
        """Return one of `choices`.

        Raises: ControlRefused.
        """
        value = self.text(name, default)
        if value not in choices:
            raise ControlRefused(f"{name} must be one of {', '.join(choices)}")
        return value

    def whole(self, name: str, default: int | None = None, *, least: int = 0, most: int = 10**12) -> int:
        """Return a whole number.

        Raises: ControlRefused.
        """
        value = self._values.get(name, default)
        if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= len(str(most)):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ControlRefused(f"{name} must be a whole number from {least} to {most}")
        return value

    def seconds(self, name: str, default: float, most: float = 600) -> float:
        """Return a number of seconds.

        Raises: ControlRefused.
        """
        value = self._values.get(name, default)
        try:
            seconds = float(value)
        except (TypeError, ValueError):
            seconds = -1
        if not 0 <= seconds <= most:
            raise ControlRefused(f"{name} must be a number from 0 to {most:g}")
        return seconds

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether something is wanted.

        Raises: ControlRefused.
        """
        value = self._values.get(name, default)
        value = _YES.get(value.lower()) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise ControlRefused(f"{name} must be true or false")
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a JSON object; in a form it is text.

        Raises: ControlRefused.
        """
        value = self._values.get(name, {})
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                value = None
        if not isinstance(value, dict):
            raise ControlRefused(f"{name} must be a JSON object")
        return value

    def has(self, name: str) -> bool:
        """Return whether the field is there and is not null."""
        return self._values.get(name) is not None

    def require_known(self, known: Collection[str]) -> None:
        """Refuse a field that means nothing here.

        Raises: ControlRefused.
        """
        unknown = self._values.keys() - {*known, "back"}
        if unknown:
            raise ControlRefused(f"unknown: {', '.join(sorted(unknown))}")


async def read_fields(request: Request) -> Fields:
    """Return the fields of a request.

    Raises: ControlRefused.
    """
    try:
        body = await read_limited(request)
        if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            return Fields(await parse_fields(body), is_form=True)
    except FormTooLarge:
        raise ControlRefused("the body is too large", 413) from None
    try:
        values = json.loads(body or b"{}")
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise ControlRefused("the body must be a JSON object", 400)
    return Fields(values, is_form=False)

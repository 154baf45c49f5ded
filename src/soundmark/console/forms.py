"""What a person typed into a form."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from starlette.requests import Request

from soundmark.kit.http.requests.bodies import parse_in_turn, read_body

# The largest form issues a Code: an intent of 16 KiB, percent-encoded.
FORM_BYTES_MAX: Final = 256 * 1024
_FIELDS_MAX: Final = 400
_INTEGER_CHARS_MAX: Final = 20  # int() refuses thousands of digits with an error of its own.


class FieldRefused(Exception):
    """A field cannot be read. `message` is the key of the sentence that says why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name: Final = name
        self.message: Final = message


class FormMalformed(Exception):
    """The body is no form that a page of the console sends."""


class Form:
    """The fields of a form in their order; a name may occur several times."""

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields: Final = tuple(fields)
        self._last: Final = dict(self._fields)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._fields)

    def __bool__(self) -> bool:
        return bool(self._fields)

    def has(self, name: str) -> bool:
        """Return whether a field was sent with a value other than spaces."""
        return bool(self.text(name))

    def text(self, name: str, default: str = "") -> str:
        """Return a field without the spaces around it."""
        return self._last.get(name, default).strip()

    def raw(self, name: str, default: str = "") -> str:
        """Return a field without stripping it, with the CRLF line ends of text areas replaced by LF."""
        return self._last.get(name, default).replace("\r\n", "\n")

    def segment(self, name: str) -> str:
        """Return a field, unaltered, that a call to Core has in its path.

        Raises: FormMalformed for one that would change the path; no page of ours sends such a field.
        """
        value = self.raw(name)
        if value in {"", ".", ".."}:
            raise FormMalformed
        return value

    def texts(self, name: str) -> list[str]:
        """Return all values of a repeated field, such as the boxes that were ticked."""
        return [value for field, value in self._fields if field == name]

    def integer(self, name: str) -> int:
        """Return a whole number.

        Raises: FieldRefused.
        """
        text = self.text(name)
        if not (text.isascii() and text.removeprefix("-").isdecimal() and len(text) < _INTEGER_CHARS_MAX):
            raise FieldRefused(name, "forms.not_a_number")
        return int(text)

    def instant(self, name: str) -> datetime | None:
        """Return a moment, or None if the field is empty.

        The field `<name>_zone` names the time zone in which it was typed, as a script of the page fills it in; without
        it the moment is in UTC. A text that is still the one in `<name>_shown` is the moment in `<name>_exact`: an hour
        that a clock repeats cannot be told from its text.

        Raises: FieldRefused.
        """
        text = self.text(name)
        if self.has(f"{name}_exact") and _is_same_time(text, self.text(f"{name}_shown")):
            text = self.text(f"{name}_exact")
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            zone = ZoneInfo(self.text(f"{name}_zone") or "UTC")
            # The first and the last day of the calendar may be outside it in UTC.
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
        except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
            raise FieldRefused(name, "forms.not_a_time") from None


def write_instant(moment: datetime | None) -> str:
    """Return a moment in UTC as browsers write it into a field: seconds and their fraction only where it has any."""
    if moment is None:
        return ""
    unit = "milliseconds" if moment.microsecond else "seconds" if moment.second else "minutes"
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=unit)
    return text.rstrip("0") if moment.microsecond else text


async def read_form(request: Request) -> Form:
    """Return the form in a request.

    Raises: FormMalformed. kit.http.responses.problems.PayloadTooLarge.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise FormMalformed
    body = await read_body(request, FORM_BYTES_MAX)
    try:
        return Form(await parse_in_turn(body, _parse))
    except ValueError:
        raise FormMalformed from None


def _parse(body: bytes) -> list[tuple[str, str]]:
    """Raises: ValueError, for too many fields before any is decoded."""
    return parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict")


def _is_same_time(typed: str, shown: str) -> bool:
    """Return whether two texts say the same time; browsers write one without the zeros at its end."""
    try:
        return typed == shown or datetime.fromisoformat(typed) == datetime.fromisoformat(shown)
    except ValueError:
        return False

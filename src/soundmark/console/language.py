"""The languages of the console: its messages, and how dates and numbers are written."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final

from babel import Locale, dates, numbers
from babel.core import negotiate_locale
from markupsafe import Markup, escape

# The first is the one of a browser that asks for none of them.
LOCALES: Final[Mapping[str, Locale]] = {"en": Locale("en", "GB"), "fr": Locale("fr", "FR")}
_MINUTES_KEPT: Final = 4096  # A list has hundreds of moments, many in the same minute; some 400 kB.
_COUNTRY_CHARS: Final = 2
_BESIDE_DIGIT: Final = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
NAMES: Final[Mapping[str, str]] = {"en": "English", "fr": "Français"}


class Language:
    """One language: its code (ISO 639-1), messages and formats."""

    def __init__(self, code: str) -> None:
        self.code: Final = code
        self._locale: Final = LOCALES[code]
        self._messages: Final = read_messages(code)

    def say(self, key: str, **values: object) -> str:
        """Return a message with its values filled in; with a value `count`, in the form for that number.

        Raises: KeyError for an unknown key.
        """
        return self._find(key, values).format_map(values)

    def isolate(self, key: str, **values: object) -> Markup:
        """Return a message in which each text, such as a name that people gave, keeps its direction to itself.

        Raises: KeyError for an unknown key.
        """
        message = self._find(key, values)
        return _fill(message, {name: isolate(value) if type(value) is str else value for name, value in values.items()})

    def mark(self, key: str, **values: object) -> Markup:
        """Return a message whose values may have marks of their own, such as links; all else is escaped.

        Raises: KeyError for an unknown key.
        """
        return _fill(self._messages[key], values)

    def _find(self, key: str, values: dict[str, object]) -> str:
        """Return the message of a key, in the form for the `count` of `values` if it has one, which is written out."""
        if "count" in values and key not in self._messages:
            count = values["count"]
            assert isinstance(count, int), "a count is a whole number"
            key = f"{key}.{self._locale.plural_form(count)}"
            values["count"] = Markup(self.number(count))  # noqa: S704 - digits and their separators
        return self._messages[key]

    def knows(self, key: str) -> bool:
        """Return whether there is such a message."""
        return key in self._messages

    def moment(self, value: datetime) -> str:
        """Return a date and time in UTC, which the page says beside it."""
        return f"{self.minute(value)} UTC"

    def minute(self, value: datetime) -> str:
        """Return a date and time in UTC for a page that says so elsewhere."""
        return _write_minute(self.code, value.astimezone(UTC).replace(second=0, microsecond=0))

    def mark_moment(self, value: datetime | None) -> Markup:
        """Return a `<time>` element, which the pages' script shows in local time. A page of a list has hundreds.

        The style sheet says that it is in UTC where there are no scripts: a word that goes away would move the page.
        """
        if value is None:
            return Markup('<span class="absent">{}</span>').format(self._messages["lists.absent"])
        minute = value.astimezone(UTC).isoformat("T", "minutes")[: -len("+00:00")]
        # Digits and names of months need no escaping, which would take longer than all the rest.
        return Markup(f'<time datetime="{minute}Z">{self.minute(value)}</time>')  # noqa: S704 - only dates

    def span(self, value: datetime, now: datetime) -> str:
        """Return how far a moment is from now, in its largest unit, such as "in 6 days"."""
        return dates.format_timedelta(value - now, threshold=1, add_direction=True, locale=self._locale)

    def day(self, value: date) -> str:
        """Return a date."""
        return dates.format_date(value, "d MMM y", locale=self._locale)

    def month(self, value: date) -> str:
        """Return the month of a date."""
        return dates.format_date(value, "MMMM y", locale=self._locale)

    def iso_day(self, text: str) -> str:
        """Return a date that is given as an ISO 8601 text."""
        return self.day(date.fromisoformat(text))

    def number(self, value: float) -> str:
        """Return a number with its groups of digits."""
        return numbers.format_decimal(value, locale=self._locale)

    def ratio(self, value: float) -> str:
        """Return a ratio with two decimals, as far as it has any."""
        return numbers.format_decimal(value, "#,##0.##", locale=self._locale)

    def change(self, before: float, now: float) -> str:
        """Return by how many per cent a number has changed, with its sign. `before` is not 0."""
        pattern = self._locale.percent_formats[None].pattern
        return numbers.format_percent((now - before) / before, f"+{pattern};-{pattern}", locale=self._locale)

    def country(self, code: str) -> str:
        """Return the name of a country (ISO 3166-1 alpha-2); what is no such code is returned as it is."""
        return self._locale.territories.get(code, code) if len(code) == _COUNTRY_CHARS else code

    def money(self, amount_minor: int, currency: str) -> str:
        """Return an amount that is given in the currency's smallest unit."""
        amount = Decimal(amount_minor).scaleb(-numbers.get_currency_precision(currency))
        text = numbers.format_currency(amount, currency, locale=self._locale)
        # The "currencySpacing" of CLDR, which Babel leaves out: a letter does not touch a digit.
        return _BESIDE_DIGIT.sub("\N{NO-BREAK SPACE}", text)


def isolate(text: str) -> Markup:
    """Return a text of a tenant in an element of its own: one written from right to left reorders nothing around it."""
    return Markup(f"<bdi>{escape(text)}</bdi>")  # noqa: S704 - escaped


def _fill(message: str, values: Mapping[str, object]) -> Markup:
    """Return what `Markup.format_map` would, in a third of the time: a page of a list has hundreds of messages."""
    filled = str(escape(message)).format_map({name: escape(value) for name, value in values.items()})
    return Markup(filled)  # noqa: S704 - escaped above


@lru_cache(_MINUTES_KEPT)
def _write_minute(code: str, minute: datetime) -> str:
    return dates.format_datetime(minute, "d MMM y, HH:mm", locale=LOCALES[code])


@cache
def get_language(code: str) -> Language:
    """Return a language by its code; an unknown one is English."""
    return Language(code if code in LOCALES else "en")


def choose_language(chosen: str | None, accept_language: str) -> Language:
    """Return the language that a person chose, or else the first that the browser asks for."""
    if chosen in LOCALES:
        return get_language(chosen)
    wanted = [part.partition(";")[0].strip().replace("-", "_") for part in accept_language.split(",", 20)[:20]]
    return get_language(negotiate_locale(wanted, list(LOCALES)) or "en")


def read_messages(code: str) -> dict[str, str]:
    """Return all messages of one language by their keys."""
    messages: dict[str, str] = {}
    folder = resources.files(__package__).joinpath("messages", code)
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        area: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        assert not messages.keys() & area.keys(), f"{file.name} has a key of another area"
        messages |= area
    return messages

"""The hours in which a venue plays, as its own clock shows them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_DAY: Final = timedelta(days=1)
_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HOURS: Final = re.compile(r"(?:(\S+) +)?([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|24:00)", re.ASCII)
# Hours that a change of the clock leaves out come again a week later.
_SEARCHED_DAYS: Final = 15


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of certain days (0 is Monday), counted from midnight; `ends` is above 24 hours for the day after."""

    days: frozenset[int]
    begins: timedelta
    ends: timedelta


class Schedule:
    """Hours of the week in a time zone. Without any hours it is always open.

    A time that the clock shows twice is the first of the two, and one that it skips is as much later.

    Source: RFC 5545, 3.3.5.
    """

    def __init__(self, hours: Iterable[Hours] = (), zone: tzinfo = UTC) -> None:
        self._hours: Final = tuple(hours)
        self._zone: Final = zone

    @classmethod
    def parse(cls, texts: Iterable[str], zone_name: str) -> Self:
        """Return the schedule of texts such as `Mon-Fri 09:00-18:00`, `Sat,Sun 22:00-02:00` or `10:00-24:00`.

        Hours that end before they begin end on the day after.

        Raises: ValueError for another text, or an unknown time zone.
        """
        try:
            zone = ZoneInfo(zone_name)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise ValueError(f"{zone_name!r} is no time zone, such as Africa/Tunis") from None
        return cls([_parse_hours(text) for text in texts], zone)

    def is_open(self, now: datetime) -> bool:
        """Return whether a time is within the hours."""
        # Hours of yesterday may last until today.
        return not self._hours or any(begin <= now < end for begin, end in self._list_openings(now, -1, 0))

    def find_opening(self, moment: datetime) -> datetime:
        """Return the first time from `moment` on that is within the hours."""
        if self.is_open(moment):
            return moment
        return min(begin for begin, _ in self._list_openings(moment, 0, _SEARCHED_DAYS) if begin > moment)

    def _list_openings(self, moment: datetime, first: int, last: int) -> Iterator[tuple[datetime, datetime]]:
        """Yield the beginning and the end of the hours of these days, counted from the day of `moment`."""
        midnight = datetime.combine(moment.astimezone(self._zone), time())
        for day in range(first, last + 1):
            date = midnight + day * _DAY
            for hours in self._hours:
                if date.weekday() in hours.days:
                    begin, end = self._resolve(date + hours.begins), self._resolve(date + hours.ends)
                    if begin < end:
                        yield begin, end

    def _resolve(self, shown: datetime) -> datetime:
        """Return when the clock shows a time."""
        return shown.replace(tzinfo=self._zone).astimezone(UTC)


ALWAYS: Final = Schedule()


def _parse_hours(text: str) -> Hours:
    match = _HOURS.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no schedule, such as Mon-Fri 09:00-18:00 or 22:00-02:00")
    begins = timedelta(hours=int(match[2]), minutes=int(match[3]))
    ends = _DAY if match[4] is None else timedelta(hours=int(match[4]), minutes=int(match[5]))
    if begins == ends:
        raise ValueError(f"{text!r} ends when it begins; a whole day is 00:00-24:00")
    return Hours(_parse_days(match[1]), begins, ends if begins < ends else ends + _DAY)


def _parse_days(text: str | None) -> frozenset[int]:
    """Return the days of a text such as `Mon-Fri`, `Sat,Sun` or `Fri-Mon`; all of them for None."""
    days: set[int] = set()
    for part in (text or "Mon-Sun").split(","):
        first, _, last = part.title().partition("-")
        try:
            begin, end = _NAMES.index(first), _NAMES.index(last if "-" in part else first)
        except ValueError:
            raise ValueError(
                f"{part!r} is none of the days {', '.join(_NAMES)}, and no range such as Fri-Mon"
            ) from None
        days.update((begin + day) % len(_NAMES) for day in range((end - begin) % len(_NAMES) + 1))
    return frozenset(days)

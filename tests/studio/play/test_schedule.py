"""The hours in which a venue plays: days, midnight, changes of the clock, and what is no schedule."""

from datetime import UTC, datetime, timedelta

import pytest

from soundmark.studio.play.rotation import Rotation
from soundmark.studio.play.schedule import ALWAYS, Schedule

PARIS = "Europe/Paris"
# In a week without a change of the clock, one hour ahead of UTC. The 23rd is a Monday.
WEEK = "2026-11-{} {}+01:00"


def read(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


@pytest.mark.parametrize(
    ("hours", "opened", "closed"),
    [
        (["Mon-Fri 09:00-18:00"], ["23 09:00", "27 17:59"], ["23 08:59", "27 18:00", "28 12:00", "29 12:00"]),
        (["09:00-18:00"], ["23 09:00", "29 17:59"], ["29 18:00"]),
        (["mon,WED 00:00-24:00"], ["23 00:00", "23 23:59", "25 12:00"], ["24 00:00", "26 00:00"]),
        (["Sat-Mon 12:00-13:00"], ["28 12:00", "29 12:00", "30 12:00", "23 12:00"], ["24 12:00", "27 12:00"]),
        (["Fri 22:00-02:00"], ["27 22:00", "28 01:59"], ["27 21:59", "28 02:00", "27 01:00", "28 22:00"]),
        (["Sun 22:00-00:00"], ["29 22:00", "29 23:59"], ["30 00:00", "30 22:00"]),
        (["09:00-12:00", "Sat 14:00-16:00"], ["28 14:00", "28 09:00", "27 09:00"], ["27 14:00", "28 13:00"]),
    ],
)
def test_it_is_open_in_the_hours_of_the_venue_s_clock(hours: list[str], opened: list[str], closed: list[str]) -> None:
    schedule = Schedule.parse(hours, PARIS)
    for expected, times in ((True, opened), (False, closed)):
        for text in times:
            assert schedule.is_open(read(WEEK.format(*text.split()))) is expected, text


def test_it_finds_the_next_opening() -> None:
    schedule = Schedule.parse(["Mon-Fri 09:00-18:00", "Sat 10:00-12:00"], PARIS)
    for now, opening in [("27 08:00", "27 09:00"), ("27 18:00", "28 10:00"), ("28 12:00", "30 09:00")]:
        expected = read(WEEK.format(*opening.split()))
        assert schedule.find_opening(read(WEEK.format(*now.split()))) == expected
        assert schedule.find_opening(expected) == expected


def test_without_hours_it_is_always_open() -> None:
    now = datetime.now(UTC)
    assert ALWAYS.is_open(now)
    assert ALWAYS.find_opening(now) == now


@pytest.mark.parametrize(
    ("hours", "begin", "end"),
    [
        # On 29 March 2026, 02:00 is 03:00.
        ("01:00-04:00", "2026-03-29 01:00+01:00", "2026-03-29 04:00+02:00"),
        ("02:30-05:00", "2026-03-29 03:30+02:00", "2026-03-29 05:00+02:00"),
        ("01:00-02:30", "2026-03-29 01:00+01:00", "2026-03-29 03:30+02:00"),
        ("Sat 22:00-03:00", "2026-03-28 22:00+01:00", "2026-03-29 03:00+02:00"),
        # On 25 October 2026, 03:00 is 02:00 once more.
        ("01:00-04:00", "2026-10-25 01:00+02:00", "2026-10-25 04:00+01:00"),
        ("02:30-05:00", "2026-10-25 02:30+02:00", "2026-10-25 05:00+01:00"),
        ("01:00-02:30", "2026-10-25 01:00+02:00", "2026-10-25 02:30+02:00"),
    ],
)
def test_a_change_of_the_clock_is_read_as_calendars_read_it(hours: str, begin: str, end: str) -> None:
    schedule = Schedule.parse([hours], PARIS)
    begins, ends, moment = read(begin), read(end), timedelta(seconds=1)
    states = [schedule.is_open(each) for each in (begins - moment, begins, ends - moment, ends)]
    assert states == [False, True, True, False]
    assert schedule.find_opening(begins - moment) == begins


def test_hours_that_a_change_of_the_clock_leaves_out_come_again_a_week_later() -> None:
    schedule = Schedule.parse(["Sun 02:30-03:00"], PARIS)
    assert schedule.find_opening(read("2026-03-23 12:00+01:00")) == read("2026-04-05 02:30+02:00")


@pytest.mark.parametrize(
    "hours",
    [
        *(
            "",
            "always",
            "9:00-18:00",
            "09:00",
            "09:00-",
            "09:00-18:60",
            "09:00-24:01",
            "24:00-25:00",
            "09:00-18:00 Mon",
        ),
        *("Mon", "Mo 09:00-18:00", "Mon- 09:00-18:00", "Mon-Fri-Sun 09:00-18:00", ",Mon 09:00-18:00", "٠٩:00-18:00"),
        *("09:00-09:00", "Mon,Tue, 09:00-18:00", "Mon Tue 09:00-18:00"),
    ],
)
def test_what_is_no_schedule_is_refused(hours: str) -> None:
    with pytest.raises(ValueError, match=r"no schedule, such as|none of the days|ends when it begins"):
        Schedule.parse([hours], PARIS)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../etc/passwd", "Europe", "/etc/localtime", "CEST!"])
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="is no time zone, such as Africa/Tunis"):
        Schedule.parse(["09:00-18:00"], zone)


def test_a_rotation_has_slots_only_while_it_is_open() -> None:
    """Also one in which it opens, or closes, in the middle."""
    schedule = Schedule.parse(["Mon-Fri 09:20-10:10"], "UTC")
    rotation = Rotation(timedelta(minutes=30), timedelta(hours=25))
    friday = read("2026-11-27 08:00+00:00")
    first = rotation.slot_at(read("2026-11-27 09:00+00:00"))
    assert list(rotation.slots_ahead(friday, schedule)) == [first, first + 1, first + 2]
    assert rotation.count_slots_a_day(friday, schedule) == 3  # 15 a week.
    assert rotation.count_slots_a_day(friday, ALWAYS) == 48

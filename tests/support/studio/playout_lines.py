"""Codes, lines and times of a playout, as a test needs them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from soundmark_sdk.client import Intent

from soundmark.studio.play.playout import Line, Playout
from soundmark.studio.play.records import HeldCode, SourceCode, WantedCode
from soundmark.studio.play.rotation import Rotation

# In the middle of a slot of ten minutes.
NOON: Final = datetime(2026, 11, 26, 12, 5, tzinfo=UTC)
TEN_MINUTES: Final = Rotation(timedelta(minutes=10), timedelta(minutes=30))


def at(**later: float) -> datetime:
    """Return a time after noon."""
    return NOON + timedelta(**later)


def make_frame(number: int) -> str:
    return f"XRC1:brd_{number:016d}"


def make_source(number: int = 1, **changes: Any) -> SourceCode:
    """Return a Code that is valid for a day."""
    given = {
        "xr_id": f"xr_{number}",
        "frame": make_frame(number),
        "organization_id": "org_1",
        "project_id": "prj_1",
        "campaign_id": None,
        "issuer": "Radio Nordlicht",
        "integration_id": None,
        "expires_at": at(days=1),
        "intent": Intent("link", "open", {"url": "https://example.org/"}),
    }
    return SourceCode(**{**given, **changes})


def make_line(number: int = 1, **changes: Any) -> Line:
    """Return the line of a Code that was named."""
    source = make_source(number, **changes)
    return Line(source.xr_id, source=source)


def make_held(wanted: WantedCode, number: int) -> HeldCode:
    """Return the Code that the service issues for what is wanted."""
    source = wanted.source
    return HeldCode(
        f"xr_{number}", make_frame(number), source.organization_id, source.project_id, wanted.slot, wanted.expires_at
    )


def fill(playout: Playout, now: datetime) -> list[str]:
    """Issue everything that a playout wants, and return the ids in the order in which it wanted them."""
    ids = []
    for number, wanted in enumerate(list(playout.list_wanted(now)), start=100):
        playout.hold(wanted, make_held(wanted, number))
        ids.append(f"xr_{number}")
    return ids


def what_sounds(playout: Playout, now: datetime) -> str | None:
    """Return the id of what sounds next."""
    sounding = playout.choose(now)
    return None if sounding is None else sounding.xr_id

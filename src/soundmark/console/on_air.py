"""The active Codes, on the home pages of organisations and projects."""

from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

from soundmark_sdk.client import CodeFilters, CodeOrder
from soundmark_sdk.client.records import ListedCode, Page

from soundmark.console.visit import Visit

# One page, so that a count needs no other call; of more Codes than that, a home page says so.
_COUNTED_MAX: Final = 100
SHOWN_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class OnAir:
    """The active Codes: the next to expire, and how many there are of each project and campaign.

    There may be more than are counted unless it `is_complete`.
    """

    soonest: tuple[ListedCode, ...]
    count: int
    by_project: Counter[str]
    by_campaign: Counter[str | None]
    is_complete: bool


def find_on_air(visit: Visit, project_id: str | None = None) -> Awaitable[Page[ListedCode]]:
    """Return the call for the Codes of an organisation, or of one project, that are active."""
    filters = CodeFilters(status="active", project_id=project_id)
    order = CodeOrder(sort="expires_at", order="asc")
    return visit.core.codes.page(filters, order=order, include_intent=True, limit=_COUNTED_MAX)


def count_on_air(codes: Page[ListedCode] | None) -> OnAir | None:
    """Return what a home page says of the answer to that call, or None without one."""
    if codes is None:
        return None
    return OnAir(
        soonest=codes.data[:SHOWN_MAX],
        count=len(codes.data),
        by_project=Counter(code.project_id for code in codes.data),
        by_campaign=Counter(code.campaign_id for code in codes.data),
        is_complete=codes.next_cursor is None,
    )


def write_count(visit: Visit, on_air: OnAir) -> str:
    """Return the number of active Codes, such as "7", or "100+" where there may be more."""
    return visit.language.number(on_air.count) + ("" if on_air.is_complete else "+")

"""The campaigns in which Codes can be issued now, on the home pages of organisations and projects."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soundmark_sdk.client.records import Campaign, Page, Project

from soundmark.console.parts import read_parts
from soundmark.console.visit import Visit

# Core lists campaigns by project alone, and each project costs a call.
PROJECTS_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Running:
    """The running campaigns of an organisation, those that end first at the top.

    Others may run, as far as the lists of projects or campaigns are not looked through, unless it `is_complete`.
    """

    campaigns: list[Campaign]
    is_complete: bool


def list_running(campaigns: Iterable[Campaign], now: datetime) -> list[Campaign]:
    """Return the campaigns in which Codes can be issued now, those that end first at the top."""
    running = [
        each
        for each in campaigns
        if each.status == "active"
        and (each.starts_at is None or each.starts_at <= now)
        and (each.ends_at is None or each.ends_at > now)
    ]
    return sorted(running, key=lambda each: (each.ends_at is None, each.ends_at or now))


async def find_running(visit: Visit, projects: Page[Project]) -> Running | None:
    """Return the running campaigns of the newest projects, or None if one of their calls fails or is late.

    Raises: as `read_part`.
    """
    looked_at = projects.data[:PROJECTS_MAX]
    pages = (await read_parts({each.id: visit.core.campaigns.page(project_id=each.id) for each in looked_at})).values()
    if None in pages:
        return None
    running = list_running((each for page in pages for each in page.data), visit.console.clock.now())
    is_complete = len(looked_at) == len(projects.data) and all(each.next_cursor is None for each in (projects, *pages))
    return Running(running, is_complete)

"""The home page of a project: what works now, what runs, what was heard, and the first steps."""

from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final

from soundmark_sdk.client import CodeFilters, CodeOrder
from soundmark_sdk.client.records import AuditEntry, Campaign, Page
from starlette.responses import Response

from soundmark.console.audit_sentences import SentenceWriter, find_emails
from soundmark.console.intents import write_headline
from soundmark.console.on_air import OnAir, count_on_air, find_on_air, write_count
from soundmark.console.pages.projects.hearings import DAYS, Hearings, find_hearings
from soundmark.console.parts import read_parts
from soundmark.console.running import list_running
from soundmark.console.visit import Visit

_EVENTS_READ: Final = 50  # Of the whole organisation: its log has no filter for a project.
_EVENTS_SHOWN: Final = 6
# The hearings go back further, so that they say whether a Code that is younger than this was ever heard.
_BEGINNING: Final = timedelta(days=DAYS - 1)


async def show_home(visit: Visit) -> Response:
    """Show a project. What the person's role may not read is absent; what Core cannot say now is said so."""
    parts = await read_parts(_list_calls(visit))
    on_air, campaigns, hearings = count_on_air(parts.get("on_air")), parts["campaigns"], parts.get("hearings")
    running = None if campaigns is None else list_running(campaigns.data, visit.console.clock.now())
    looked_at_in_part = 0 if campaigns is None or campaigns.next_cursor is None else len(campaigns.data)
    first, working = parts.get("first"), parts.get("on_air")
    return visit.page(
        "projects/home.html",
        reads_codes="on_air" in parts,
        reads_hearings="hearings" in parts,
        reads_events="events" in parts,
        tiles=_make_tiles(visit, on_air, running, hearings, has_more_campaigns=looked_at_in_part > 0),
        on_air=on_air,
        running=running,
        looked_at_in_part=looked_at_in_part,
        campaign_names={} if campaigns is None else {each.id: each.name for each in campaigns.data},
        hearings=hearings,
        writer=SentenceWriter(visit, parts.get("emails") or {}),
        events=None if parts.get("events") is None else _list_events(visit, parts["events"]),
        shows_steps=_is_beginning(visit, parts),
        has_codes=first is not None and bool(first.data),
        newest=None if working is None else max(working.data, key=lambda each: each.issued_at, default=None),
        write_headline=write_headline,
        now=visit.console.clock.now(),
    )


def _list_calls(visit: Visit) -> dict[str, Awaitable[Any]]:
    """Return the calls that the person's role may make, by the part of the page that they are for."""
    core, areas = visit.core, visit.areas
    calls: dict[str, Awaitable[Any]] = {"campaigns": core.campaigns.page()}
    if "codes" in areas:
        calls["on_air"] = find_on_air(visit, visit.project_id)
        oldest = CodeOrder(sort="issued_at", order="asc")
        calls["first"] = core.codes.page(CodeFilters(project_id=visit.project_id), order=oldest, limit=1)
    if "integrations" in areas:
        calls["hearings"] = find_hearings(visit)
    if visit.may_manage:
        calls |= {"events": core.audit_log.page(limit=_EVENTS_READ), "emails": find_emails(visit)}
    return calls


def _is_beginning(visit: Visit, parts: dict[str, Any]) -> bool:
    """Return whether the first steps are ahead: no Code was heard yet, and the first one was issued lately, if any was.

    They do not come back when a call fails, or when the project's Codes are not heard for a while or not measured.
    """
    first = parts.get("first")
    if first is None or not first.data:
        return first is not None
    if visit.console.clock.now() - first.data[0].issued_at >= _BEGINNING:
        return False
    return "hearings" not in parts or (parts["hearings"] is not None and not parts["hearings"].events)


def _list_events(visit: Visit, entries: Page[AuditEntry]) -> list[AuditEntry]:
    return [each for each in entries.data if each.project_id == visit.project_id][:_EVENTS_SHOWN]


def _make_tiles(
    visit: Visit,
    on_air: OnAir | None,
    running: list[Campaign] | None,
    hearings: Hearings | None,
    *,
    has_more_campaigns: bool,
) -> list[dict[str, str]]:
    """Return the figures that could be read, each leading to its page."""
    at, number = visit.tenant_path, visit.language.number
    tiles = []
    if on_air is not None:
        label = visit.say("projects.on_air")
        tiles.append({"label": label, "value": write_count(visit, on_air), "href": f"{at}/codes?status=active"})
    if running is not None:
        label = visit.say("projects.running")
        value = number(len(running)) + ("+" if has_more_campaigns else "")
        tiles.append({"label": label, "value": value, "href": f"{at}/campaigns"})
    if hearings is not None and hearings.integrations:
        path = f"{at}/integrations/{hearings.integrations[0].id}/report"
        label = visit.say("projects.hearings", count=DAYS)
        tiles.append({"label": label, "value": number(hearings.events), "href": path})
    return tiles

"""The pages of campaigns."""

import asyncio
from datetime import datetime
from typing import Final

from soundmark_sdk.client import CodeFilters
from soundmark_sdk.client.records import CampaignSummary, ListedCode, Page
from soundmark_sdk.client.requests import UNCHANGED, Unchanged
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.forms import Form
from soundmark.console.intents import write_headline
from soundmark.console.offline_packs import ValidPacks, find_valid_packs, redirect_after_stop
from soundmark.console.parts import read_part
from soundmark.console.routing import form_page
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

_NEWEST_CODES: Final = 10


async def show_list(visit: Visit) -> Response:
    """Show the campaigns of a project."""
    campaigns = await visit.core.campaigns.page(cursor=visit.query("cursor"))
    return visit.page("campaigns/list.html", campaigns=campaigns)


async def create(visit: Visit) -> Response:
    """Create a campaign."""
    campaign = await visit.core.campaigns.create(
        visit.form.text("name"), starts_at=visit.form.instant("starts_at"), ends_at=visit.form.instant("ends_at")
    )
    return visit.redirect(_path(visit, campaign.id), "campaigns.created", name=campaign.name)


async def show_summary(visit: Visit) -> Response:
    """Show one campaign, the counts of its Codes, and the newest of them."""
    summary, codes, packs = await asyncio.gather(
        _find_summary(visit), read_part(_find_codes(visit)), _find_packs(visit)
    )
    return visit.page(
        "campaigns/summary.html",
        summary=summary,
        counts=_make_tiles(visit, summary),
        codes=codes,
        packs=packs,
        write_headline=write_headline,
    )


async def change(visit: Visit) -> Response:
    """Change the name or the schedule of a campaign: what differs from what the form was shown with."""
    typed, path = visit.form.text("name"), _path(visit, _campaign_id(visit))
    name = UNCHANGED if typed == visit.form.text("shown_name") else typed
    starts_at, ends_at = _read_change(visit.form, "starts_at"), _read_change(visit.form, "ends_at")
    if name is starts_at is ends_at is UNCHANGED:
        return visit.redirect(path, "campaigns.unchanged")
    await _find_summary(visit)
    await visit.core.campaigns.update(_campaign_id(visit), name=name, starts_at=starts_at, ends_at=ends_at)
    return visit.redirect(path, "campaigns.changed")


async def show_archive(visit: Visit) -> Response:
    """Show the campaign that would be archived, and ask for confirmation."""
    visit.require_managing_role()
    return visit.page("campaigns/archive.html", summary=await _find_summary(visit))


async def archive(visit: Visit) -> Response:
    """Archive a campaign."""
    await _find_summary(visit)
    campaign = await visit.core.campaigns.archive(_campaign_id(visit))
    return visit.redirect(_path(visit, campaign.id), "campaigns.archived", name=campaign.name)


async def show_stop(visit: Visit) -> Response:
    """Show what the emergency stop of a campaign would stop, and ask for its confirmation."""
    visit.require_managing_role()
    summary, packs = await asyncio.gather(_find_summary(visit), _find_packs(visit))
    return visit.page("campaigns/stop.html", summary=summary, packs=packs)


async def stop(visit: Visit) -> Response:
    """Stop a campaign, and say what was stopped. A form that was confirmed before stops nothing more."""
    await _find_summary(visit)
    stopped = await visit.core.campaigns.stop(_campaign_id(visit))
    notice = "campaigns.stopped" if stopped.revoked_count else "campaigns.stopped_nothing"
    return redirect_after_stop(
        visit,
        _path(visit, stopped.campaign.id),
        notice,
        packs_valid_until=stopped.packs_valid_until,
        name=stopped.campaign.name,
        count=stopped.revoked_count,
    )


def _campaign_id(visit: Visit) -> str:
    return visit.parameter("campaign_id")


def _path(visit: Visit, campaign_id: str) -> str:
    return f"{visit.tenant_path}/campaigns/{campaign_id}"


async def _find_summary(visit: Visit) -> CampaignSummary:
    """Return the campaign in the URL, if it belongs to the project there; Core's routes name no project.

    Raises: TenantUnknown. soundmark_sdk.ClientFailure.
    """
    summary = await visit.core.campaigns.summary(_campaign_id(visit))
    if summary.campaign.project_id != visit.project_id:
        raise TenantUnknown
    return summary


def _make_tiles(visit: Visit, summary: CampaignSummary) -> list[dict[str, str]]:
    """Return the counts of a campaign's Codes, each with the list of those Codes."""
    listed = f"{visit.tenant_path}/codes?campaign_id={summary.campaign.id}"
    counts = summary.counts
    tiles = [
        {"label": visit.say("campaigns.counts.issued"), "value": visit.language.number(counts.issued), "href": listed}
    ]
    for status, count in (("active", counts.active), ("expired", counts.expired), ("revoked", counts.revoked)):
        label, number = visit.say(f"campaigns.counts.{status}"), visit.language.number(count)
        tiles.append({"label": label, "value": number, "href": f"{listed}&status={status}"})
    measured = visit.language.number(counts.audience_enabled)
    return [*tiles, {"label": visit.say("campaigns.counts.audience_enabled"), "value": measured}]


async def _find_codes(visit: Visit) -> Page[ListedCode]:
    filters = CodeFilters(project_id=visit.project_id, campaign_id=_campaign_id(visit))
    return await visit.core.codes.page(filters, include_intent=True, limit=_NEWEST_CODES)


async def _find_packs(visit: Visit) -> ValidPacks | None:
    """Return the offline packs that may name Codes of the campaign in the URL, to people who may stop it."""
    return await find_valid_packs(visit, campaign_id=_campaign_id(visit)) if visit.may_manage else None


def _read_change(form: Form, name: str) -> datetime | Unchanged | None:
    """Return a date if it was changed, so that another person's change of the others stays."""
    typed = form.instant(name)
    return UNCHANGED if typed == form.instant(f"{name}_exact") else typed


_ALL: Final = "/organizations/{organization_id}/projects/{project_id}/campaigns"
_ONE: Final = f"{_ALL}/{{campaign_id}}"
routes: Final[list[Route]] = [
    form_page(_ALL, show_list, create),
    form_page(_ONE, show_summary, change),
    form_page(f"{_ONE}/archive", show_archive, archive),
    form_page(f"{_ONE}/stop", show_stop, stop),
]

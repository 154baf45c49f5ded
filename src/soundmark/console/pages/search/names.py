"""Pages, and what has a name, by a part of it; Codes by the beginning of their address."""

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

from soundmark_sdk.client.records import ApiKey, Campaign, Integration, ListedCode, Organization
from soundmark_sdk.client.requests import CodeFilters

from soundmark.console.event_types import EVENT_TYPES, name_type
from soundmark.console.intents import complete_prefix
from soundmark.console.navigation import PLATFORM_PAGES, list_areas, list_sections, offers_platform
from soundmark.console.pages.search.finding import Finding, Place, SearchResult, find_or_nothing
from soundmark.console.visit import Visit

_SHOWN_OF_A_KIND: Final = 8
# Of the platform's pages, the one that has no tab.
_JOBS: Final = {"/platform/jobs": "platform.jobs.failed"}


async def find_names(visit: Visit, organizations: list[Organization], place: Place, text: str) -> SearchResult:
    """Return the pages whose names hold a text: those at hand first, and a few of each kind.

    The API has no search for names, so each list is looked through as far as its first page goes. The search is not
    complete if one of them fails or is late.

    Raises: as `find_or_nothing`.
    """
    lists = [] if place.organization is None else _list_at_hand(visit, place.organization, place.project_id, text)
    if offers_platform(visit.signed_in):
        lists.append(list_catalog(visit))
    listed = await asyncio.gather(*(find_or_nothing(_collect(each)) for each in lists))
    tenants = [Finding("organization", each.name, f"/organizations/{each.id}") for each in organizations]
    wanted = text.casefold()
    found: list[Finding] = []
    for kind in (list_pages(visit, place), *listed, tenants, _list_event_types(visit, place, wanted)):
        fitting = (each for each in kind or [] if wanted in each.name.casefold() or each.note.startswith(wanted))
        found += islice(fitting, _SHOWN_OF_A_KIND)
    return SearchResult(found, None not in listed)


def list_pages(visit: Visit, place: Place) -> list[Finding]:
    """Return the pages that lead to everything else, as far as the person's role may read them."""
    pages = []
    if (at := place.organization) is not None:
        sections = list_sections(at.role, at.id, place.project_id)
        names = [area.name for section in sections for area in section.areas]
        for section in sections:
            within = f" ({visit.say(f'layout.section.{section.kind}')})"
            for area in section.areas:
                name = visit.say(f"layout.area.{area.name}") + (within if names.count(area.name) > 1 else "")
                pages.append(Finding("page", name, area.path))
    pages.append(Finding("page", visit.say("layout.organizations"), "/organizations"))
    pages.append(Finding("page", visit.say("layout.listen"), "/listen"))
    if offers_platform(visit.signed_in):
        within = visit.say("layout.platform")
        titles = {**PLATFORM_PAGES, **_JOBS}.items()
        pages += [Finding("page", f"{visit.say(title)} ({within})", path) for path, title in titles]
    return pages


async def list_catalog(visit: Visit) -> AsyncIterator[Finding]:
    """List the plans and offers that administrators may change."""
    catalog, path = await visit.core.catalog.get(), "/platform/catalog"
    names = {each.plan_id: each.name for each in catalog.plans}
    for plan_id, name in names.items():
        yield Finding("plan", name, f"{path}/plan?plan_id={plan_id}", note=plan_id)
    for each in catalog.offers:
        name = names.get(each.plan_id, each.plan_id)
        yield Finding("offer", name, f"{path}/offer?offer_id={each.offer_id}", note=each.offer_id)


def _list_at_hand(
    visit: Visit, organization: Organization, project_id: str | None, text: str
) -> list[AsyncIterator[Finding]]:
    """Return what has names in the organisation and project at hand; each list is one call."""
    lists = [_list_projects(visit, organization.id)]
    if "members" in list_areas(organization.role, in_project=False):
        lists.append(_list_invitations(visit, organization.id))
    areas = list_areas(organization.role, in_project=True)
    if "codes" in areas:
        lists.append(_list_codes(visit, organization.id, project_id, text))
    if "api-keys" in areas:
        lists.append(_list_keys(visit, organization.id, project_id))
    if project_id is not None:  # Core lists campaigns and integrations by project alone.
        if "codes" in areas:  # The page of a campaign counts its Codes.
            lists.append(_list_campaigns(visit, organization.id, project_id))
        if "integrations" in areas:
            lists.append(_list_integrations(visit, organization.id, project_id))
    return lists


def _list_event_types(visit: Visit, place: Place, wanted: str) -> list[Finding]:
    """Return the events whose name holds a text, or whose type begins with it, each with the form of an endpoint."""
    if (at := place.organization) is None or "webhooks" not in list_areas(at.role, in_project=False):
        return []
    path = f"/organizations/{at.id}/webhooks/new?event_type="
    return [
        Finding("event_type", f"{name} ({each})" if name else each, path + each)
        for each in EVENT_TYPES
        for name in [name_type(visit, each)]
        if wanted in name.casefold() or each.startswith(wanted)
    ]


async def _list_projects(visit: Visit, organization_id: str) -> AsyncIterator[Finding]:
    for each in (await visit.core.projects.page(organization_id=organization_id)).data:
        yield Finding("project", each.name, f"/organizations/{organization_id}/projects/{each.id}")


async def _list_invitations(visit: Visit, organization_id: str) -> AsyncIterator[Finding]:
    for each in (await visit.core.invitations.page(organization_id=organization_id)).data:
        yield Finding("invitation", each.email, f"/organizations/{organization_id}/members/invitations#{each.id}")


async def _list_campaigns(visit: Visit, organization_id: str, project_id: str) -> AsyncIterator[Finding]:
    page = await visit.core.campaigns.page(organization_id=organization_id, project_id=project_id)
    for each in page.data:
        yield Finding("campaign", each.name, f"{_at(each)}/campaigns/{each.id}")


async def _list_keys(visit: Visit, organization_id: str, project_id: str | None) -> AsyncIterator[Finding]:
    page = await visit.core.api_keys.page(organization_id=organization_id, project_id=project_id)
    for each in page.data:
        if each.name is not None:
            yield Finding("key", each.name, f"{_at(each)}/api-keys#{each.id}")


async def _list_integrations(visit: Visit, organization_id: str, project_id: str) -> AsyncIterator[Finding]:
    page = await visit.core.integrations.page(organization_id=organization_id, project_id=project_id)
    for each in page.data:
        if each.name is not None:
            yield Finding("integration", each.name, f"{_at(each)}/integrations/{each.id}")


async def _list_codes(visit: Visit, organization_id: str, project_id: str | None, text: str) -> AsyncIterator[Finding]:
    """List the Codes whose address begins with a text."""
    filters = CodeFilters(project_id=project_id, address_prefix=complete_prefix(text))
    page = await visit.core.codes.page(
        filters, include_intent=True, organization_id=organization_id, limit=_SHOWN_OF_A_KIND
    )
    for each in page.data:
        if each.intent is not None:
            address = str(each.intent.resource.get("url"))
            yield Finding("code", address, f"{_at(each)}/codes/{each.xr_id}")


async def _collect(findings: AsyncIterator[Finding]) -> list[Finding]:
    return [each async for each in findings]


def _at(found: Campaign | ApiKey | Integration | ListedCode) -> str:
    return f"/organizations/{found.organization_id}/projects/{found.project_id}"

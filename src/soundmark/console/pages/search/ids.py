"""The page of an id that was given whole."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from soundmark_sdk.client.records import Organization

from soundmark.console.lookups import find_listed
from soundmark.console.pages.search.finding import Finding, Place, SearchResult, find_or_nothing
from soundmark.console.pages.search.nearest import find_nearest
from soundmark.console.troubles import TooManyListed
from soundmark.console.visit import Visit
from soundmark.kit.text.ids import ID_CHARS, may_be_id

# So that a person of a thousand organisations waits for a few calls at most; the organisation at hand is the first.
_ORGANIZATIONS_MAX: Final = 8
_PROJECTS_MAX: Final = 8

_Find: TypeAlias = Callable[[Visit, Organization, Place, str], Awaitable[Finding | None]]


async def find_id(visit: Visit, organizations: list[Organization], place: Place, wanted: str) -> SearchResult:
    """Return the page of an id, or nothing if it is no id, or the person may not see what it names.

    Raises: as `find_or_nothing`.
    """
    if not may_be_id(wanted):
        return SearchResult([])
    find = _FINDERS.get(wanted.partition("_")[0])
    if find is None:
        nearest = await find_or_nothing(find_nearest(visit, place, wanted))
        return SearchResult(nearest or [], nearest is not None)
    if len(wanted.partition("_")[2]) < ID_CHARS:  # Half an id, by hand: it would be looked for at every pause.
        return SearchResult([])
    at_hand = [] if place.organization is None else [place.organization]
    others = [each for each in organizations if each not in at_hand]
    within = [*at_hand, *others]
    answers = await asyncio.gather(*(_look(find, visit, each, place, wanted) for each in within[:_ORGANIZATIONS_MAX]))
    found = [each for answer in answers for each in answer or []][:1]
    return SearchResult(found, bool(found) or (len(within) <= _ORGANIZATIONS_MAX and None not in answers))


async def _look(
    find: _Find, visit: Visit, organization: Organization, place: Place, wanted: str
) -> list[Finding] | None:
    """Return the page of an id, if the organisation has it, or None if nobody can say."""

    async def look() -> list[Finding]:
        found = await find(visit, organization, place, wanted)
        return [] if found is None else [found]

    try:
        return await find_or_nothing(look())
    except TooManyListed:
        return None


async def _find_organization(_: Visit, organization: Organization, __: Place, wanted: str) -> Finding | None:
    if organization.id != wanted:
        return None
    return Finding("organization", organization.name, f"/organizations/{organization.id}")


async def _find_project(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    subject = visit.signed_in.subject
    project = await visit.console.directory.find_project(subject, visit.core, organization.id, wanted)
    return None if project is None else Finding("project", project.name, _at(organization, project.id))


async def _find_code(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    code = await visit.core.codes.show(wanted, organization_id=organization.id)
    return Finding("code", code.xr_id, f"{_at(organization, code.project_id)}/codes/{code.xr_id}", is_id=True)


async def _find_certified_code(visit: Visit, organization: Organization, place: Place, wanted: str) -> Finding | None:
    """Find the Code of a decode certificate, which is no page of its own."""
    certificate = await visit.core.get_decode_certificate(wanted)
    if certificate.organization_id != organization.id:
        return None
    return await _find_code(visit, organization, place, certificate.xr_id)


async def _find_campaign(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    campaign = (await visit.core.campaigns.summary(wanted, organization_id=organization.id)).campaign
    return Finding("campaign", campaign.name, f"{_at(organization, campaign.project_id)}/campaigns/{campaign.id}")


async def _find_key(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    """Find a key in the list of its project, which is the only page that shows it."""
    key = await find_listed(visit.core.api_keys.list(organization_id=organization.id), wanted)
    if key is None:
        return None
    return Finding("key", key.name or key.id, f"{_at(organization, key.project_id)}/api-keys#{key.id}", not key.name)


async def _find_subscription(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    found = await find_listed(visit.core.subscriptions.list(organization_id=organization.id), wanted)
    return (
        None if found is None else Finding("subscription", found.plan_name, f"/organizations/{organization.id}/billing")
    )


async def _find_invitation(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    found = await find_listed(visit.core.invitations.list(organization_id=organization.id), wanted)
    path = f"/organizations/{organization.id}/members/invitations#{wanted}"
    return None if found is None else Finding("invitation", found.email, path)


async def _find_checkout(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    await visit.core.billing.get_checkout(wanted, organization_id=organization.id)
    return Finding("checkout", wanted, f"/billing/checkouts/{wanted}", is_id=True)


async def _find_integration(visit: Visit, organization: Organization, place: Place, wanted: str) -> Finding | None:
    """Find an integration in the projects, the one at hand first; Core lists integrations by project alone."""
    page = await visit.core.projects.page(organization_id=organization.id)
    projects = sorted((each.id for each in page.data), key=lambda each: each != place.project_id)
    list_all = visit.core.integrations.list
    within = [list_all(organization_id=organization.id, project_id=each) for each in projects[:_PROJECTS_MAX]]
    for found in await asyncio.gather(*(find_listed(each, wanted) for each in within)):
        if found is not None:
            path = f"{_at(organization, found.project_id)}/integrations/{found.id}"
            return Finding("integration", found.name or found.id, path, not found.name)
    if page.next_cursor is not None or len(projects) > _PROJECTS_MAX:
        raise TooManyListed
    return None


def _find_in_organization(kind: str, path: str, get: Callable[[Visit], Callable[..., Awaitable[Any]]]) -> _Find:
    """Return how to find what Core answers by its id within an organisation; its page is at `path` and the id."""

    async def find(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
        await get(visit)(wanted, organization_id=organization.id)
        return Finding(kind, wanted, f"/organizations/{organization.id}/{path}/{wanted}", is_id=True)

    return find


def _at(organization: Organization, project_id: str) -> str:
    return f"/organizations/{organization.id}/projects/{project_id}"


_FINDERS: Final[Mapping[str, _Find]] = {
    "org": _find_organization,
    "prj": _find_project,
    "xr": _find_code,
    "dcc": _find_certified_code,
    "bco": _find_checkout,
    "bsu": _find_subscription,
    "cmp": _find_campaign,
    "inv": _find_invitation,
    "key": _find_key,
    "int": _find_integration,
    "whe": _find_in_organization("webhook", "webhooks", lambda visit: visit.core.webhooks.get),
    "evn": _find_in_organization("event", "webhooks/events", lambda visit: visit.core.webhooks.get_event),
    "tkt": _find_in_organization("ticket", "tickets", lambda visit: visit.core.tickets.get),
}

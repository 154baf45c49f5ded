"""The page of an id that was given whole."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from soundmark_sdk.client.records import Organization

from soundmark.console.pages.search.finding import Finding, Place, find_or_nothing
from soundmark.console.visit import Visit
from soundmark.kit.text.ids import may_be_id

# So that a person of a thousand organisations waits for a few calls at most; the organisation at hand is the first.
_ORGANIZATIONS_MAX: Final = 8

_Find: TypeAlias = Callable[[Visit, Organization, Place, str], Awaitable[Finding | None]]


async def find_id(visit: Visit, organizations: list[Organization], place: Place, wanted: str) -> list[Finding]:
    """Return the page of an id, or nothing if it is no id, or the person may not see what it names.

    Raises: soundmark_sdk.ClientFailure.
    """
    find = _FINDERS.get(wanted.partition("_")[0])
    if find is None or not may_be_id(wanted):
        return []
    at_hand = [] if place.organization is None else [place.organization]
    others = [each for each in organizations if each not in at_hand]
    within = [*at_hand, *others][:_ORGANIZATIONS_MAX]
    found = await asyncio.gather(*(find_or_nothing(find(visit, each, place, wanted), None) for each in within))
    return [each for each in found if each is not None][:1]


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


async def _find_campaign(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    campaign = (await visit.core.campaigns.summary(wanted, organization_id=organization.id)).campaign
    return Finding("campaign", campaign.name, f"{_at(organization, campaign.project_id)}/campaigns/{campaign.id}")


async def _find_key(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    """Find a key in the list of its project, which is the only page that shows it."""
    async for key in visit.core.api_keys.list(organization_id=organization.id):
        if key.id == wanted:
            path = f"{_at(organization, key.project_id)}/api-keys#{key.id}"
            return Finding("key", key.name or key.id, path, is_id=key.name is None)
    return None


async def _find_checkout(visit: Visit, organization: Organization, _: Place, wanted: str) -> Finding | None:
    await visit.core.billing.get_checkout(wanted, organization_id=organization.id)
    return Finding("checkout", wanted, f"/billing/checkouts/{wanted}", is_id=True)


async def _find_integration(visit: Visit, organization: Organization, place: Place, wanted: str) -> Finding | None:
    """Find an integration of the project at hand; Core lists them by project alone."""
    if place.organization is None or place.project_id is None or place.organization.id != organization.id:
        return None
    listing = visit.core.integrations.list(organization_id=organization.id, project_id=place.project_id)
    async for each in listing:
        if each.id == wanted:
            path = f"{_at(organization, place.project_id)}/integrations/{each.id}"
            return Finding("integration", each.name or each.id, path, is_id=each.name is None)
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
    "bco": _find_checkout,
    "cmp": _find_campaign,
    "key": _find_key,
    "int": _find_integration,
    "whe": _find_in_organization("webhook", "webhooks", lambda visit: visit.core.webhooks.get),
    "evn": _find_in_organization("event", "webhooks/events", lambda visit: visit.core.webhooks.get_event),
    "tkt": _find_in_organization("ticket", "tickets", lambda visit: visit.core.tickets.get),
}

"""What the pages of several areas look up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

from soundmark_sdk.client import ClientFailure
from soundmark_sdk.client.records import ApiKey, Code, Integration, Invitation, Subscription

from soundmark.console.parts import read_part, until_late
from soundmark.console.troubles import TenantUnknown, TooManyListed
from soundmark.console.visit import Visit

_Listed = TypeVar("_Listed", Integration, ApiKey, Invitation, Subscription)
# Three pages of the API: what a page waits for at most.
LISTED_MAX: Final = 300
_LOOKS_AT_ONCE: Final = 8  # At single Codes, since Core lists none by their ids.
# As in the contract, section 7, "What entitles".
_LIVE: Final = frozenset({"trialing", "active", "past_due"})


async def find_integration(visit: Visit) -> Integration:
    """Return the integration in the URL.

    Raises: TenantUnknown. TooManyListed. soundmark_sdk.ClientFailure.
    """
    integration = await find_listed(visit.core.integrations.list(), visit.parameter("integration_id"))
    if integration is None:
        raise TenantUnknown
    return integration


async def find_integration_beside(visit: Visit, integration_id: str) -> Integration | None:
    """Return an integration for a page about something else; None if there is no such one, or if the lookup fails.

    Raises: as `read_part`.
    """
    try:
        return await read_part(find_listed(visit.core.integrations.list(), integration_id))
    except TooManyListed:
        return None


async def find_campaign_name(visit: Visit, code: Code) -> str | None:
    """Return the name of a Code's campaign; None if it has none, or if the lookup fails.

    Raises: as `read_part`.
    """
    if code.campaign_id is None:
        return None
    summary = await read_part(visit.core.campaigns.summary(code.campaign_id))
    return None if summary is None else summary.campaign.name


async def find_listed(listing: AsyncIterator[_Listed], identity: str) -> _Listed | None:
    """Return what has this id in a list of the API, which has no call for one of them; None if there is no such entry.

    Raises: TooManyListed if it is not among the newest `LISTED_MAX` of more. soundmark_sdk.ClientFailure.
    """
    read_count = 0
    async for each in listing:
        if each.id == identity:
            return each
        read_count += 1
        if read_count > LISTED_MAX:
            raise TooManyListed
    return None


def list_entitling(subscriptions: Sequence[Subscription]) -> list[Subscription]:
    """Return the subscriptions that may entitle."""
    return [each for each in subscriptions if each.status in _LIVE]


async def look_at_codes(visit: Visit, xr_ids: Sequence[str]) -> dict[str, Code]:
    """Return these Codes by their ids, in the same order, without those that Core does not show, or not in time."""
    found: dict[str, Code] = {}
    looks = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def look(xr_id: str) -> None:
        async with looks:
            with contextlib.suppress(ClientFailure):
                found[xr_id] = await visit.core.codes.show(xr_id, project_id=visit.project_id)

    with contextlib.suppress(TimeoutError):
        async with until_late():
            await asyncio.gather(*map(look, xr_ids))
    return {xr_id: found[xr_id] for xr_id in xr_ids if xr_id in found}

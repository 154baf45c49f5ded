"""What a form of a project offers or says beforehand: campaigns, integrations and allowed hosts."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from soundmark_sdk.client import ApiProblem, ClientFailure
from soundmark_sdk.client.failures import ServiceUnreachable
from soundmark_sdk.client.records import AllowedHosts

from soundmark.console.parts import until_late
from soundmark.console.visit import Visit

# As many as a person picks from, and one call. Beyond that, the page of a campaign leads here with its id in the URL.
_OFFERED_MAX: Final = 100
# So that a thousand archived campaigns do not delay the page by seconds.
_READ_MAX: Final = 300
_UNAVAILABLE: Final = 500


@dataclass(frozen=True, slots=True)
class Choices:
    """The options of a control as (value, text), newest first; not `are_known` while Core cannot list them all."""

    options: tuple[tuple[str, str], ...]
    are_known: bool = True


async def find_campaigns(visit: Visit, *, only_active: bool) -> Choices:
    """Return the project's campaigns.

    Raises: soundmark_sdk.ClientFailure, unless Core just cannot answer now.
    """
    return await _collect(_name_campaigns(visit, only_active=only_active))


async def find_integrations(visit: Visit) -> Choices:
    """Return the project's active Audience integrations, by their names where they have one.

    Raises: as `find_campaigns`.
    """
    return await _collect(_name_integrations(visit))


async def find_allowed_hosts(visit: Visit) -> AllowedHosts | None:
    """Return the hosts to which links of the project may lead; None while Core just cannot answer.

    Raises: as `find_campaigns`.
    """
    try:
        async with until_late():
            return await visit.core.projects.allowed_hosts()
    except TimeoutError:
        return None
    except ClientFailure as failure:
        if _is_unavailable(failure):
            return None
        raise


async def _name_campaigns(visit: Visit, *, only_active: bool) -> AsyncIterator[tuple[str, str]]:
    listing = visit.core.campaigns.list()
    read_count = 0
    async for campaign in listing:
        if campaign.status == "active" or not only_active:
            yield campaign.id, campaign.name
        read_count += 1
        if read_count == _READ_MAX:
            return


async def _name_integrations(visit: Visit) -> AsyncIterator[tuple[str, str]]:
    # One page: there is an integration for each publisher.
    listed = await visit.core.integrations.page()
    for integration in listed.data:
        if integration.status == "active":
            mode = visit.say(f"codes.mode.{integration.mode}")
            yield integration.id, f"{integration.name or integration.id} ({mode})"


async def _collect(named: AsyncIterator[tuple[str, str]]) -> Choices:
    options: list[tuple[str, str]] = []
    try:
        async with until_late():
            async for option in named:
                options.append(option)
                if len(options) == _OFFERED_MAX:
                    break
    except TimeoutError:
        return Choices(tuple(options), are_known=False)
    except ClientFailure as failure:
        if _is_unavailable(failure):
            return Choices(tuple(options), are_known=False)
        raise
    return Choices(tuple(options))


def _is_unavailable(failure: ClientFailure) -> bool:
    return isinstance(failure, ServiceUnreachable) or (
        isinstance(failure, ApiProblem) and failure.status >= _UNAVAILABLE
    )

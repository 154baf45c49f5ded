"""The state of the service, as far as the API shows it."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from soundmark_sdk.client import ApiProblem, ClientFailure
from starlette.responses import Response

from soundmark.console.core_api import CoreReadiness
from soundmark.console.pages.platform import abuse, catalog, jobs, organizations
from soundmark.console.parts import read_part, until_late
from soundmark.console.visit import Visit

PATH: Final = "/platform/status"


@dataclass(frozen=True, slots=True)
class Attention:
    """What an administrator should look at: the key of its name, how many there are (None if unknown), and where.

    Some of what `is_usual` is there in a service that works.
    """

    name: str
    count: str | None
    path: str
    is_usual: bool = False


async def show_status(visit: Visit) -> Response:
    """Show what Core says of itself, and what waits for an administrator; what cannot be read is said to be so.

    Raises: soundmark_sdk.ApiProblem for a person who is no administrator, although anybody may ask Core for its state.
    """
    readiness, failed, retrying, reports, suspended, prices = await asyncio.gather(
        _read_readiness(visit),
        _count_or_none(visit.core.platform.jobs_page(state="failed")),
        _count_or_none(visit.core.platform.jobs_page(state="retrying")),
        _count_or_none(visit.core.platform.abuse_reports_page(status="open")),
        _count_or_none(visit.core.platform.organizations_page(status="suspended")),
        _count_unsold(visit),
    )
    attention = [
        Attention("platform.jobs.failed", failed, jobs.PATH),
        Attention("platform.jobs.retrying", retrying, f"{jobs.PATH}?state=retrying", is_usual=True),
        Attention("platform.status.reports", reports, abuse.PATH),
        Attention("platform.status.suspended", suspended, f"{organizations.PATH}?status=suspended"),
        Attention("platform.status.prices", prices, catalog.PATH),
    ]
    return visit.page("platform/status.html", readiness=readiness, attention=attention)


async def _count_or_none(reading: Any) -> str | None:
    """Return the number of entries of a page, with a plus if there are more; None if they cannot be read."""
    page = await _read_or_none(reading)
    return None if page is None else f"{len(page.data)}{'+' if page.next_cursor else ''}"


async def _count_unsold(visit: Visit) -> str | None:
    found = await _read_or_none(visit.core.catalog.get())
    if found is None:
        return None
    return str(sum(each.active and each.price_status in {"unknown", "missing"} for each in found.offers))


async def _read_readiness(visit: Visit) -> CoreReadiness:
    return await read_part(visit.console.core.read_readiness(visit.deadline)) or CoreReadiness("unreachable")


async def _read_or_none(reading: Any) -> Any:
    try:
        async with until_late():
            return await reading
    except ApiProblem as problem:
        if problem.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise
        return None
    except (ClientFailure, TimeoutError):
        return None

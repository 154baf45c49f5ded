"""The organisations of the checkouts that were begun in this browser.

A payment provider sends people back to `/billing/checkouts/{id}`, which names no organisation.
"""

import re
from typing import Final

import msgspec
from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import Checkout
from starlette.responses import Response

from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

_NAME: Final = "checkouts"
_KEPT_MAX: Final = 20
# A checkout expires after a day at the latest; a person may return to its page later.
_KEPT_S: Final = 7 * 24 * 3600
_ASKED_MAX: Final = 100
_ID: Final = re.compile(r"bco_[A-Za-z0-9_-]{1,64}")
_ELSEWHERE: Final = frozenset({"checkout_not_found", "organization_not_found", "forbidden"})


def remember(visit: Visit, response: Response, checkout_id: str, organization_id: str) -> None:
    """Keep the organisation of a checkout in this browser."""
    kept = {each: organization for each, organization in _read(visit).items() if each != checkout_id}
    newest = [*kept.items(), (checkout_id, organization_id)][-_KEPT_MAX:]
    visit.console.jar.write(response, _NAME, dict(newest), replacing=visit.request.cookies, max_age_s=_KEPT_S)


async def find(visit: Visit, checkout_id: str) -> tuple[str, Checkout]:
    """Return a checkout, and the organisation that it belongs to.

    Without a cookie, such as in another browser, each of the person's organisations is asked, the newest
    hundred at most.

    Raises: TenantUnknown. soundmark_sdk.ClientFailure.
    """
    if _ID.fullmatch(checkout_id) is None:
        raise TenantUnknown
    remembered = _read(visit).get(checkout_id)
    if remembered is not None:
        checkout = await _get(visit, checkout_id, remembered)
        if checkout is not None:
            return remembered, checkout
    organizations = await visit.core.organizations.page(limit=_ASKED_MAX)
    for organization in organizations.data:
        checkout = await _get(visit, checkout_id, organization.id)
        if checkout is not None:
            return organization.id, checkout
    raise TenantUnknown


async def _get(visit: Visit, checkout_id: str, organization_id: str) -> Checkout | None:
    try:
        return await visit.core.billing.get_checkout(checkout_id, organization_id=organization_id)
    except ApiProblem as problem:
        if problem.code in _ELSEWHERE:
            return None
        raise


def _read(visit: Visit) -> dict[str, str]:
    try:
        return msgspec.convert(visit.console.jar.read(_NAME, visit.request.cookies) or {}, dict[str, str])
    except msgspec.ValidationError:
        return {}  # Another release wrote it.

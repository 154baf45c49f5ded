"""The pages nearest to ids that have no page of their own, and of those that belong to no organisation."""

from collections.abc import Mapping
from typing import Final

from soundmark.console.navigation import list_areas, offers_platform
from soundmark.console.pages.search.finding import Finding, Place
from soundmark.console.pages.search.names import list_catalog
from soundmark.console.visit import Visit

# By the prefix of an id, the area of the organisation at hand that is about it, and its page within that area.
_NEAREST: Final[Mapping[str, tuple[str, str]]] = {
    "aud": ("audit-log", ""),
    "opk": ("audit-log", "?action=offline_pack.created"),
    "offer": ("billing", "/offers"),
    "plan": ("billing", "/offers"),
    "prf": ("projects", ""),
    "supreq": ("tickets", ""),
    "whd": ("webhooks", ""),
}

# Of these, the catalogue has a page for each, which only administrators may see.
_CHOSEN: Final = frozenset({"offer", "plan"})


async def find_nearest(visit: Visit, place: Place, wanted: str) -> list[Finding]:
    """Return the page nearest to an id, with a sentence that says why; nothing for a prefix that no id has.

    Raises: soundmark_sdk.ClientFailure.
    """
    match wanted.partition("_")[0]:
        case "dct":
            certificate = await visit.core.get_deletion_certificate(wanted)
            return [Finding("deletion", certificate.certificate_id, f"/deletions/{wanted}", is_id=True)]
        case "sig":
            name, path = visit.say("search.signing_keys"), f"{visit.console.addresses.core}/v1/keys/history"
            return [Finding("page", name, path, note=visit.say("search.nearest.sig"))]
        case "abr" if offers_platform(visit.signed_in):
            name = visit.say("platform.abuse_reports")
            return [Finding("page", name, "/platform/abuse-reports", note=visit.say("search.nearest.abr"))]
        case prefix if prefix in _NEAREST:
            if prefix in _CHOSEN and offers_platform(visit.signed_in):
                entries = [each async for each in list_catalog(visit) if each.path.endswith(f"={wanted}")]
                if entries:
                    return entries
            return _find_area(visit, place, prefix)
        case _:
            return []


def _find_area(visit: Visit, place: Place, prefix: str) -> list[Finding]:
    area, page = _NEAREST[prefix]
    if place.organization is None or area not in list_areas(place.organization.role, in_project=False):
        return []
    name = visit.say(f"layout.area.{area.replace('-', '_')}")
    path = f"/organizations/{place.organization.id}/{area}{page}"
    return [Finding("page", name, path, note=visit.say(f"search.nearest.{prefix}"))]

"""The routes of Codes."""

from typing import Final

from starlette.routing import Route

from soundmark.console.pages.codes import detail, issuance, listing, recovery
from soundmark.console.routing import action, form_page, page

_ALL: Final = "/organizations/{organization_id}/projects/{project_id}/codes"
_ONE: Final = f"{_ALL}/{{xr_id}}"
routes: Final[list[Route]] = [
    page(_ALL, listing.show_list),
    form_page(f"{_ALL}/issue", issuance.show, issuance.issue),
    action(f"{_ALL}/issue/verdict", issuance.judge),
    action(f"{_ALL}/issue/tuple", issuance.prepare),
    page(f"{_ALL}/issued", issuance.show_issued),
    form_page(f"{_ALL}/recover", recovery.show, recovery.recover),
    page(f"{_ALL}/bundle", listing.download_bundle, offered_by=_ALL),
    form_page(f"{_ALL}/revoke", listing.show_revocation, listing.revoke_selection),
    page(_ONE, detail.show),
    page(f"{_ONE}/sound.wav", detail.send_sound, offered_by=_ONE),
    form_page(f"{_ONE}/revoke", detail.show_revocation, detail.revoke),
]

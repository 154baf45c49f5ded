"""The list of a project's Codes, and what is done with a selection of it."""

import asyncio
from collections.abc import Sequence
from typing import Final

from soundmark_sdk.client import ApiProblem, ClientFailure, CodeFilters, CodeOrder
from soundmark_sdk.client.records import Code, ListedCode, Page, Status
from starlette.responses import Response

from soundmark.console.downloads import answer_download
from soundmark.console.forms import FieldRefused, Form
from soundmark.console.intents import complete_prefix, write_headline
from soundmark.console.lookups import look_at_codes
from soundmark.console.offline_packs import find_valid_packs, redirect_after_stop
from soundmark.console.pages.codes.choices import find_campaigns
from soundmark.console.pages.codes.detail import check_xr_id, read_protocol
from soundmark.console.troubles import Trouble, describe, make_trouble
from soundmark.console.visit import Visit

# API v1, "Limits".
SELECTED_MAX: Final = 100
_UNPROCESSABLE: Final = 422
_RARE_FILTERS: Final = ("issuer", "created_from", "created_to")
_FILTERS: Final = ("address_prefix", "status", "campaign_id", *_RARE_FILTERS)
STATUSES: Final[tuple[Status, ...]] = ("active", "expired", "revoked")


async def show_list(visit: Visit) -> Response:
    """Show a page of the Codes that match the filters in the URL."""
    visit.form = Form(visit.request.query_params.multi_items())
    order = _read_order(visit)
    codes, campaigns = await asyncio.gather(_find_codes(visit, order), find_campaigns(visit, only_active=False))
    return visit.page(
        "codes/list.html",
        codes=codes,
        order=order,
        write_headline=write_headline,
        has_filters=any(visit.form.has(name) for name in _FILTERS),
        has_rare_filters=any(visit.form.has(name) for name in _RARE_FILTERS),
        campaigns=campaigns,
        names=dict(campaigns.options),
        selected_max=SELECTED_MAX,
    )


async def download_bundle(visit: Visit) -> Response:
    """Download the sounds of the selected Codes as a ZIP."""
    xr_ids, protocol = _read_selection(visit.request.query_params.getlist("xr_ids")), read_protocol(visit)
    visit.trouble = _find_fault(visit, xr_ids)
    if visit.trouble is not None:
        return visit.page("codes/bundle_refused.html", inactive={})
    try:
        return await answer_download(
            visit,
            lambda into: visit.core.codes.audio_bundle(xr_ids, into, protocol=protocol),
            f"{visit.project_id}.codes.zip",
            "application/zip",
        )
    except ApiProblem as refused:
        if refused.code != "code_not_active":
            raise
        visit.trouble = describe(refused, visit.language)
    inactive = await _find_inactive(visit, xr_ids)
    return visit.page("codes/bundle_refused.html", inactive=inactive, write_headline=write_headline)


async def show_revocation(visit: Visit) -> Response:
    """Show the Codes that would be revoked, and ask for confirmation."""
    visit.require_managing_role()
    sent = visit.form.texts("xr_ids") if visit.form else visit.request.query_params.getlist("xr_ids")
    return await _show_selection(visit, _read_selection(sent))


async def revoke_selection(visit: Visit) -> Response:
    """Revoke the selected Codes: all of them, or none."""
    xr_ids = _read_selection(visit.form.texts("xr_ids"))
    if _find_fault(visit, xr_ids) is not None:
        return await _show_selection(visit, xr_ids)
    revoked = await visit.core.codes.revoke_batch(xr_ids)
    try:
        packs = await find_valid_packs(visit)  # Those made before, too: the Codes are in no later one.
    except ClientFailure:
        packs = None  # The session has ended since, and the Codes are revoked: the page must not say otherwise.
    return redirect_after_stop(
        visit,
        f"{visit.tenant_path}/codes#revoked",
        "codes.selection.revoked" if revoked.unchanged_count else "codes.selection.all_revoked",
        packs_valid_until=None if packs is None else packs.valid_until,
        count=revoked.revoked_count,
        unchanged=revoked.unchanged_count,
    )


async def _find_inactive(visit: Visit, xr_ids: Sequence[str]) -> dict[str, Code]:
    """Return which of these Codes are revoked or have expired, which Core does not name, as far as it shows them."""
    looked_at = await look_at_codes(visit, xr_ids)
    return {xr_id: code for xr_id, code in looked_at.items() if code.status != "active"}


async def _show_selection(visit: Visit, xr_ids: Sequence[str]) -> Response:
    fault = _find_fault(visit, xr_ids)
    visit.trouble = visit.trouble or fault
    if fault is not None:
        return visit.page("codes/revoke_selection.html", xr_ids=[])
    packs, looked_at = await asyncio.gather(find_valid_packs(visit), look_at_codes(visit, xr_ids))
    return visit.page(
        "codes/revoke_selection.html", xr_ids=xr_ids, packs=packs, looked_at=looked_at, write_headline=write_headline
    )


def _read_order(visit: Visit) -> CodeOrder:
    """Return the order in the URL, and the default one for anything else."""
    sort, order = visit.query("sort"), visit.query("order")
    return CodeOrder(
        sort="expires_at" if sort == "expires_at" else "issued_at", order="asc" if order == "asc" else "desc"
    )


async def _find_codes(visit: Visit, order: CodeOrder) -> Page[ListedCode] | None:
    """Return a page of Codes, or None when a filter is refused, here or by Core, which the page then says."""
    try:
        return await visit.core.codes.page(
            _read_filters(visit), order=order, include_intent=True, cursor=visit.query("cursor")
        )
    except (FieldRefused, ApiProblem) as refused:
        if isinstance(refused, ApiProblem) and refused.status != _UNPROCESSABLE:
            raise
        visit.trouble = describe(refused, visit.language)
        return None


def _read_filters(visit: Visit) -> CodeFilters:
    form = visit.form
    status = form.text("status")
    if status and status not in STATUSES:
        raise FieldRefused("status", "refusals.not_offered")
    return CodeFilters(
        project_id=visit.project_id,
        campaign_id=form.text("campaign_id") or None,
        status=status or None,
        issuer=form.text("issuer") or None,
        created_from=form.instant("created_from"),
        created_to=form.instant("created_to"),
        address_prefix=complete_prefix(form.text("address_prefix")) or None,
    )


def _read_selection(xr_ids: Sequence[str]) -> list[str]:
    """Return the ids of a selection, each once.

    Raises: TenantUnknown for a text that is no id.
    """
    return [check_xr_id(each) for each in dict.fromkeys(xr_ids)]


def _find_fault(visit: Visit, xr_ids: Sequence[str]) -> Trouble | None:
    """Return why nothing can be done with a selection, or None."""
    if not xr_ids:
        return make_trouble(_UNPROCESSABLE, "selection_empty", visit.language)
    if len(xr_ids) > SELECTED_MAX:
        return make_trouble(_UNPROCESSABLE, "selection_too_large", visit.language)
    return None

"""Issuances whose answer is not known yet, as a browser keeps them and a form sends them back."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

from soundmark_sdk.client import ClientFailure, RememberedIssuance
from soundmark_sdk.client.failures import ApiProblem
from soundmark_sdk.client.records import Code
from starlette.responses import Response

from soundmark.console.forms import Form, FormMalformed
from soundmark.console.pages.codes.issuance_forms import Issuance, read_key
from soundmark.console.visit import Visit
from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp

SINGLE_ROUTE: Final = "/v1/codes"
BATCH_ROUTE: Final = "/v1/codes/batch"
# A receipt is kept for 24 hours (API v1, "Limits"); what is nearly as old is no longer sent.
_KEPT_FOR: Final = timedelta(hours=23)
# Core gives these refusals only when it has found no receipt of the key, so nothing was issued under it. The others say
# nothing about a request that the browser may have sent before.
NOTHING_ISSUED: Final = frozenset(
    {
        "campaign_archived",
        "campaign_not_found",
        "campaign_not_open",
        "entitlement_required",
        "integration_not_found",
        "integration_revoked",
        "intent_not_canonical",
        "organization_suspended",
        "quota_exceeded",
        "resource_deletion_in_progress",
        "validation_failed",
    }
)
_XR: Final = "xr_"
_BETWEEN_IDS: Final = "."  # No id has one.
_CREDENTIAL_REFUSALS: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class RecoveryTuple:
    """The recovery tuple of an issuance, without the key, as the fields of a form."""

    route: str
    body: str
    begun_at: str


def make_tuple(visit: Visit, issuance: Issuance) -> RecoveryTuple:
    """Return what a browser keeps before it sends an issuance."""
    route = BATCH_ROUTE if issuance.is_batch else SINGLE_ROUTE
    return RecoveryTuple(route, issuance.write_body().decode(), format_timestamp(visit.console.clock.now()))


def read_tuple(form: Form) -> RecoveryTuple | None:
    """Return the recovery tuple in a form, or None for a form that was not sent before."""
    if not form.has("body"):
        return None
    return RecoveryTuple(form.text("route"), form.text("body"), form.text("begun_at"))


def read_remembered(visit: Visit) -> RememberedIssuance:
    """Return the issuance that a form was sent back with, which must be in the project of the URL.

    Raises: FormMalformed.
    """
    kept = read_tuple(visit.form)
    if kept is None or kept.route not in {SINGLE_ROUTE, BATCH_ROUTE}:
        raise FormMalformed
    try:
        begun_at = parse_timestamp(kept.begun_at)
    except ValueError:
        raise FormMalformed from None
    document = read_document(kept.body)
    if (document.get("organization_id"), document.get("project_id")) != (visit.organization_id, visit.project_id):
        raise FormMalformed
    is_batch = kept.route == BATCH_ROUTE
    return RememberedIssuance(read_key(visit.form), visit.console.core.url, is_batch, kept.body.encode(), begun_at)


def is_too_old(visit: Visit, issuance: RememberedIssuance) -> bool:
    """Return whether an issuance is so old that repeating it could issue a second time."""
    return visit.console.clock.now() - issuance.remembered_at >= _KEPT_FOR


def read_document(body: str) -> dict[str, Any]:
    """Return the JSON object of a body.

    Raises: FormMalformed.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise FormMalformed from None
    if not isinstance(document, dict):
        raise FormMalformed
    return document


def is_about_the_caller(failure: ClientFailure) -> bool:
    """Return whether a failure says only that this person may not act now, and nothing about an issuance."""
    if not isinstance(failure, ApiProblem) or failure.code in NOTHING_ISSUED:
        return False
    return failure.status in _CREDENTIAL_REFUSALS


def lead_to_codes(visit: Visit, codes: tuple[Code, ...], key: str) -> Response:
    """Lead to what an issuance made; the fragment tells the browser that its answer was seen."""
    path = f"{visit.tenant_path}/codes"
    if len(codes) == 1:
        return visit.redirect(f"{path}/{codes[0].xr_id}#answered={key}", "codes.were_issued", count=1)
    return visit.redirect(f"{path}/issued?{urlencode({'ids': join_ids(codes)})}#answered={key}")


def join_ids(codes: Iterable[Code]) -> str:
    """Return the ids of Codes for a URL, without what all ids begin with: some proxies take headers of 4 KiB."""
    return _BETWEEN_IDS.join(code.xr_id.removeprefix(_XR) for code in codes)


def split_ids(text: str) -> list[str]:
    """Return the ids that were joined, each once, whatever they are."""
    return [f"{_XR}{each}" for each in dict.fromkeys(text.split(_BETWEEN_IDS)) if each]

"""The page that asks for the answer of an issuance after it was lost."""

from typing import Any, Final

from soundmark_sdk.client import ClientFailure
from starlette.responses import Response

from soundmark.console.forms import FormMalformed
from soundmark.console.intents import write_json
from soundmark.console.pages.codes.remembered import (
    RecoveryTuple,
    is_about_the_caller,
    is_too_old,
    lead_to_codes,
    read_document,
    read_remembered,
    read_tuple,
)
from soundmark.console.troubles import describe, make_trouble
from soundmark.console.visit import Visit

_NEVER_ISSUED: Final = "code_issue_not_found"
_UNPROCESSABLE: Final = 422


async def show(visit: Visit) -> Response:
    """Show an issuance whose answer is missing, or those that this browser keeps."""
    return _show(visit)


async def recover(visit: Visit) -> Response:
    """Ask for the answer of an issuance; only on request, issue it if it never took place."""
    remembered = read_remembered(visit)
    if is_too_old(visit, remembered):
        visit.trouble = make_trouble(_UNPROCESSABLE, "issuance_too_old", visit.language)
        return _show(visit)
    codes = visit.core.codes
    if not visit.form.has("issue"):
        return lead_to_codes(visit, await codes.recover(remembered), remembered.idempotency_key)
    try:
        issued = await codes.resume(remembered)
    except ClientFailure as failure:
        if is_about_the_caller(failure):
            raise
        visit.trouble = describe(failure, visit.language)
        return _show(visit, settled_key=None if failure.unsettled else remembered.idempotency_key)
    return lead_to_codes(visit, issued, remembered.idempotency_key)


def _show(visit: Visit, *, settled_key: str | None = None) -> Response:
    kept = read_tuple(visit.form)
    return visit.page(
        "codes/recover.html",
        kept=kept,
        requested=None if kept is None else _read_requested(kept),
        key=visit.form.text("idempotency_key"),
        settled_key=settled_key,
        was_never_issued=visit.trouble is not None and visit.trouble.code == _NEVER_ISSUED,
    )


def _read_requested(kept: RecoveryTuple) -> str | None:
    """Return what the kept request asks for, to be read by a person; None for what is no request."""
    try:
        document: dict[str, Any] = read_document(kept.body)
    except FormMalformed:
        return None
    return write_json(document)

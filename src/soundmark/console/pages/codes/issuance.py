"""The page that issues Codes, and what its scripts ask while somebody types."""

import asyncio
from datetime import timedelta
from typing import Final

from soundmark_sdk.client import ApiProblem, ClientFailure
from soundmark_sdk.client.records import Code, DryRun
from starlette.responses import JSONResponse, Response

from soundmark.console.forms import FieldRefused
from soundmark.console.pages.codes.choices import find_campaigns, find_integrations
from soundmark.console.pages.codes.issuance_forms import Issuance, make_key, read_issuance, read_key
from soundmark.console.pages.codes.remembered import (
    NOTHING_ISSUED,
    RecoveryTuple,
    is_about_the_caller,
    is_too_old,
    lead_to_codes,
    make_tuple,
    read_remembered,
    read_tuple,
)
from soundmark.console.troubles import describe, make_trouble
from soundmark.console.visit import Visit

_DEFAULT_LIFETIME: Final = timedelta(days=30)
_NEVER_ISSUED: Final = "code_issue_not_found"
_CONFLICT: Final = "idempotency_conflict"
_UNPROCESSABLE: Final = 422
_UNAVAILABLE: Final = 503
_NO_STORE: Final = {"cache-control": "no-store"}


async def show(visit: Visit) -> Response:
    """Show the form of an issuance."""
    return await _show_form(visit, read_tuple(visit.form))


async def issue(visit: Visit) -> Response:
    """Issue what the form asks for, once for each form that was shown, or only check it."""
    key, issuance = read_key(visit.form), read_issuance(visit)
    if visit.form.has("check"):
        return await _show_form(visit, read_tuple(visit.form), verdict=await _dry_run(visit, issuance))
    kept = read_tuple(visit.form)
    if kept is not None and kept.body != issuance.write_body().decode():
        visit.trouble = make_trouble(_UNPROCESSABLE, "issuance_changed", visit.language)
        return await _show_form(visit, kept)
    if kept is not None and is_too_old(visit, read_remembered(visit)):
        visit.trouble = make_trouble(_UNPROCESSABLE, "issuance_too_old", visit.language)
        return await _show_form(visit, kept)
    try:
        codes = await _send(visit, issuance, key)
    except ClientFailure as failure:
        if is_about_the_caller(failure):
            raise
        visit.trouble = describe(await _find_reason(visit, issuance, failure), visit.language)
        kept = None if failure.unsettled is None else read_tuple(visit.form) or make_tuple(visit, issuance)
        return await _show_form(visit, kept, settled_key=key if visit.trouble.code in NOTHING_ISSUED else None)
    return lead_to_codes(visit, codes, key)


async def judge(visit: Visit) -> Response:
    """Answer whether the form would issue, as JSON for the script of the page."""
    try:
        issuance = read_issuance(visit)
    except FieldRefused as refused:
        return JSONResponse({"would_issue": False, "sentence": visit.say(refused.message)}, headers=_NO_STORE)
    try:
        verdict = await _dry_run(visit, issuance)
    except ClientFailure as failure:
        trouble = describe(failure, visit.language)
        return JSONResponse({"would_issue": False, "sentence": trouble.title}, headers=_NO_STORE)
    sentence = say_verdict(visit, verdict)
    return JSONResponse({"would_issue": verdict.would_issue, "sentence": sentence}, headers=_NO_STORE)


async def prepare(visit: Visit) -> Response:
    """Answer the recovery tuple of the form, which the script of the page keeps before it sends the form."""
    try:
        kept = make_tuple(visit, read_issuance(visit))
    except FieldRefused:
        return JSONResponse({}, _UNPROCESSABLE, _NO_STORE)
    return JSONResponse({"route": kept.route, "body": kept.body, "begun_at": kept.begun_at}, headers=_NO_STORE)


def say_verdict(visit: Visit, verdict: DryRun) -> str:
    """Return the result of a dry run as a sentence."""
    remaining = visit.say("codes.verdict.remaining", count=verdict.quota_remaining)
    if verdict.would_issue:
        return f"{visit.say('codes.verdict.ready')} {remaining}"
    key = f"problems.{verdict.code}"
    reason = visit.say(key) if visit.language.knows(key) else str(verdict.code)
    return f"{visit.say('codes.verdict.refused', reason=reason)} {remaining}"


async def _send(visit: Visit, issuance: Issuance, key: str) -> tuple[Code, ...]:
    codes = visit.core.codes
    if visit.form.has("body"):
        return await codes.resume(read_remembered(visit))
    if issuance.is_batch:
        return (await codes.issue_batch(issuance.request, issuance.count, idempotency_key=key)).data
    return (await codes.issue(issuance.request, idempotency_key=key),)


async def _dry_run(visit: Visit, issuance: Issuance) -> DryRun:
    if issuance.is_batch:
        return await visit.core.codes.dry_run_batch(issuance.request, issuance.count)
    return await visit.core.codes.dry_run(issuance.request)


async def _find_reason(visit: Visit, issuance: Issuance, failure: ClientFailure) -> ClientFailure:
    """Return why nothing was issued, where the client knows only that nothing was."""
    if not isinstance(failure, ApiProblem) or failure.code != _NEVER_ISSUED:
        return failure
    try:
        verdict = await _dry_run(visit, issuance)
    except ClientFailure as reason:
        return reason
    return failure if verdict.code is None else ApiProblem(_UNAVAILABLE, verdict.code, failure.detail)


async def _show_form(
    visit: Visit,
    unsettled: RecoveryTuple | None,
    *,
    settled_key: str | None = None,
    verdict: DryRun | None = None,
) -> Response:
    """Show the form; while the answer of an issuance is `unsettled`, under the same idempotency key."""
    code = None if visit.trouble is None else visit.trouble.code
    key = visit.form.text("idempotency_key")
    campaigns, integrations = await asyncio.gather(find_campaigns(visit, only_active=True), find_integrations(visit))
    return visit.page(
        "codes/issue.html",
        key=key if key and code != _CONFLICT else make_key(visit),
        settled_key=settled_key,
        unsettled=unsettled,
        is_conflict=code == _CONFLICT,
        verdict=None if verdict is None else say_verdict(visit, verdict),
        would_issue=verdict is not None and verdict.would_issue,
        default_expiry=(visit.console.clock.now() + _DEFAULT_LIFETIME).strftime("%Y-%m-%dT%H:%M"),
        campaigns=campaigns,
        integrations=integrations,
    )

"""The page that issues Codes, and what its scripts ask while somebody types."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from soundmark_sdk.client import ApiProblem, ClientFailure, CodeFilters
from soundmark_sdk.client.records import Code, DryRun
from starlette.responses import JSONResponse, Response

from soundmark.console.forms import FieldRefused
from soundmark.console.intents import Headline, write_headline
from soundmark.console.lookups import find_campaign_name
from soundmark.console.pages.codes.choices import find_allowed_hosts, find_campaigns, find_integrations
from soundmark.console.pages.codes.detail import check_xr_id
from soundmark.console.pages.codes.issuance_forms import (
    BATCH_MAX,
    PRESETS,
    Issuance,
    choose_expiry,
    make_key,
    read_issuance,
    read_key,
)
from soundmark.console.pages.codes.remembered import (
    NOTHING_ISSUED,
    RecoveryTuple,
    is_about_the_caller,
    is_too_old,
    lead_to_codes,
    make_tuple,
    read_remembered,
    read_tuple,
    split_ids,
)
from soundmark.console.parts import read_part
from soundmark.console.troubles import TenantUnknown, Trouble, describe, make_trouble
from soundmark.console.visit import Visit

_DEFAULT_LIFETIME: Final = timedelta(weeks=1)
_NEVER_ISSUED: Final = "code_issue_not_found"
_CONFLICT: Final = "idempotency_conflict"
_INVALID: Final = "validation_failed"
_UNPROCESSABLE: Final = 422
_UNAVAILABLE: Final = 503
_NO_STORE: Final = {"cache-control": "no-store"}


async def show(visit: Visit) -> Response:
    """Show the form of an issuance."""
    visit.require_managing_role()
    return await _show_form(visit, read_tuple(visit.form))


async def issue(visit: Visit) -> Response:
    """Issue what the form asks for, once for each form that was shown, or only check it."""
    if visit.form.has("preset"):
        visit.form = choose_expiry(visit.form, visit.console.clock.now())
        return await _show_form(visit, read_tuple(visit.form))
    key, issuance = read_key(visit.form), read_issuance(visit)
    if visit.form.has("check"):
        verdict = await _dry_run(visit, issuance)
        sentence = say_verdict(visit, verdict, issuance)
        preview = write_headline(issuance.request.intent)
        return await _show_form(visit, read_tuple(visit.form), verdict=verdict, sentence=sentence, preview=preview)
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
        if visit.trouble.code == _CONFLICT:  # The form has another key now, so it can be sent from here.
            visit.trouble = replace(visit.trouble, detail=visit.say("codes.issue.was_sent"))
        kept = None if failure.unsettled is None else read_tuple(visit.form) or make_tuple(visit, issuance)
        return await _show_form(visit, kept, settled_key=key if visit.trouble.code in NOTHING_ISSUED else None)
    return lead_to_codes(visit, codes, key)


async def show_issued(visit: Visit) -> Response:
    """Show what an issuance of several Codes made."""
    xr_ids = [check_xr_id(each) for each in split_ids(visit.query("ids") or "")]
    if not 1 <= len(xr_ids) <= BATCH_MAX:
        raise TenantUnknown
    # The Codes of a batch differ only in their ids and tokens.
    code = await visit.core.codes.show(xr_ids[0], project_id=visit.project_id)
    campaign_name = await find_campaign_name(visit, code)
    return visit.page(
        "codes/issued.html", xr_ids=xr_ids, code=code, what=write_headline(code.intent), campaign_name=campaign_name
    )


async def judge(visit: Visit) -> Response:
    """Answer whether the form would issue, as JSON for the script of the page."""
    try:
        issuance = read_issuance(visit)
    except FieldRefused as refused:
        sentence = _say_fields(visit, {refused.name: visit.say(refused.message)})
        return JSONResponse({"would_issue": False, "sentence": sentence}, headers=_NO_STORE)
    try:
        verdict = await _dry_run(visit, issuance)
    except ClientFailure as failure:
        trouble = describe(failure, visit.language)
        sentence = _say_fields(visit, _place_fields(visit, trouble)) or trouble.title
        return JSONResponse({"would_issue": False, "sentence": sentence}, headers=_NO_STORE)
    sentence = say_verdict(visit, verdict, issuance)
    return JSONResponse({"would_issue": verdict.would_issue, "sentence": sentence}, headers=_NO_STORE)


async def prepare(visit: Visit) -> Response:
    """Answer the recovery tuple of the form, which the script of the page keeps before it sends the form."""
    try:
        kept = make_tuple(visit, read_issuance(visit))
    except FieldRefused:
        return JSONResponse({}, _UNPROCESSABLE, _NO_STORE)
    return JSONResponse({"route": kept.route, "body": kept.body, "begun_at": kept.begun_at}, headers=_NO_STORE)


def say_verdict(visit: Visit, verdict: DryRun, issuance: Issuance) -> str:
    """Return the result of a dry run as a sentence."""
    remaining = visit.say("codes.verdict.remaining", count=verdict.quota_remaining)
    if verdict.would_issue:
        return f"{visit.say('codes.verdict.ready')} {remaining}"
    key = f"problems.{verdict.code}"
    reason = visit.say(key) if visit.language.knows(key) else str(verdict.code)
    sentences = [visit.say("codes.verdict.refused", reason=reason), remaining]
    # A dry run names no field. Of what it finds invalid in a well-formed request, there is only this one.
    if verdict.code == _INVALID and issuance.request.expires_at <= visit.console.clock.now():
        sentences.insert(1, _say_fields(visit, {"expires_at": visit.say("refusals.in_the_past")}))
    return " ".join(sentences)


def _say_fields(visit: Visit, fields: Mapping[str, str]) -> str:
    """Return what is wrong with each field, after its name."""
    sentences = []
    for name, message in fields.items():
        label = visit.say(f"fields.{name}") if visit.language.knows(f"fields.{name}") else name
        sentences.append(f"{label}{visit.say('lists.colon')} {message}")
    return " ".join(sentences)


def _place_fields(visit: Visit, trouble: Trouble) -> Mapping[str, str]:
    """Return the refused fields by the names of this form: the address of a typed intent stands in its resource."""
    is_link = visit.form.text("mode") == "link"
    return {"resource" if name == "url" and not is_link else name: text for name, text in trouble.fields.items()}


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
    sentence: str | None = None,
    preview: Headline | None = None,
) -> Response:
    """Show the form; while the answer of an issuance is `unsettled`, under the same idempotency key."""
    code = None if visit.trouble is None else visit.trouble.code
    key = visit.form.text("idempotency_key")
    if visit.trouble is not None:
        visit.trouble = replace(visit.trouble, fields=_place_fields(visit, visit.trouble))
    campaigns, integrations, issuer, allowed_hosts = await asyncio.gather(
        find_campaigns(visit, only_active=True),
        find_integrations(visit),
        _suggest_issuer(visit),
        find_allowed_hosts(visit),
    )
    return visit.page(
        "codes/issue.html",
        key=key if key and code != _CONFLICT else make_key(visit),
        settled_key=settled_key,
        unsettled=unsettled,
        verdict=sentence,
        would_issue=verdict is not None and verdict.would_issue,
        default_expiry=(visit.console.clock.now() + _DEFAULT_LIFETIME).strftime("%Y-%m-%dT%H:%M"),
        default_issuer=issuer,
        presets=PRESETS,
        preview=preview,
        campaigns=campaigns,
        integrations=integrations,
        allowed_hosts=allowed_hosts,
    )


async def _suggest_issuer(visit: Visit) -> str:
    """Return the issuer of the project's newest Code, or else the organisation's name."""
    # A form that comes back has an issuer, or a person has removed it, and perhaps Core could not name the tenant.
    if visit.form or visit.organization is None:
        return ""
    codes = await read_part(visit.core.codes.page(CodeFilters(project_id=visit.project_id), limit=1))
    return codes.data[0].issuer if codes is not None and codes.data else visit.organization.name

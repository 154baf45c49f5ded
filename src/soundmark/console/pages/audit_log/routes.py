"""The pages of the audit log."""

import asyncio
from dataclasses import replace
from http import HTTPStatus
from typing import Final, Literal

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import AuditEntry, Page
from soundmark_sdk.client.requests import AuditFilters
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.audit_actions import ACTIONS
from soundmark.console.audit_sentences import SentenceWriter, find_emails
from soundmark.console.downloads import answer_download
from soundmark.console.forms import FieldRefused, Form
from soundmark.console.parts import read_part
from soundmark.console.routing import page
from soundmark.console.troubles import describe
from soundmark.console.visit import Visit

_KEY_PREFIX: Final = "key_"
# Half as many as of other lists: an entry has its facts beside it, and a page weighs 150 kB at most.
_ENTRIES_SHOWN: Final = 50
_FILTERS: Final = ("actor", "action", "from", "from_zone", "to", "to_zone")


async def show_list(visit: Visit) -> Response:
    """Show a page of the entries that match the filters in the URL.

    If the members cannot be read, entries show ids instead of e-mail addresses, and the filter takes only ids.
    """
    visit.form = Form(visit.request.query_params.multi_items())
    entries: Page[AuditEntry] | None = None
    emails: dict[str, str] | None = {}
    try:
        filters = _read_filters(visit.form)
        if _may_be_name(filters.actor):
            emails = await read_part(_find_all_emails(visit))
            entries = await _find_entries(visit, _replace_name(filters, emails or {}))
        else:
            entries, emails = await asyncio.gather(_find_entries(visit, filters), read_part(find_emails(visit)))
    except (FieldRefused, ApiProblem) as refused:
        if isinstance(refused, ApiProblem) and refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        visit.trouble = describe(refused, visit.language)
    writer = SentenceWriter(visit, emails or {})
    named = sorted(((action, writer.name_action(action)) for action in ACTIONS), key=lambda pair: pair[1])
    return visit.page(
        "audit_log/list.html",
        entries=entries,
        writer=writer,
        emails=None if emails is None else sorted(emails.values()),
        actions=[("", visit.say("audit_log.every_action")), *named],
        # A script sends the zone of a time that was left empty, too.
        chosen={
            name: visit.form.text(name)
            for name in _FILTERS
            if visit.form.has(name) and visit.form.has(name.removesuffix("_zone"))
        },
    )


async def download(visit: Visit) -> Response:
    """Download every entry that matches the filters in the URL."""
    form = Form(visit.request.query_params.multi_items())
    filters, written_as = _read_filters(form), _read_format(form)
    if _may_be_name(filters.actor):
        filters = _replace_name(filters, await _find_all_emails(visit))
    return await answer_download(
        visit,
        lambda into: visit.core.audit_log.download(into, filters, form=written_as),
        f"{visit.organization_id}.audit-log.{written_as}",
        "text/csv" if written_as == "csv" else "application/x-ndjson",
    )


async def show_verification(visit: Visit) -> Response:
    """Show whether the log is unaltered."""
    verification = await visit.core.audit_log.verify()
    return visit.page("audit_log/verification.html", verification=verification)


def _read_filters(form: Form) -> AuditFilters:
    return AuditFilters(
        action=form.text("action") or None,
        actor=form.text("actor") or None,
        from_at=form.instant("from"),
        to_at=form.instant("to"),
    )


def _read_format(form: Form) -> Literal["ndjson", "csv"]:
    return "ndjson" if form.text("format") == "ndjson" else "csv"


async def _find_entries(visit: Visit, filters: AuditFilters) -> Page[AuditEntry]:
    return await visit.core.audit_log.page(filters, limit=_ENTRIES_SHOWN, cursor=visit.query("cursor"))


async def _find_all_emails(visit: Visit) -> dict[str, str]:
    return {member.subject_id: member.email async for member in visit.core.members.list()}


def _may_be_name(actor: str | None) -> bool:
    return actor is not None and not actor.startswith(_KEY_PREFIX)


def _replace_name(filters: AuditFilters, emails: dict[str, str]) -> AuditFilters:
    """Return the filters with the id of the member whose e-mail address, or a part of it, they name.

    Any other text is an id already, such as that of somebody who left.

    Raises: FieldRefused if several members match.
    """
    actor = filters.actor or ""
    if actor in emails:
        return filters
    typed = actor.casefold()
    found = {subject: email for subject, email in emails.items() if typed in email.casefold()}
    whole = [subject for subject, email in found.items() if email.casefold() == typed]
    match whole or list(found):
        case []:
            return filters
        case [subject]:
            return replace(filters, actor=subject)
        case _:
            raise FieldRefused("actor", "audit_log.actor.several")


_ALL: Final = "/organizations/{organization_id}/audit-log"
routes: Final[list[Route]] = [
    page(_ALL, show_list),
    page(f"{_ALL}/download", download, offered_by=f"{_ALL}?{{query}}"),
    page(f"{_ALL}/verification", show_verification),
]

"""The pages of the audit log."""

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import AuditEntry, Page
from soundmark_sdk.client.requests import AuditFilters
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.audit_actions import ACTIONS
from soundmark.console.downloads import answer_download
from soundmark.console.forms import FieldRefused, Form
from soundmark.console.routing import page
from soundmark.console.troubles import describe
from soundmark.console.visit import Visit

_FILTERS: Final = ("actor", "action", "from", "from_zone", "to", "to_zone")


@dataclass(frozen=True, slots=True)
class _ShownActor:
    """Who did something: of what kind, the list of everything else they did, and their name."""

    kind: str
    path: str
    name: str


async def show_list(visit: Visit) -> Response:
    """Show a page of the entries that match the filters in the URL."""
    visit.form = Form(visit.request.query_params.multi_items())
    entries: Page[AuditEntry] | None = None
    emails: dict[str, str] = {}
    try:
        filters = _read_filters(visit.form)
        entries, emails = await asyncio.gather(_find_entries(visit, filters), _find_emails(visit))
    except (FieldRefused, ApiProblem) as refused:
        if isinstance(refused, ApiProblem) and refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        visit.trouble = describe(refused, visit.language)
    return visit.page(
        "audit_log/list.html",
        entries=entries,
        actors={} if entries is None else _describe_actors(visit, entries, emails),
        actions=[("", visit.say("audit_log.every_action")), *_name_actions(visit)],
        chosen={name: visit.form.text(name) for name in _FILTERS if visit.form.has(name)},
        write=_write_value,
    )


async def download(visit: Visit) -> Response:
    """Download every entry that matches the filters in the URL."""
    form = Form(visit.request.query_params.multi_items())
    filters, written_as = _read_filters(form), _read_format(form)
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


def _describe_actors(
    visit: Visit, entries: Page[AuditEntry], emails: dict[str, str]
) -> dict[tuple[str, str], _ShownActor]:
    """Return who did it by type and id, once for each, because most entries have the same few."""
    shown = {}
    for kind, identity in {(entry.actor.type, entry.actor.id) for entry in entries.data}:
        key = f"audit_log.actor.{kind}"
        name = visit.say(key) if visit.language.knows(key) else kind
        path = visit.here(actor=identity, cursor=None)
        shown[kind, identity] = _ShownActor(name, path, emails.get(identity, identity))
    return shown


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
    return await visit.core.audit_log.page(filters, cursor=visit.query("cursor"))


async def _find_emails(visit: Visit) -> dict[str, str]:
    """Return the addresses of the newest members, by which people know each other better than by their ids."""
    members = await visit.core.members.page()
    return {member.subject_id: member.email for member in members.data}


def _name_actions(visit: Visit) -> list[tuple[str, str]]:
    named = [(action, visit.say(f"audit_log.action.{action}")) for action in ACTIONS]
    return sorted(named, key=lambda pair: pair[1])


def _write_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_ALL: Final = "/organizations/{organization_id}/audit-log"
routes: Final[list[Route]] = [
    page(_ALL, show_list),
    page(f"{_ALL}/download", download, offered_by=f"{_ALL}?{{query}}"),
    page(f"{_ALL}/verification", show_verification),
]

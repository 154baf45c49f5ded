"""The page of the hosts to which the links of a project may lead."""

import re
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import AllowedHosts
from starlette.responses import Response

from soundmark.console.forms import Form
from soundmark.console.refused_fields import explain_entries
from soundmark.console.troubles import describe, make_trouble
from soundmark.console.visit import Visit

_SEPARATORS: Final = re.compile(r"[\s,;]+")
_INVALID: Final = "validation_failed"


async def show(visit: Visit) -> Response:
    """Show the allowed hosts of a project, and a form to people who may change them."""
    return await _show(visit, {})


async def save(visit: Visit) -> Response:
    """Set the allowed hosts; an entry that Core refuses is shown again with the reason beside it.

    A list that somebody else changed since the form was shown is replaced only by a form that was shown with it.
    """
    hosts = _read_hosts(visit.form) if visit.form.text("mode") == "listed" else None
    if visit.form.has("shown"):
        allowed = await visit.core.projects.allowed_hosts()
        if visit.form.text("shown") != _write_version(allowed):
            return _show_change(visit, allowed)
    try:
        await visit.core.projects.put_allowed_hosts(hosts)
    except ApiProblem as refused:
        if refused.code != _INVALID:
            raise
        visit.trouble = describe(refused, visit.language)
        return await _show(visit, explain_entries(refused.errors, "hosts", visit.language))
    return visit.redirect(f"{visit.tenant_path}/allowed-hosts", "allowed_hosts.saved")


async def _show(visit: Visit, refusals: Mapping[int, str]) -> Response:
    allowed = await visit.core.projects.allowed_hosts()
    return _show_form(visit, allowed, refusals, visit.form.text("shown", _write_version(allowed)))


def _show_change(visit: Visit, allowed: AllowedHosts) -> Response:
    hosts = visit.say("allowed_hosts.any") if allowed.hosts is None else ", ".join(allowed.hosts)
    detail = visit.say("allowed_hosts.changed", hosts=hosts or visit.say("allowed_hosts.none"))
    visit.trouble = replace(make_trouble(HTTPStatus.CONFLICT, "hosts_changed", visit.language), detail=detail)
    return _show_form(visit, allowed, {}, _write_version(allowed))


def _show_form(visit: Visit, allowed: AllowedHosts, refusals: Mapping[int, str], shown: str) -> Response:
    return visit.page(
        "projects/allowed_hosts.html",
        allowed=allowed,
        hosts=_read_hosts(visit.form) if visit.form else allowed.hosts or (),
        refusals=refusals,
        shown=shown,
        is_listed=visit.form.text("mode") == "listed" if visit.form else allowed.hosts is not None,
    )


def _write_version(allowed: AllowedHosts) -> str:
    return "never" if allowed.updated_at is None else allowed.updated_at.isoformat()


def _read_hosts(form: Form) -> list[str]:
    """Return every entry of the form in its order: one field each, and what was typed or pasted below them."""
    added = _SEPARATORS.split(form.raw("added"))
    return [entry for each in (*form.texts("hosts"), *added) if (entry := each.strip())]

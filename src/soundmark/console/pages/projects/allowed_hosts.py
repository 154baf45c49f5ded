"""The page of the hosts to which the links of a project may lead."""

import re
from collections.abc import Mapping
from typing import Final

from soundmark_sdk.client import ApiProblem
from starlette.responses import Response

from soundmark.console.forms import Form
from soundmark.console.refused_fields import explain_entries
from soundmark.console.troubles import describe
from soundmark.console.visit import Visit

_SEPARATORS: Final = re.compile(r"[\s,;]+")
_INVALID: Final = "validation_failed"


async def show(visit: Visit) -> Response:
    """Show the allowed hosts of a project, and a form to people who may change them."""
    return await _show(visit, {})


async def save(visit: Visit) -> Response:
    """Set the allowed hosts; an entry that Core refuses is shown again with the reason beside it."""
    hosts = _read_hosts(visit.form) if visit.form.text("mode") == "listed" else None
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
    return visit.page(
        "projects/allowed_hosts.html",
        allowed=allowed,
        hosts=_read_hosts(visit.form) if visit.form else allowed.hosts or (),
        refusals=refusals,
        is_listed=visit.form.text("mode") == "listed" if visit.form else allowed.hosts is not None,
    )


def _read_hosts(form: Form) -> list[str]:
    """Return every entry of the form in its order: one field each, and what was typed or pasted below them."""
    added = _SEPARATORS.split(form.raw("added"))
    return [entry for each in (*form.texts("hosts"), *added) if (entry := each.strip())]

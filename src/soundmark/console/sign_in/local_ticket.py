"""Signing in as the operator, with a link that works once, for an hour, and on this machine only.

`soundmark up` prints such a link where there is no identity provider. Opening it signs in at once; a browser that only
loads it in advance does not use it up.
"""

from http import HTTPStatus
from typing import Final, Literal

import structlog
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.gate import is_on_this_machine, may_enter
from soundmark.console.return_path import FIRST_PAGE
from soundmark.console.routing import page
from soundmark.console.session import Session
from soundmark.console.troubles import make_trouble
from soundmark.console.visit import Visit
from soundmark.kit.text.ids import mint_secret
from soundmark.operating_system.files import NotTrusted
from soundmark.operating_system.one_time_tickets import redeem_ticket

_PATH: Final = "/sign-in/link"

# Why nobody was signed in; the messages that begin with `problems.` explain each.
_Refusal = Literal["link_unknown_here", "link_elsewhere", "link_spent", "link_tickets_unusable"]
_STATUSES: Final[dict[_Refusal, HTTPStatus]] = {
    "link_unknown_here": HTTPStatus.NOT_FOUND,
    "link_elsewhere": HTTPStatus.FORBIDDEN,
    "link_spent": HTTPStatus.FORBIDDEN,
    "link_tickets_unusable": HTTPStatus.SERVICE_UNAVAILABLE,
}
_log: Final = structlog.get_logger()


async def sign_in(visit: Visit) -> Response:
    """Use up the ticket, and make this browser's session the operator's."""
    if visit.request.method != "GET" or "prefetch" in visit.request.headers.get("sec-purpose", ""):
        # Browsers drop what they loaded in advance when it fails, and load it again once it is opened.
        return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE, headers={"cache-control": "no-store"})
    refusal = _judge(visit) or _redeem(visit)
    if refusal == "link_spent" and may_enter(visit):
        return visit.redirect(FIRST_PAGE)  # By the back button, or opened twice.
    if refusal is not None:
        return _refuse(visit, refusal)
    console = visit.console
    session = Session(
        kind="operator",
        # As Core names the operator: contract, section 2.
        subject="operator",
        email="operator@localhost",
        csrf_token=mint_secret(console.entropy, ""),
        started_at=console.clock.now(),
        has_second_factor=True,
    )
    response = visit.redirect(FIRST_PAGE)
    await console.sessions.begin(visit.request, response, session)
    return response


def _judge(visit: Visit) -> _Refusal | None:
    """Return why this visitor cannot use any link, or None."""
    if visit.console.tickets is None:
        return "link_unknown_here"
    return None if is_on_this_machine(visit) else "link_elsewhere"


def _redeem(visit: Visit) -> _Refusal | None:
    assert visit.console.tickets is not None, "judged before"
    try:
        was_valid = redeem_ticket(visit.console.tickets, visit.query("ticket") or "", visit.console.clock)
    except (NotTrusted, OSError) as error:
        _log.error("sign_in_tickets_unusable", reason=str(error))
        return "link_tickets_unusable"
    return None if was_valid else "link_spent"


def _refuse(visit: Visit, refusal: _Refusal) -> Response:
    visit.trouble = make_trouble(_STATUSES[refusal], refusal, visit.language)
    return visit.page("local_ticket/refused.html")


routes: Final[list[Route]] = [page(_PATH, sign_in, public=True)]

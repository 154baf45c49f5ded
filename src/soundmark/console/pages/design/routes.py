"""The page that shows the parts of pages in every state, for those who build pages."""

from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.routing import page
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

_STATES: Final = ("active", "pending", "expired", "revoked", "delivered", "failed")


async def show(visit: Visit) -> Response:
    """Show the parts to the operator of `soundmark up`, whose sessions no other console has.

    Raises: TenantUnknown for everybody else.
    """
    if visit.signed_in.kind != "operator":
        raise TenantUnknown
    return visit.page("design/design.html", states=_STATES, now=visit.console.clock.now())


routes: Final[list[Route]] = [page("/design", show)]

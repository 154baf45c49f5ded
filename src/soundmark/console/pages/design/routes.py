"""The page that shows the parts of pages in every state, for those who build pages."""

from datetime import timedelta
from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.charts import draw_columns
from soundmark.console.routing import page
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

_EVENTS: Final = (120, 87, 0, 143, 98, 205, 176, 92, 61, 134)
_STATES: Final = ("active", "pending", "expired", "revoked", "delivered", "failed")


async def show(visit: Visit) -> Response:
    """Show the parts to the operator of `soundmark up`, whose sessions no other console has.

    Raises: TenantUnknown for everybody else.
    """
    if visit.signed_in.kind != "operator":
        raise TenantUnknown
    now = visit.console.clock.now()
    days = [(now - timedelta(days=back)).date() for back in reversed(range(len(_EVENTS)))]
    hearings = [
        (day, {"events": count, "estimated_reach": count // 2}) for day, count in zip(days, _EVENTS, strict=True)
    ]
    return visit.page("design/design.html", states=_STATES, now=now, chart=draw_columns(hearings, is_stacked=False))


routes: Final[list[Route]] = [page("/design", show)]

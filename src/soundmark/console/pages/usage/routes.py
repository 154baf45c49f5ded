"""The page of an organisation's usage."""

from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.charts import measure_share
from soundmark.console.routing import page
from soundmark.console.visit import Visit


async def show_usage(visit: Visit) -> Response:
    """Show what an organisation used this month, and its quotas."""
    usage = await visit.core.usage()
    modes = [(each, measure_share(each.events, each.monthly_quota or 0)) for each in usage.audience.modes]
    codes_share = measure_share(usage.codes.issued, usage.codes.monthly_quota)
    return visit.page("usage/usage.html", usage=usage, codes_share=codes_share, modes=modes)


routes: Final[list[Route]] = [page("/organizations/{organization_id}/usage", show_usage)]

"""The page of an organisation's usage."""

from datetime import UTC, date, timedelta
from typing import Final

from soundmark_sdk.client import AnswerMalformed
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.charts import forecast_month, measure_share
from soundmark.console.routing import page
from soundmark.console.visit import Visit


async def show_usage(visit: Visit) -> Response:
    """Show what an organisation used this month, and its quotas."""
    usage = await visit.core.usage()
    modes = [(each, measure_share(each.events, each.monthly_quota or 0)) for each in usage.audience.modes]
    codes_share = measure_share(usage.codes.issued, usage.codes.monthly_quota)
    now = visit.console.clock.now().astimezone(UTC)
    month = _read_month(usage.month)
    return visit.page(
        "usage/usage.html",
        usage=usage,
        codes_share=codes_share,
        modes=modes,
        month=month,
        next_month=(month + timedelta(days=31)).replace(day=1),
        forecast=forecast_month(usage.codes.issued, now)
        if (now.year, now.month) == (month.year, month.month)
        else None,
    )


def _read_month(text: str) -> date:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        raise AnswerMalformed("The service's answer.month is no month.") from None


routes: Final[list[Route]] = [page("/organizations/{organization_id}/usage", show_usage)]

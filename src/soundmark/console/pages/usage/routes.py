"""The page of an organisation's usage."""

import calendar
from datetime import UTC, date, datetime, timedelta
from typing import Final

from soundmark_sdk.client import AnswerMalformed
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


def forecast_month(issued: int, now: datetime) -> int:
    """Return how many there will be at the end of the month (UTC) if it goes on as it began."""
    days = calendar.monthrange(now.year, now.month)[1]
    passed = now.day - 1 + now.hour / 24 + now.minute / 1440
    # An hour says little of a month: a day is the least that is told from.
    return max(issued, round(issued * days / max(passed, 1)))


def _read_month(text: str) -> date:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        raise AnswerMalformed("The service's answer.month is no month.") from None


routes: Final[list[Route]] = [page("/organizations/{organization_id}/usage", show_usage)]

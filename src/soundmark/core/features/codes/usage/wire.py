"""The response shape of usage."""

from typing import Literal

from soundmark.core.features.codes.usage.service import Usage
from soundmark.wire.shape import Wire


class CodesUsageView(Wire):
    """Codes issued this month, whatever their status, and the monthly quota."""

    issued: int
    monthly_quota: int
    remaining: int


class AudienceModeView(Wire):
    """Events recorded this month in one mode."""

    mode: Literal["demo", "contract", "self_service"]
    events: int
    active_integrations: int
    monthly_quota: int


class AudienceUsageView(Wire):
    """Usage of Audience. If Audience cannot be reached, `status` is `unavailable` and `modes` is empty."""

    status: Literal["available", "unavailable"]
    modes: list[AudienceModeView]


class UsageView(Wire):
    """The usage of an organisation in the current calendar month (UTC)."""

    organization_id: str
    month: str
    codes: CodesUsageView
    audience: AudienceUsageView


def usage_view(organization_id: str, usage: Usage) -> UsageView:
    """Return the view of an organisation's usage."""
    quota = usage.codes
    modes = [AudienceModeView.from_record(each) for each in usage.audience or ()]
    return UsageView(
        organization_id=organization_id,
        month=quota.month.name,
        codes=CodesUsageView(issued=quota.issued_count, monthly_quota=quota.monthly_quota, remaining=quota.remaining),
        audience=AudienceUsageView(status="unavailable" if usage.audience is None else "available", modes=modes),
    )

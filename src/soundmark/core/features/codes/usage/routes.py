"""The route of usage."""

from soundmark.core.domain.codes.quota import Quota
from soundmark.core.edge.examples import ISSUED_AT, ORGANIZATION
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, RequestId, Tenant
from soundmark.core.features.codes.usage import service
from soundmark.core.features.codes.usage.wire import UsageView, usage_view

operations = Operations("Usage")


@operations.add(
    "GET",
    "/v1/usage",
    Operation("usage.read"),
    example=usage_view(
        ORGANIZATION.id,
        service.Usage(Quota(100, 12, ISSUED_AT), [service.ModeMeasurement("contract", 41_203, 1, 50_000)]),
    ),
)
async def get_usage(ctx: Ctx, request_id: RequestId, scope: Tenant) -> UsageView:
    """Return an organisation's usage in the current calendar month."""
    return usage_view(scope.organization_id, await service.read_usage(ctx, scope, request_id=request_id))

"""The route of release readiness."""

from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx
from soundmark.core.features.platform.release import example, service
from soundmark.core.features.platform.release.wire import ReleaseReadinessView, readiness_view
from soundmark.core.problems import ReleaseReadinessUnavailable

operations = Operations("Platform")


@operations.add(
    "GET",
    "/v1/platform/release-readiness",
    Operation("release.read", tenant="none", problems=(ReleaseReadinessUnavailable,)),
    example=example.READINESS,
)
async def get_release_readiness(ctx: Ctx) -> ReleaseReadinessView:
    """Return the release status of the receivers' SDK: its preview, the gates, and the stable release.

    Core's worker reads the evidence every five minutes. If the evidence is missing, malformed, contradictory or more
    than ten minutes old, the response is 503.
    """
    return readiness_view(await service.read_readiness(ctx))

"""The import of aggregates from before XR v1, for operators."""

from collections.abc import Mapping
from datetime import date

from soundmark.core.context import Context
from soundmark.core.store.tenancy import projects
from soundmark.kit.text.ids import may_be_id
from soundmark.wire.private.measurements import LegacyCount, PutLegacyDaysRequest


class ImportRefused(Exception):
    """The project does not exist; the message is for the operator."""


async def import_legacy_days(
    ctx: Context, organization_id: str, project_id: str, days: Mapping[date, int], *, request_id: str
) -> None:
    """Set the project's counts of all these days, or of none.

    Raises: ImportRefused; AudienceUnavailable, after which the counts may have changed or not; repeating is safe.
    Source: API v1, "Audience report content".
    """
    if not may_be_id(organization_id) or not may_be_id(project_id):
        raise ImportRefused("there is no such project")
    async with ctx.db.transaction(tenant=organization_id) as tx:
        if await projects.find_in_organization(tx, organization_id, project_id) is None:
            raise ImportRefused(f"there is no project {project_id} in {organization_id}")
    counts = [LegacyCount(day=day, events=events) for day, events in days.items()]
    body = PutLegacyDaysRequest(organization_id=organization_id, project_id=project_id, days=counts)
    await ctx.audience.put_legacy_days(body, request_id=request_id)

"""The import of aggregates from before XR v1, for operators."""

from collections.abc import Mapping
from datetime import date

from soundmark.core.context import Context
from soundmark.core.steps.cells import find_audience, propose_cell
from soundmark.core.store.audience import cells
from soundmark.core.store.tenancy import projects
from soundmark.kit.text.ids import may_be_id
from soundmark.wire.private.measurements import LegacyCount, PutLegacyDaysRequest


class ImportRefused(Exception):
    """The project does not exist, or is being deleted; the message is for the operator."""


async def import_legacy_days(
    ctx: Context, organization_id: str, project_id: str, days: Mapping[date, int], *, request_id: str
) -> None:
    """Set the project's counts of all these days, or of none. Without a cell, the organisation is given one first.

    Raises: ImportRefused; AudienceUnavailable, after which the counts may have changed or not; repeating is safe.
    Source: API v1, "Audience report content".
    """
    if not may_be_id(organization_id) or not may_be_id(project_id):
        raise ImportRefused("there is no such project")
    proposed_cell = await propose_cell(ctx, organization_id)
    async with ctx.db.transaction(tenant=organization_id) as tx:
        if proposed_cell is not None:
            await cells.update_assigned(tx, organization_id, proposed_cell)
        # A deletion of the project that begins later finds the cell.
        project = (await projects.hold_open_many(tx, organization_id, [project_id])).get(project_id)
        if project is None:
            raise ImportRefused(f"there is no project {project_id} in {organization_id}")
        audience = await find_audience(ctx, tx, organization_id)
        if not project.is_open or audience is None:
            raise ImportRefused(f"{project_id} is being deleted")
    counts = [LegacyCount(day=day, events=events) for day, events in days.items()]
    body = PutLegacyDaysRequest(organization_id=organization_id, project_id=project_id, days=counts)
    await audience.put_legacy_days(body, request_id=request_id)

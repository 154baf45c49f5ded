"""An operator's import of aggregates of the time before XR v1."""

from collections.abc import Mapping
from datetime import date

from soundmark.core.context import Context
from soundmark.core.store import projects
from soundmark.kit.ids import may_be_id


class ImportRefused(Exception):  # noqa: N818 - named for what was found
    """There is no such project; the message says so, for an operator."""


async def import_legacy_days(
    ctx: Context, organization_id: str, project_id: str, days: Mapping[date, int], *, request_id: str
) -> None:
    """Each of the days has this count in the project, whatever it had before; or none of them changed.

    Raises: ImportRefused; AudienceUnavailable, where it is not known whether they changed, and repeating is safe.
    Source: API v1, "Audience report content".
    """
    if not may_be_id(organization_id) or not may_be_id(project_id):
        raise ImportRefused("there is no such project")
    async with ctx.db.transaction(tenant=organization_id) as tx:
        if await projects.find_in_organization(tx, organization_id, project_id) is None:
            raise ImportRefused(f"there is no project {project_id} in {organization_id}")
    await ctx.audience.put_legacy_days(organization_id, project_id, days, request_id=request_id)

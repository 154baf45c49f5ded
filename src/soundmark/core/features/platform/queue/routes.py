"""The routes of jobs."""

import re
from typing import Annotated, Final

from fastapi import Depends, Path, Query

from soundmark.core.domain.platform.queued_job import JobState
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx, CursorText, Limit
from soundmark.core.features.platform.queue import example, service
from soundmark.core.features.platform.queue.wire import JobPage, JobView, job_view
from soundmark.core.problems import JobNotFound, JobWaiting
from soundmark.kit.text.paging import LIMIT_DEFAULT, InvalidCursor

operations = Operations("Platform")

_ID: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)  # All of these fit a bigint.


async def _read_id(
    job_id: Annotated[str, Path(max_length=160, description="The job's id.", examples=["4711"])],
) -> int:
    if _ID.fullmatch(job_id) is None:
        raise JobNotFound
    return int(job_id)


@operations.add(
    "GET",
    "/v1/platform/jobs",
    Operation("platform.read", tenant="none", problems=(InvalidCursor,)),
    example=JobPage(data=[job_view(example.FAILED)], next_cursor=None),
)
async def list_platform_jobs(
    ctx: Ctx,
    state: Annotated[
        JobState,
        Query(description="`failed`: it is not retried automatically. `retrying`: it has run, and will run again."),
    ] = "failed",
    limit: Limit = LIMIT_DEFAULT,
    cursor: CursorText = None,
) -> JobPage:
    """List the jobs of Core's worker that failed or are being retried, the most recently queued first.

    Audience's jobs are in its own database and not in this list.
    """
    cursors = ctx.cursors.bind("platform_jobs", state=state)
    page = await service.list_jobs(ctx, state=state, before=cursors.read(cursor), limit=limit)
    return cursors.show(JobPage, page, job_view)


@operations.add(
    "POST",
    "/v1/platform/jobs/{job_id}/retry",
    Operation("platform.change", tenant="none", problems=(JobNotFound, JobWaiting)),
    example=job_view(example.RETRIED),
)
async def retry_platform_job(ctx: Ctx, user: CallingUser, job_id: Annotated[int, Depends(_read_id)]) -> JobView:
    """Retry a failed job, within seconds. A job that is being retried already is returned unchanged."""
    return job_view(await service.retry_job(ctx, user, job_id))

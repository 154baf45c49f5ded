"""Jobs of Core's worker that failed, or that are tried again."""

from typing import Final, Literal, cast

from starlette.responses import Response

from soundmark.console.visit import Visit

PATH: Final = "/platform/jobs"


async def show_jobs(visit: Visit) -> Response:
    """Show a page of the jobs: those that failed, unless the URL says otherwise."""
    state = visit.query("state") or "failed"
    # Core refuses what is no state.
    jobs = await visit.core.platform.jobs_page(
        state=cast("Literal['failed', 'retrying']", state), cursor=visit.query("cursor")
    )
    return visit.page("platform/jobs.html", jobs=jobs, state_shown=state)


async def retry_job(visit: Visit) -> Response:
    """Let a failed job run again."""
    job = await visit.core.platform.retry_job(visit.parameter("job_id"))
    return visit.redirect(PATH, "platform.job.retried", task=job.task)

"""The response shapes of jobs."""

from typing import Annotated

from pydantic import Field

from soundmark.core.domain.platform.queued_job import JobState, QueuedJob
from soundmark.wire.shape import Timestamp, Wire


class JobView(Wire):
    """A job of Core's worker. Its arguments are not shown."""

    id: str
    task: Annotated[str, Field(description="The job's name, as in the documentation of jobs.")]
    state: Annotated[JobState, Field(description="`retrying`: it has run, and will run again.")]
    attempts: Annotated[int, Field(description="How often it has run.")]
    failed_at: Annotated[Timestamp | None, Field(description="Null unless it failed.")]
    next_attempt_at: Annotated[
        Timestamp | None, Field(description="Null while it runs, or if it only waits for a free worker.")
    ]


class JobPage(Wire):
    """Jobs, the most recently queued first."""

    data: list[JobView]
    next_cursor: str | None


def job_view(job: QueuedJob) -> JobView:
    """Return the view of a job."""
    return JobView(
        id=str(job.id),
        task=job.task,
        state=job.state,
        attempts=job.attempts,
        failed_at=job.failed_at,
        next_attempt_at=job.next_attempt_at,
    )

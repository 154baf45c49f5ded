"""The composition root of Audience's background jobs: settings → WorkContext → tasks."""

from typing import Final

from soundmark.audience.context import WorkContext
from soundmark.audience.features.retention import jobs as retention
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.jobs import jobs_app, open_database, run_worker
from soundmark.kit.postgres.sessions import SessionOptions
from soundmark.settings import AudienceDatabaseSettings

_NAME: Final = "soundmark-audience-jobs"
_POOL_SIZE: Final = 2  # The jobs run one transaction at a time, to leave the processor to ingestion.


async def run(settings: AudienceDatabaseSettings) -> None:
    """Run Audience's jobs until SIGTERM or SIGINT.

    Raises: WorkerFailed.
    """
    ctx = work_context(settings)
    app = jobs_app(settings.audience_database_url, application_name=_NAME, session=ctx.db.session)
    retention.add_tasks(app, ctx)
    await open_database(ctx.db, "soundmark.audience", schema=settings.own_schema)
    try:
        await run_worker(app, ctx.db.session)
    finally:
        await ctx.db.close()


def work_context(settings: AudienceDatabaseSettings, *, clock: Clock | None = None) -> WorkContext:
    """Return the context of the jobs; its database is not open yet."""
    db = Database(
        settings.audience_database_url,
        pool_size=_POOL_SIZE,
        application_name=_NAME,
        session=SessionOptions(settings.synchronous_commit, settings.database_options),
    )
    return WorkContext(db=db, clock=clock or SystemClock())

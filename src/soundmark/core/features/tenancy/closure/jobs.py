"""The job that finishes closures that were interrupted after Audience was purged."""

from datetime import timedelta
from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.closure import Closure
from soundmark.core.domain.tenancy.scope import SYSTEM
from soundmark.core.features.tenancy.closure.deletion import delete_everything
from soundmark.core.features.tenancy.closure.service import begin_deleting
from soundmark.core.store.tenancy import closures
from soundmark.kit.http.responses.problems import DatabaseUnavailable, Problem
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.jobs import add_periodic

ABANDONED_AFTER: Final = timedelta(minutes=1)  # Longer than any step: until then, the request itself works on it.
_AT_ONCE: Final = 10

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` resume closures."""
    add_periodic(app, ctx, "resume_closures", "* * * * *", resume_closures)


async def resume_closures(ctx: Context) -> int:
    """Complete the closures that nobody has worked on for a minute since Audience was purged; return their number.

    A closure whose gates are shut, or that fails, waits for the next time.

    Raises: DatabaseUnavailable.
    Source: contract, section 8.
    """
    completed_count, after_id = 0, ""
    while True:
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            abandoned = await closures.list_abandoned(
                tx, before=ctx.clock.now() - ABANDONED_AFTER, after_id=after_id, limit=_AT_ONCE
            )
        for closure in abandoned:
            completed_count += await _resume(ctx, closure)
        if len(abandoned) < _AT_ONCE:
            return completed_count
        after_id = abandoned[-1].subject.id


async def _resume(ctx: Context, closure: Closure) -> bool:
    subject = closure.subject
    try:
        async with ctx.db.transaction(tenant=subject.organization_id) as tx:
            await begin_deleting(ctx, tx, subject)
        await delete_everything(ctx, subject, SYSTEM)
    except DatabaseUnavailable:
        raise
    except Problem as problem:
        _log.info("closure_waits", subject_id=subject.id, code=problem.code)
        return False
    except Exception as error:  # noqa: BLE001 - a failure of one closure must not delay the others
        _log.error("closure_not_resumed", subject_id=subject.id, error=type(error).__name__)
        return False
    _log.info("closure_completed", subject_type=subject.type, certificate_id=closure.certificate_id)
    return True

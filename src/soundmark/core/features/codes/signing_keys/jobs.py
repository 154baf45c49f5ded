"""The job that completes interrupted rotations of the signing key."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.codes.signing_keys.rotation import push_missing
from soundmark.core.features.codes.signing_keys.service import KeyRefused

KEEP_TOLD: Final = "keep_audience_told_of_keys"


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` complete rotations every minute: integrations accept the old key for seven minutes."""

    @app.periodic(cron="* * * * *")
    @app.task(name=KEEP_TOLD, queueing_lock=KEEP_TOLD)
    async def keep(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await push_missing_keys(ctx)


async def push_missing_keys(ctx: Context) -> bool:
    """Run `push_missing`; return False if Audience is unavailable, in which case the next run tries again.

    Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken.
    """
    try:
        await push_missing(ctx)
    except KeyRefused:
        return False
    return True

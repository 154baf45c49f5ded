"""Finishing rotations of the signing key that were interrupted."""

from typing import Final

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.codes.signing_keys.rotation import keep_told
from soundmark.core.features.codes.signing_keys.service import KeyRefused

KEEP_TOLD: Final = "keep_audience_told_of_keys"


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` finish rotations, every minute: integrations bear with the old key for seven."""

    @app.periodic(cron="* * * * *")
    @app.task(name=KEEP_TOLD, queueing_lock=KEEP_TOLD)
    async def keep(timestamp: int) -> None:  # noqa: ARG001 - procrastinate passes it
        await keep_told_of_keys(ctx)


async def keep_told_of_keys(ctx: Context) -> bool:
    """`keep_told` for a worker; False where Audience is unavailable, which the next minute makes up for.

    Raises: DatabaseUnavailable; kit.sealing.SealBroken.
    """
    try:
        await keep_told(ctx)
    except KeyRefused:
        return False
    return True

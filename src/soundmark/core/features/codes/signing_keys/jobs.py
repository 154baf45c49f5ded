"""The job that completes interrupted rotations of the signing key."""

from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.features.codes.signing_keys.rotation import push_missing
from soundmark.core.features.codes.signing_keys.service import KeyRefused
from soundmark.kit.postgres.jobs import add_periodic


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` complete rotations every minute: integrations accept the old key for seven minutes."""
    add_periodic(app, ctx, "keep_audience_told_of_keys", "* * * * *", push_missing_keys)


async def push_missing_keys(ctx: Context) -> bool:
    """Run `push_missing`; return False if Audience is unavailable, in which case the next run tries again.

    Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken.
    """
    try:
        await push_missing(ctx)
    except KeyRefused:
        return False
    return True

"""Forks one process after the other that commits acts and delivers them, each as soon as the one before was killed.

It takes the organisation as its argument and Core's settings from its environment. Each process prints its id when it
has begun, and a line after each commit. Starting `soundmark` itself takes a second, and this a twentieth.
"""

import asyncio
import gc
import os
import signal
import sys
import traceback
from datetime import timedelta
from typing import Final

from soundmark import settings
from soundmark.core.context import Context
from soundmark.core.domain.tenancy.scope import SYSTEM
from soundmark.core.features.webhooks.delivery import dispatcher
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.core.steps import audit
from soundmark.core.worker import make_job_context
from soundmark.operating_system.parent_death_signal import make_parent_death_signal

ACTS_OF_EACH: Final = 3


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def work(organization_id: str) -> None:
    """Commit a few acts and deliver whatever is due, until killed."""
    ctx = make_job_context(settings.read(settings.CoreJobsSettings, os.environ))
    await ctx.db.open()
    say(str(os.getpid()))
    async with dispatcher.dispatching(ctx, fan_out):
        for _ in range(ACTS_OF_EACH):
            await commit_act(ctx, organization_id)
            say("committed")
        await asyncio.Event().wait()


async def commit_act(ctx: Context, organization_id: str) -> None:
    """Commit an audit entry, whose statement writes the act, as a command of Core does."""
    async with ctx.db.transaction(tenant=organization_id) as tx:
        await audit.record_as(
            tx,
            SYSTEM,
            ctx.entropy,
            "organization.updated",
            organization_id=organization_id,
            now=ctx.clock.now(),
            number=ctx.entropy.take(16).hex(),
        )


def main(organization_id: str) -> None:
    """Fork until killed."""
    # What a killed process had claimed is soon attempted again.
    dispatcher.LEASE = timedelta(seconds=2)  # type: ignore[misc]  # a constant of the product
    dispatcher.TIMEOUT_S = 1.0  # type: ignore[misc]  # another one
    gc.freeze()
    request_signal = make_parent_death_signal(signal.SIGKILL)
    while True:
        pid = os.fork()
        if pid == 0:
            if request_signal is not None:
                request_signal()
            try:
                asyncio.run(work(organization_id))
            except BaseException:  # noqa: BLE001 - it ends, and the test sees what is missing
                traceback.print_exc()
            os._exit(1)
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            return


if __name__ == "__main__":
    main(sys.argv[1])

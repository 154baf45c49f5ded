"""A loop in the worker that asks the local provider about payments soon after they are due.

A notification that came within ten seconds of a question was answered without another one, and the provider does not
send it again. So a job that runs once a minute would come too late.
"""

import asyncio
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.features.billing.webhooks.rereads import reread_local
from soundmark.core.problems import PaymentProviderUnavailable
from soundmark.kit.http.responses.problems import DatabaseUnavailable

_IDLE_S: Final = 3.0  # With the ten seconds, well within the 15 s of the contract, section 7.
_UNCONFIGURED_S: Final = 10.0  # The first payment is due ten seconds after the first question, at the earliest.
_TROUBLE_S: Final = 60.0  # The provider bans callers that insist.
_log: Final = structlog.get_logger()


async def keep_asking(ctx: Context) -> None:
    """Ask the local provider about what is due, until cancelled, once its keys have been configured."""
    is_configured = False
    while True:
        pause_s = _IDLE_S
        try:
            is_configured = is_configured or await ctx.local.is_configured()
            if is_configured:
                await reread_local(ctx)
            else:
                pause_s = _UNCONFIGURED_S
        except PaymentProviderUnavailable:
            pause_s = _TROUBLE_S
        except DatabaseUnavailable:
            pass  # Readiness and every request report it.
        except Exception as error:  # noqa: BLE001 - if the loop ended, lost notifications would not heal
            _log.error("local_payments_not_reread", error=type(error).__name__, exc_info=error)
            pause_s = _TROUBLE_S
        await asyncio.sleep(pause_s)

"""Jobs that deliver invitations by mail, and delete the mail counts of past days."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.invitation import ATTEMPTS_MAX, LEASE, SENDING_MAX, Delivery, pause_after
from soundmark.core.features.tenancy.invitations.invitation_email import write_invitation_email
from soundmark.core.features.tenancy.invitations.service import DELIVER, unseal_secret
from soundmark.core.providers.smtp import MailNotSent, MailRefused, send
from soundmark.core.providers.smtp_settings import find_smtp_server
from soundmark.core.store.tenancy import invitations, mail_counts
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.job_queue import Later
from soundmark.kit.postgres.jobs import add_deferred, add_periodic

_HELD_FOR: Final = timedelta(minutes=15)  # After which a restored organisation's mail is sent at the latest.
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Attempt:
    delivery: Delivery
    number: int
    sealed_secret: bytes = field(repr=False)


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` deliver invitations and delete old mail counts."""
    add_deferred(app, ctx, DELIVER, deliver)
    add_periodic(app, ctx, "forget_mail_counts", "17 * * * *", forget_mail_counts)


async def forget_mail_counts(ctx: Context) -> int:
    """Delete the counts of all days before yesterday; return how many there were. Safe at any time and repeatedly.

    Yesterday's counts are kept for processes whose clocks are behind ours.

    Raises: DatabaseUnavailable.
    """
    async with ctx.db.transaction() as tx:
        return await mail_counts.delete_before(tx, day=ctx.clock.now().date() - timedelta(days=1))


async def deliver(ctx: Context, *, organization_id: str, invitation_id: str) -> None:
    """Send the mail of an invitation or give up on it, and destroy its sealed secret.

    1. Begin an attempt: mark it in the row, with the time until which nobody else may begin one.
    2. Hand over the mail before that time, outside any transaction.
    3. Store the result in the row, unless the invitation has ended in the meantime.

    Safe to run late, repeatedly, in any order and concurrently, because the row decides what is done. If a worker is
    killed after phase 2, the same bytes are sent once more, with the same Message-ID.

    Raises: Later, with the time at which to run again; DatabaseUnavailable.
    Source: API v1, "States and transitions", Invitation delivery.
    """
    attempt = await _begin(ctx, organization_id, invitation_id)
    if attempt is None:
        return
    status, reason = "sent", None
    try:
        await _send(ctx, attempt)
    except MailRefused as refused:
        status, reason = "dead", refused.reason
    except MailNotSent as failed:
        status, reason = "pending", failed.reason
    except Exception as error:  # noqa: BLE001 - such as a secret that cannot be unsealed
        status, reason = "pending", type(error).__name__
    if status == "pending" and attempt.number >= ATTEMPTS_MAX:
        status = "dead"
    _log.info("invitation_delivery", invitation_id=invitation_id, attempt=attempt.number, status=status, reason=reason)
    again_at = await _note(ctx, attempt, status)
    if again_at is not None:
        raise Later(again_at)


async def _begin(ctx: Context, organization_id: str, invitation_id: str) -> _Attempt | None:
    """Carry out phase 1; return None if there is nothing to send.

    Raises: Later.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        delivery = await invitations.lock_delivery(tx, organization_id=organization_id, invitation_id=invitation_id)
        if delivery is None:
            return None
        now = ctx.clock.now()
        match delivery.next_step(now):
            case "nothing":
                return None
            case "cancel":
                await invitations.update_delivered(tx, delivery, attempt=delivery.attempts, status="cancelled")
                return None
            case "give_up":
                await invitations.update_delivered(tx, delivery, attempt=delivery.attempts, status="dead")
                return None
            case "wait":
                assert delivery.due_at is not None, "a delivery that waits has a due time"
                raise Later(delivery.due_at)
            case "hold":
                raise Later(now + _HELD_FOR)
            case "send":
                assert delivery.sealed_secret is not None, "an open delivery has its secret"
                await invitations.update_sending(tx, delivery, due_at=now + LEASE)
                return _Attempt(delivery, delivery.attempts + 1, delivery.sealed_secret)


async def _send(ctx: Context, attempt: _Attempt) -> None:
    """Carry out phase 2.

    Raises: MailRefused; MailNotSent; DatabaseUnavailable; kit.crypto.sealing.SealBroken.
    """
    server = await find_smtp_server(ctx.platform_settings)
    if server is None:
        raise MailNotSent("smtp_not_configured")
    token: Secret = unseal_secret(ctx.sealer, attempt.sealed_secret, attempt.delivery.invitation_id)
    mail = write_invitation_email(
        attempt.delivery, token, base_url=ctx.base_url, console_url=ctx.console_url, server=server
    )
    await send(server, mail, greeting=ctx.smtp_greeting, deadline=SENDING_MAX, extra_ca_file=ctx.extra_ca_file)


async def _note(ctx: Context, attempt: _Attempt, status: str) -> datetime | None:
    """Carry out phase 3; return when to try again, None if the delivery is over."""
    delivery = attempt.delivery
    async with ctx.db.transaction(tenant=delivery.organization_id) as tx:
        if status != "pending":
            await invitations.update_delivered(tx, delivery, attempt=attempt.number, status=status)
            return None
        again_at = ctx.clock.now() + pause_after(attempt.number)
        is_current = await invitations.update_waiting(tx, delivery, attempt=attempt.number, due_at=again_at)
        return again_at if is_current else None

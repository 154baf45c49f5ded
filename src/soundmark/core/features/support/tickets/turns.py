"""Bringing a message to the support desk once, whatever is lost (docs/adr/0025, docs/adr/0054).

1. Insert a row with the sealed message, in one transaction: `service.create_ticket`, `replies.reply_to_ticket`.
2. Search the desk for the reference of the row, and post the message if it is not there, with nothing locked. Only one
   attempt at a time may post, and none while the desk may still be working on an earlier post. Anybody may search.
3. Store where the desk has it, and destroy the message, in one transaction.

A process may die anywhere. Then the row waits until the same request or a job resumes at phase 2.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Generic, Protocol, TypeVar

import msgspec
import structlog

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import ATTEMPT_MAX, LEASE, SETTLING, CustomerMessage
from soundmark.core.problems import OrganizationNotFound, SupportUnavailable
from soundmark.core.providers.freescout.client import DeskCallFailed
from soundmark.core.providers.freescout.server import DeskServer, find_desk_server
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.postgres.transaction import Tx
from soundmark.settings.registry import SupportSettings

_PAUSE_S: Final = 0.1
_PAUSE_MAX_S: Final = 1.0
_log: Final = structlog.get_logger()


class PostedRow(Protocol):
    """A row whose message is posted at the desk: a ticket, or a reply."""

    @property
    def id(self) -> str:
        """Its id, to which the message is sealed."""

    @property
    def sealed_message(self) -> bytes | None:
        """The message, until the desk has it."""

    @property
    def attempts(self) -> int:
        """The number of attempts that may have posted."""

    def is_at_desk(self) -> bool:
        """Return whether the desk has it, and where is known."""

    def may_post_at(self, now: datetime) -> bool:
        """Return whether an attempt may post at `now`."""


R = TypeVar("R", bound=PostedRow)  # The row.
P = TypeVar("P")  # Its place at the desk.


class Errand(Protocol[R, P]):
    """One row that is brought to the desk, and how. Its statements run in a transaction of its organisation."""

    @property
    def organization_id(self) -> str:
        """The organisation of the row."""

    @property
    def table(self) -> str:
        """The table of the row, to which the message is sealed."""

    @property
    def is_searched_first(self) -> bool:
        """Whether even the first attempt searches before it posts."""

    async def lock(self, tx: Tx) -> R | None:
        """Return the row, locked; None if it was deleted."""

    async def update_attempt(self, tx: Tx, row: R, *, post_after: datetime) -> R:
        """Count an attempt in the locked row."""

    async def update_post_after(self, tx: Tx, row: R, *, post_after: datetime) -> None:
        """Store from when the next attempt may post, unless one has begun since that of `row`."""

    async def search(self, server: DeskServer, row: R, *, timeout_s: float) -> P | None:
        """Return where an earlier attempt has brought it. Raises: DeskCallFailed."""

    async def post(self, server: DeskServer, row: R, message: CustomerMessage, *, timeout_s: float) -> P:
        """Post the message. Raises: DeskCallFailed."""

    async def store(self, tx: Tx, row: R, place: P) -> R:
        """Store where the desk has the locked row and destroy its message, unless another attempt has."""


@dataclass(frozen=True, slots=True)
class Brought(Generic[R]):
    """A row that the desk has. `message` is what this attempt brought there; None if it was there before."""

    row: R
    message: CustomerMessage | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Turn(Generic[R]):
    """What an attempt may do. One that may post began at `began_at`."""

    row: R
    may_post: bool
    began_at: datetime


async def bring(ctx: Context, errand: Errand[R, P], *, deadline_s: float) -> Brought[R]:
    """Carry out phases 2 and 3 until `deadline_s` of the monotonic clock, which is at most `ATTEMPT_MAX` from now.

    Safe to repeat and concurrently: attempts take turns to post.

    Raises: SupportUnavailable, which leaves the row as it is; OrganizationNotFound if it was deleted.
    """
    server = await find_desk(ctx)
    pause_s = _PAUSE_S
    while True:
        turn = await _take_turn(ctx, errand)
        if turn.row.is_at_desk():
            return Brought(turn.row, None)
        message = _unseal_message(ctx.sealer, errand, turn.row)
        try:
            place = await _search_or_post(ctx, errand, server, turn, message, deadline_s)
        except DeskCallFailed as failed:
            await _end_turn(ctx, errand, turn, failed.settles_in)
            raise report_failure(failed) from None
        if place is not None:
            return Brought(await _store(ctx, errand, place), message)
        if ctx.clock.monotonic_s() + pause_s >= deadline_s:
            raise report_failure(DeskCallFailed("settling"))
        # Another attempt is at it, or the desk is: what either did is found soon.
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _PAUSE_MAX_S)


def make_deadline_s(ctx: Context) -> float:
    """Return the end of an attempt that begins now, on the monotonic clock."""
    return ctx.clock.monotonic_s() + ATTEMPT_MAX.total_seconds()


async def find_desk(ctx: Context) -> DeskServer:
    """Return the support desk from the platform settings.

    Raises: SupportUnavailable if it is not configured.
    """
    server = find_desk_server(await ctx.platform_settings.read(SupportSettings))
    if server is None:
        raise report_failure(DeskCallFailed("not_configured"))
    return server


def report_failure(failed: DeskCallFailed) -> SupportUnavailable:
    """Log why the desk failed, in our own words, and return the problem to raise."""
    _log.warning("desk_call_failed", reason=failed.reason, status=failed.status)
    return SupportUnavailable()


def seal_message(sealer: Sealer, table: str, row_id: str, message: CustomerMessage) -> bytes:
    """Return the envelope of a message, which opens only in its row of the table."""
    return sealer.seal(msgspec.json.encode(message), table=table, column="sealed_message", row=row_id)


def _unseal_message(sealer: Sealer, errand: Errand[R, P], row: R) -> CustomerMessage:
    """Raises: kit.crypto.sealing.SealBroken."""
    assert row.sealed_message is not None, "a message is kept until the desk has it"
    opened = sealer.unseal(row.sealed_message, table=errand.table, column="sealed_message", row=row.id)
    return msgspec.json.decode(opened, type=CustomerMessage)


async def _take_turn(ctx: Context, errand: Errand[R, P]) -> _Turn[R]:
    """Begin an attempt if none may be posting. The row says so until the desk has certainly ended its work."""
    async with ctx.db.transaction(tenant=errand.organization_id) as tx:
        row = await errand.lock(tx)
        if row is None:
            raise OrganizationNotFound
        now = ctx.clock.now()
        if row.is_at_desk() or not row.may_post_at(now):
            return _Turn(row, may_post=False, began_at=now)
        begun = await errand.update_attempt(tx, row, post_after=now + LEASE)
        return _Turn(begun, may_post=True, began_at=now)


async def _search_or_post(
    ctx: Context, errand: Errand[R, P], server: DeskServer, turn: _Turn[R], message: CustomerMessage, deadline_s: float
) -> P | None:
    """Carry out phase 2; return None if the desk does not have the row, and this attempt may not post it.

    Raises: DeskCallFailed.
    """
    row = turn.row
    if not turn.may_post or row.attempts > 1 or errand.is_searched_first:
        timeout_s = deadline_s - ctx.clock.monotonic_s()
        try:
            found = await errand.search(server, row, timeout_s=timeout_s)
        except DeskCallFailed as failed:
            # It says nothing about a post.
            raise DeskCallFailed(failed.reason, failed.status) from None
        if found is not None or not turn.may_post:
            return found
    # Such as after the machine was suspended: by now somebody else may be posting.
    if ctx.clock.now() - turn.began_at > ATTEMPT_MAX:
        raise DeskCallFailed("overtaken", settles_in=SETTLING)
    return await errand.post(server, row, message, timeout_s=deadline_s - ctx.clock.monotonic_s())


async def _end_turn(ctx: Context, errand: Errand[R, P], turn: _Turn[R], settles_in: timedelta) -> None:
    """Let the next attempt post once the desk has ended what this one may have begun."""
    if not turn.may_post:
        return
    async with ctx.db.transaction(tenant=errand.organization_id) as tx:
        await errand.update_post_after(tx, turn.row, post_after=ctx.clock.now() + settles_in)


async def _store(ctx: Context, errand: Errand[R, P], place: P) -> R:
    """Carry out phase 3."""
    async with ctx.db.transaction(tenant=errand.organization_id) as tx:
        row = await errand.lock(tx)
        if row is None:
            raise OrganizationNotFound
        return await errand.store(tx, row, place)

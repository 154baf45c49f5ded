"""Making the log: its origin, its first key, and what was there before it."""

import json
from collections.abc import Iterator
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.domain.log.entry import KeyEvent, document_entry, key_entry
from soundmark.core.features.log.integration.keys import insert_new_key
from soundmark.core.features.log.integration.sequencing import integrate_some
from soundmark.core.store.codes import signing_keys
from soundmark.core.store.log import checkpoints, queue, state
from soundmark.core.store.platform import deletion_certificates
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.postgres.transaction import Tx

_CERTIFICATES_AT_ONCE: Final = 500
_log: Final = structlog.get_logger()


async def open_log(ctx: Context) -> None:
    """Make the log at Core's first start, and publish its first checkpoint. Safe in many processes.

    Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken if its keys were sealed under another master key.
    """
    async with ctx.db.transaction() as tx:
        if await checkpoints.find_published(tx) is not None:
            return
        await _make(ctx, tx, ctx.transparency.origin)
    await integrate_some(ctx)


async def renew_log(ctx: Context, origin: str) -> None:
    """Put a new log, with a new key and another origin, in the place of the one that is there. It begins anew.

    The entries of the earlier log are gone; anybody who has read them keeps them.

    Raises: DatabaseUnavailable.
    """
    async with ctx.db.transaction() as tx:
        await state.delete(tx)
        await _make(ctx, tx, origin)
    await integrate_some(ctx)


async def _make(ctx: Context, tx: Tx, origin: str) -> None:
    """Make the log, unless another process has, and queue what happened before it: all but the active Codes.

    Those are entered as the log grows (`sequencing`): there may be millions.
    """
    if not await state.insert(tx, origin, now=ctx.clock.now()):
        return
    key = await insert_new_key(ctx, tx, origin)
    for record in await signing_keys.list_all(tx):
        await queue.insert(tx, [key_entry(event, record.key_id, record.public_key) for event in _events(record)])
    after = ""
    while page := await deletion_certificates.list_page(tx, after=after, limit=_CERTIFICATES_AT_ONCE):
        await queue.insert(tx, [document_entry(canonicalize(json.loads(document))) for _, document in page])
        after = page[-1][0]
    _log.info("log_made", origin=origin, vkey=str(key.verifier(origin)))


def _events(record: SigningKeyRecord) -> Iterator[KeyEvent]:
    yield "key.published"
    if record.activated_at is not None:
        yield "key.activated"
    if record.superseded_at is not None:
        yield "key.superseded"
    if record.retired_at is not None:
        yield "key.retired"

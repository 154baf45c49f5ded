"""The command that makes an offline pack."""

import asyncio
import math
from datetime import datetime, timedelta
from typing import Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.offline_pack import PackRecord
from soundmark.core.domain.codes.signed_facts import SignedFacts
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.codes.offline_packs.pack import read_genuine, write_pack
from soundmark.core.live.keyring import read_signing_key
from soundmark.core.problems import CampaignNotFound, OfflinePackTooLarge
from soundmark.core.steps import audit
from soundmark.core.steps.log import log_document
from soundmark.core.steps.signed_codes import read_signed_codes
from soundmark.core.steps.tenancy import hold_active_project
from soundmark.core.store.codes import campaigns, offline_packs
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.offline_pack import CODES_MAX, PACK_BYTES_MAX

PACK_PREFIX: Final = "opk_"
PACKS_MAX: Final = 60  # Of an organisation in each window: contract, details, point A22.
WINDOW: Final = timedelta(hours=1)
_CODES_AT_ONCE: Final = 500  # Read and verified together: up to 8 MiB, and some 50 ms in a thread.
_RETRY_AFTER_S: Final = 5


async def make_pack(
    ctx: RequestContext, scope: TenantScope, project_id: str, campaign_id: str | None, *, valid_for_s: int
) -> bytes:
    """Sign the active Codes of a campaign, or of the whole project, that are not measured; return the JSON text.

    The lock that lets an organisation make one at a time is held until the commit, so the revocation of a Code can wait
    for the packs that may still name it: `steps.offline_packs`.

    Raises: CampaignNotFound, also for a campaign of another project; OfflinePackTooLarge; RateLimited while another
        pack of the organisation is made, and after `PACKS_MAX` within `WINDOW`; what `hold_active_project` raises.
    Source: contract, section 12.
    """
    if not await ctx.packs.take(scope.organization_id):
        raise _already_making()
    try:
        async with ctx.packs.running, ctx.db.transaction(tenant=scope.organization_id) as tx:
            return await _make(ctx, tx, scope, project_id, campaign_id, timedelta(seconds=valid_for_s))
    finally:
        ctx.packs.release(scope.organization_id)


async def _make(
    ctx: RequestContext, tx: Tx, scope: TenantScope, project_id: str, campaign_id: str | None, valid_for: timedelta
) -> bytes:
    await hold_active_project(tx, scope, project_id)
    if campaign_id is not None:
        campaign = await campaigns.find(tx, scope, campaign_id)
        if campaign is None or campaign.project_id != project_id:
            raise CampaignNotFound
    if not await offline_packs.lock(tx, scope):
        raise _already_making()
    now = ctx.clock.now()  # Before the Codes are read: whatever is revoked later might be in the pack.
    await _require_below_limit(tx, scope, now)
    record = PackRecord(mint(ctx.entropy, PACK_PREFIX), project_id, campaign_id, now, now + valid_for)
    codes = await _read_codes(ctx, tx, scope, record)
    key = await read_signing_key(tx, ctx.sealer)
    document, canonical = await asyncio.to_thread(write_pack, key, record, codes)
    await offline_packs.insert(tx, scope, record)
    await log_document(tx, canonical)
    await audit.record(
        tx,
        scope,
        ctx.entropy,
        "offline_pack.created",
        now=now,
        project_id=project_id,
        pack_id=record.id,
        campaign_id=campaign_id,
        codes=len(codes),
        valid_until=format_timestamp(record.valid_until),
    )
    return document


async def _read_codes(ctx: RequestContext, tx: Tx, scope: TenantScope, record: PackRecord) -> list[SignedFacts]:
    """Return the facts of the pack's Codes, verified.

    Raises: OfflinePackTooLarge, before more than the largest pack is in memory.
    """
    listed = await offline_packs.list_codes(tx, scope, record, limit=CODES_MAX + 1)
    if len(listed) > CODES_MAX:
        raise OfflinePackTooLarge
    keyring = ctx.live_keyring.keyring
    for key_id in {code.key_id for code in listed}:
        keyring = await ctx.live_keyring.keyring_with(key_id)
    codes: list[SignedFacts] = []
    size_bytes = 0
    for first in range(0, len(listed), _CODES_AT_ONCE):
        signed = await read_signed_codes(tx, listed[first : first + _CODES_AT_ONCE])
        genuine = await asyncio.to_thread(read_genuine, signed, keyring.keys)
        size_bytes += sum(len(bytes(facts.intent)) for facts in genuine)
        if size_bytes > PACK_BYTES_MAX:
            raise OfflinePackTooLarge
        codes += genuine
    return codes


async def _require_below_limit(tx: Tx, scope: TenantScope, now: datetime) -> None:
    """Refuse one pack too many, under the lock that lets one be made at a time.

    Raises: RateLimited until the oldest of those that fill the window leaves it.
    """
    filling_at = await offline_packs.find_issued_at(tx, scope, rank=PACKS_MAX, now=now)
    if filling_at is None:
        return
    wait_s = (filling_at + WINDOW - now).total_seconds()
    if wait_s > 0:
        raise RateLimited(
            "This organisation has made too many offline packs in the last hour.",
            headers={"retry-after": str(math.ceil(wait_s))},
        )


def _already_making() -> RateLimited:
    return RateLimited(
        "Another offline pack of this organisation is being made. Try again when it is ready.",
        headers={"retry-after": str(_RETRY_AFTER_S)},
    )

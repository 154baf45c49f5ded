"""The command that issues a decode certificate."""

import asyncio
import math
from datetime import datetime, timedelta
from typing import Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.codes.decode_certificates.certificate import canonicalize_measurement, write_certificate
from soundmark.core.live.keyring import read_signing_key
from soundmark.core.problems import CodeNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.log import log_document
from soundmark.core.steps.tenancy import hold_active_project
from soundmark.core.store.codes import codes, decode_certificates
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.wire.decode_certificate import Measurement

CERTIFICATE_PREFIX: Final = "dcc_"
ISSUED_MAX: Final = 600  # Of an organisation in each window: contract, details, point A22.
WINDOW: Final = timedelta(hours=1)


async def issue_certificate(ctx: RequestContext, scope: TenantScope, xr_id: str, measurement: Measurement) -> bytes:
    """Sign what the caller measured of a Code, which may be in any state; return the certificate's JSON text.

    Raises: CodeNotFound, also for a Code of another tenant or project; RateLimited after `ISSUED_MAX` certificates
        within `WINDOW`; what `hold_active_project` raises.
    Source: contract, section 12.
    """
    # In a thread and before the transaction: ten thousand repetitions take some 0.2 s.
    measured = await asyncio.to_thread(canonicalize_measurement, measurement)
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        code = await codes.find(tx, scope, xr_id)
        if code is None:
            raise CodeNotFound
        await hold_active_project(tx, scope, code.project_id)
        await decode_certificates.lock_number(tx, scope)
        now = ctx.clock.now()
        await _require_below_limit(tx, scope, now)
        certificate_id = mint(ctx.entropy, CERTIFICATE_PREFIX)
        document, canonical = write_certificate(
            await read_signing_key(tx, ctx.sealer),
            certificate_id,
            organization_id=scope.organization_id,
            xr_id=xr_id,
            issued_at=now,
            measured=measured,
        )
        await decode_certificates.insert(tx, scope, certificate_id, code, document, now=now)
        await log_document(tx, canonical)
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            "decode_certificate.issued",
            now=now,
            project_id=code.project_id,
            certificate_id=certificate_id,
            xr_id=xr_id,
        )
    return document


async def find_certificate(ctx: RequestContext, certificate_id: str) -> bytes | None:
    """Return the JSON text of a certificate of any organisation."""
    async with ctx.db.transaction() as tx:
        organization_id = await decode_certificates.find_organization_id(tx, certificate_id)
    if organization_id is None:
        return None
    async with ctx.db.transaction(tenant=organization_id) as tx:
        return await decode_certificates.find(tx, organization_id, certificate_id)


async def _require_below_limit(tx: Tx, scope: TenantScope, now: datetime) -> None:
    """Refuse one certificate too many, under the lock that lets one be issued at a time.

    Raises: RateLimited until the oldest of those that fill the window leaves it.
    """
    filling_at = await decode_certificates.find_issued_at(tx, scope, rank=ISSUED_MAX, now=now)
    if filling_at is None:
        return
    wait_s = (filling_at + WINDOW - now).total_seconds()
    if wait_s > 0:
        raise RateLimited(
            "This organisation has issued too many decode certificates in the last hour.",
            headers={"retry-after": str(math.ceil(wait_s))},
        )

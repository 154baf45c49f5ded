"""The one key space of an organisation's idempotency keys, which issuances and checkouts share."""

from collections.abc import Mapping
from datetime import datetime

from soundmark.core.context import Context
from soundmark.core.domain.codes.receipt import KeyedRequest, Receipt
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import IdempotencyConflict
from soundmark.core.steps.tenancy import require_project
from soundmark.core.store.codes import issuance_receipts
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed


async def find_answer(
    ctx: Context, scope: TenantScope, project_id: str | None, keyed: KeyedRequest | None
) -> bytes | None:
    """Return the response that the same request with this key got before; None for a new one.

    `project_id` is None if the request names no project, and `keyed` if it has no key.

    Raises: ProjectNotFound; ValidationFailed for a malformed key; IdempotencyConflict.
    """
    async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
        if project_id is not None:
            await require_project(tx, scope, project_id)
        if keyed is None:
            return None
        receipts = await issuance_receipts.find(tx, scope.organization_id, [keyed.key_digest])
        return find_result(receipts, keyed, ctx.clock.now())


def find_result(receipts: Mapping[bytes, Receipt], keyed: KeyedRequest | None, now: datetime) -> bytes | None:
    """Return the response that the same request with the same key got within 24 hours; None for a new request.

    `receipts` holds the stored receipts by the digest of their keys.

    Raises: ValidationFailed for a malformed key; IdempotencyConflict.
    Source: API v1, "Idempotency rules".
    """
    if keyed is None:
        return None
    if not keyed.is_key_well_formed:
        message = "must be 16 to 128 characters of A-Za-z0-9._~-"
        raise ValidationFailed(errors=(FieldError("header", "/Idempotency-Key", message),))
    receipt = receipts.get(keyed.key_digest)
    if receipt is None or not receipt.is_kept(now):
        return None
    if not receipt.belongs_to(keyed):
        raise IdempotencyConflict
    return receipt.answer

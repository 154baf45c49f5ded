"""The one key space of an organisation's idempotency keys, which issuances and checkouts share."""

from collections.abc import Mapping
from datetime import datetime

from soundmark.core.domain.codes.receipt import KeyedRequest, Receipt
from soundmark.core.problems import IdempotencyConflict
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed


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

"""The table `billing_references`, looked up by the payments that a notification of the local provider names."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from soundmark.kit.postgres.arrays import bytes_array
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class LocalPaymentOwner:
    """The checkout of a payment: the first of those that were looked for, at `place`, counted from 1."""

    place: int
    organization_id: str
    checkout_id: str


async def find_owner(tx: Tx, payment_ids: Sequence[str]) -> LocalPaymentOwner | None:
    """Return the checkout of the first of these payments that is ours."""
    return await tx.one_or_none(
        LocalPaymentOwner,
        """
        SELECT named.place::integer AS place, r.organization_id, r.subject_id AS checkout_id
          FROM unnest(%(digests)s::bytea[]) WITH ORDINALITY AS named (digest, place)
          JOIN billing_references r ON r.kind = 'local_payment' AND r.digest = named.digest
         ORDER BY named.place
         LIMIT 1
        """,
        {"digests": bytes_array([hashlib.sha256(each.encode()).digest() for each in payment_ids])},
    )

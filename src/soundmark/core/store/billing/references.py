"""The table `billing_references`."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.arrays import bytes_array
from soundmark.kit.postgres.transaction import Tx

ReferenceKind: TypeAlias = Literal[
    "card_customer", "card_subscription", "contract", "local_payment", "local_secret", "thirdparty"
]

_ATTEMPTS: Final = 3  # More would mean that somebody takes and gives up the same reference all the time.


@dataclass(frozen=True, slots=True)
class ReferenceOwner:
    """The organisation that a reference belongs to, and the id of what it refers to there."""

    organization_id: str
    subject_id: str


@dataclass(frozen=True, slots=True)
class LocalPaymentOwner:
    """The checkout of a payment: the first of those that were looked for, at `place`, counted from 1."""

    place: int
    organization_id: str
    checkout_id: str


async def find(tx: Tx, kind: ReferenceKind, reference: str) -> ReferenceOwner | None:
    """Return the owner of a reference, which names no organisation itself."""
    return await tx.one_or_none(
        ReferenceOwner,
        """
        SELECT organization_id, subject_id
          FROM billing_references
         WHERE kind = %(kind)s
           AND digest = %(digest)s
        """,
        {"kind": kind, "digest": _digest(reference)},
    )


async def find_local_payment(tx: Tx, payment_ids: Sequence[str]) -> LocalPaymentOwner | None:
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
        {"digests": bytes_array([_digest(each) for each in payment_ids])},
    )


async def insert_if_new(
    tx: Tx, kind: ReferenceKind, reference: str, *, organization_id: str, subject_id: str
) -> ReferenceOwner | None:
    """Make the organisation the owner of a reference; return None if it has an owner already."""
    return await tx.one_or_none(
        ReferenceOwner,
        """
        INSERT INTO billing_references (kind, digest, organization_id, subject_id)
        VALUES (%(kind)s, %(digest)s, %(organization_id)s, %(subject_id)s)
            ON CONFLICT DO NOTHING
        RETURNING organization_id, subject_id
        """,
        {
            "kind": kind,
            "digest": _digest(reference),
            "organization_id": organization_id,
            "subject_id": subject_id,
        },
    )


async def insert_or_find(
    tx: Tx, kind: ReferenceKind, reference: str, *, organization_id: str, subject_id: str
) -> ReferenceOwner:
    """Make the organisation the owner of a reference, unless it has one already; return the owner.

    Of two transactions with the same new reference, the second waits for the first.

    Raises: DatabaseUnavailable if it changes hands each time that we look.
    """
    for _ in range(_ATTEMPTS):
        owner = await insert_if_new(
            tx, kind, reference, organization_id=organization_id, subject_id=subject_id
        ) or await find(tx, kind, reference)
        # None if its owner gave it up between the two statements.
        if owner is not None:
            return owner
    raise DatabaseUnavailable("The reference keeps changing hands.")


async def delete(tx: Tx, kind: ReferenceKind, reference: str, *, organization_id: str) -> None:
    """Give up the organisation's reference."""
    await tx.run(
        """
        DELETE FROM billing_references
         WHERE kind = %(kind)s
           AND digest = %(digest)s
           AND organization_id = %(organization_id)s
        """,
        {"kind": kind, "digest": _digest(reference), "organization_id": organization_id},
    )


def _digest(reference: str) -> bytes:
    return hashlib.sha256(reference.encode()).digest()

"""The tables `invitations` and `invitation_digests`."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.tenancy.invitation import Delivery, Invitation
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_COLUMNS: Final[LiteralString] = (
    "id, organization_id, email, role, created_at, expires_at, accepted_at, revoked_at, delivery_status"
)
_SELECT: Final[LiteralString] = "SELECT " + _COLUMNS + " FROM invitations "


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The organisation and id of an invitation."""

    organization_id: str
    invitation_id: str


async def insert(
    tx: Tx, scope: TenantScope, invitation: Invitation, *, digest: bytes, sealed_secret: bytes | None
) -> None:
    """Insert an invitation, and the digest by which its secret finds it without an organisation."""
    await tx.run(
        """
        WITH invitation AS (
            INSERT INTO invitations
                   (organization_id, id, email, role, created_at, expires_at, delivery_status, delivery_due_at,
                    sealed_secret)
            VALUES (%(organization_id)s, %(id)s, %(email)s, %(role)s, %(created_at)s, %(expires_at)s,
                    %(delivery_status)s,
                    CASE WHEN %(sealed_secret)s::bytea IS NULL THEN NULL ELSE %(created_at)s::timestamptz END,
                    %(sealed_secret)s)
        )
        INSERT INTO invitation_digests (digest, organization_id, invitation_id)
        VALUES (%(digest)s, %(organization_id)s, %(id)s)
        """,
        {
            **asdict(invitation),
            "organization_id": scope.organization_id,
            "sealed_secret": sealed_secret,
            "digest": digest,
        },
    )


async def find_by_digest(tx: Tx, digest: bytes) -> Whereabouts | None:
    """Return where the invitation is whose secret has this digest."""
    return await tx.one_or_none(
        Whereabouts,
        """
        SELECT organization_id, invitation_id
          FROM invitation_digests
         WHERE digest = %(digest)s
        """,
        {"digest": digest},
    )


async def list_newest_first(tx: Tx, scope: TenantScope, *, before: Position | None, limit: int) -> list[Invitation]:
    """Return up to `limit` invitations of the organisation, newest first."""
    return await tx.all(
        Invitation,
        _SELECT + "WHERE organization_id = %(organization_id)s" + NEWEST_FIRST,
        {"organization_id": scope.organization_id, **page_params(before, limit)},
    )


async def lock(tx: Tx, *, organization_id: str, invitation_id: str) -> Invitation | None:
    """Lock one invitation of the organisation until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        Invitation,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(invitation_id)s FOR NO KEY UPDATE",
        {"organization_id": organization_id, "invitation_id": invitation_id},
    )


async def update_accepted(tx: Tx, invitation: Invitation, *, now: datetime) -> None:
    """Mark an invitation accepted, and cancel its mail if it has not been sent."""
    await tx.run(
        """
        UPDATE invitations
           SET accepted_at = %(now)s,
               delivery_status = CASE WHEN sealed_secret IS NULL THEN delivery_status ELSE 'cancelled' END,
               delivery_due_at = NULL,
               sealed_secret = NULL
         WHERE organization_id = %(organization_id)s
           AND id = %(invitation_id)s
        """,
        {"organization_id": invitation.organization_id, "invitation_id": invitation.id, "now": now},
    )


async def update_revoked(tx: Tx, scope: TenantScope, invitation_id: str, *, now: datetime) -> Invitation:
    """Mark a locked invitation revoked, cancel its mail if it has not been sent, and return the invitation."""
    revoked = await tx.one_or_none(
        Invitation,
        """
        UPDATE invitations
           SET revoked_at = %(now)s,
               delivery_status = CASE WHEN sealed_secret IS NULL THEN delivery_status ELSE 'cancelled' END,
               delivery_due_at = NULL,
               sealed_secret = NULL
         WHERE organization_id = %(organization_id)s
           AND id = %(invitation_id)s
        RETURNING """
        + _COLUMNS,
        {"organization_id": scope.organization_id, "invitation_id": invitation_id, "now": now},
    )
    assert revoked is not None, "a locked row exists"
    return revoked


async def lock_delivery(tx: Tx, *, organization_id: str, invitation_id: str) -> Delivery | None:
    """Lock the delivery of one invitation until the transaction ends.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        Delivery,
        """
        SELECT i.id AS invitation_id, i.organization_id, o.name AS organization_name,
               o.deletion_requested_at IS NOT NULL AS is_organization_closing,
               o.suspended_at IS NOT NULL AS is_organization_suspended, i.email, i.role, i.created_at,
               i.expires_at, i.delivery_status AS status, i.delivery_attempts AS attempts,
               i.delivery_due_at AS due_at, i.sealed_secret
          FROM invitations i
          JOIN organizations o ON o.id = i.organization_id
         WHERE i.organization_id = %(organization_id)s
           AND i.id = %(invitation_id)s
           FOR NO KEY UPDATE OF i
        """,
        {"organization_id": organization_id, "invitation_id": invitation_id},
    )


async def update_sending(tx: Tx, delivery: Delivery, *, due_at: datetime) -> None:
    """Record that an attempt of a locked delivery begins, and when the next may begin if this one never ends."""
    await tx.run(
        """
        UPDATE invitations
           SET delivery_status = 'processing',
               delivery_attempts = delivery_attempts + 1,
               delivery_due_at = %(due_at)s
         WHERE organization_id = %(organization_id)s
           AND id = %(invitation_id)s
        """,
        {"organization_id": delivery.organization_id, "invitation_id": delivery.invitation_id, "due_at": due_at},
    )


async def update_waiting(tx: Tx, delivery: Delivery, *, attempt: int, due_at: datetime) -> bool:
    """Record that an attempt failed, and when the next may begin; return False if it is not the current attempt."""
    return (
        await tx.run(
            """
            UPDATE invitations
               SET delivery_status = 'pending',
                   delivery_due_at = %(due_at)s
             WHERE organization_id = %(organization_id)s
               AND id = %(invitation_id)s
               AND delivery_status = 'processing'
               AND delivery_attempts = %(attempt)s
            """,
            {
                "organization_id": delivery.organization_id,
                "invitation_id": delivery.invitation_id,
                "attempt": attempt,
                "due_at": due_at,
            },
        )
        == 1
    )


async def update_delivered(tx: Tx, delivery: Delivery, *, attempt: int, status: str) -> bool:
    """Record how an attempt ended the delivery and delete the secret; return False if it is not the current attempt."""
    return (
        await tx.run(
            """
            UPDATE invitations
               SET delivery_status = %(status)s,
                   delivery_due_at = NULL,
                   sealed_secret = NULL
             WHERE organization_id = %(organization_id)s
               AND id = %(invitation_id)s
               AND delivery_status IN ('pending', 'processing')
               AND delivery_attempts = %(attempt)s
            """,
            {
                "organization_id": delivery.organization_id,
                "invitation_id": delivery.invitation_id,
                "attempt": attempt,
                "status": status,
            },
        )
        == 1
    )

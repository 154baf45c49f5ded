"""The table `webhook_endpoints`."""

from dataclasses import asdict
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.endpoint import Endpoint
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_NUMBER_LOCK: Final = 7  # Advisory locks have two parts; other kinds of lock use another first part.
_SELECT: Final[LiteralString] = """
    SELECT organization_id, id, project_id, url, event_types, description, enabled, disabled_reason, created_at
      FROM webhook_endpoints
"""


async def lock_number(tx: Tx, scope: TenantScope) -> None:
    """Keep everybody else from adding endpoints to the organisation until the transaction ends.

    Of two that would each add one too many, the second sees the first. Lock order: docs/locks.md.
    """
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _NUMBER_LOCK, "organization_id": scope.organization_id},
    )


async def count(tx: Tx, scope: TenantScope) -> int:
    """Count the endpoints of the organisation."""
    number: int = await tx.value(
        "SELECT count(*) FROM webhook_endpoints WHERE organization_id = %(organization_id)s",
        {"organization_id": scope.organization_id},
    )
    return number


async def insert(tx: Tx, endpoint: Endpoint, *, sealed_secret: bytes) -> None:
    """Insert an endpoint."""
    await tx.run(
        """
        INSERT INTO webhook_endpoints
               (organization_id, id, project_id, url, event_types, description, enabled, sealed_secret, created_at)
        VALUES (%(organization_id)s, %(id)s, %(project_id)s, %(url)s, %(event_types)s, %(description)s, %(enabled)s,
                %(sealed_secret)s, %(created_at)s)
        """,
        {
            **asdict(endpoint),
            "event_types": None if endpoint.event_types is None else list(endpoint.event_types),
            "sealed_secret": sealed_secret,
        },
    )


async def find(tx: Tx, scope: TenantScope, endpoint_id: str) -> Endpoint | None:
    """Return one endpoint."""
    return await tx.one_or_none(
        Endpoint,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(endpoint_id)s",
        {"organization_id": scope.organization_id, "endpoint_id": endpoint_id},
    )


async def lock(tx: Tx, scope: TenantScope, endpoint_id: str) -> Endpoint | None:
    """Lock one endpoint until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        Endpoint,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(endpoint_id)s FOR UPDATE",
        {"organization_id": scope.organization_id, "endpoint_id": endpoint_id},
    )


async def list_newest_first(tx: Tx, scope: TenantScope, *, before: Position | None, limit: int) -> list[Endpoint]:
    """Return up to `limit` endpoints of the organisation, newest first, after position `before`."""
    return await tx.all(
        Endpoint,
        _SELECT + "WHERE organization_id = %(organization_id)s" + NEWEST_FIRST,
        {"organization_id": scope.organization_id, **page_params(before, limit)},
    )


async def update(tx: Tx, endpoint: Endpoint, *, forgets_failures: bool) -> None:
    """Set what may change of a locked endpoint; with `forgets_failures`, its failures so far no longer count."""
    await tx.run(
        """
        UPDATE webhook_endpoints
           SET url             = %(url)s,
               event_types     = %(event_types)s,
               description     = %(description)s,
               enabled         = %(enabled)s,
               disabled_reason = %(disabled_reason)s,
               failing_since   = CASE WHEN %(forgets_failures)s THEN NULL ELSE failing_since END
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
        """,
        {
            **asdict(endpoint),
            "event_types": None if endpoint.event_types is None else list(endpoint.event_types),
            "forgets_failures": forgets_failures,
        },
    )


async def find_sealed_secret(tx: Tx, scope: TenantScope, endpoint_id: str) -> bytes:
    """Return the sealed present secret of a locked endpoint."""
    sealed: bytes = await tx.value(
        """
        SELECT sealed_secret
          FROM webhook_endpoints
         WHERE organization_id = %(organization_id)s
           AND id = %(endpoint_id)s
        """,
        {"organization_id": scope.organization_id, "endpoint_id": endpoint_id},
    )
    return sealed


async def update_secret(
    tx: Tx,
    scope: TenantScope,
    endpoint_id: str,
    *,
    sealed_secret: bytes,
    sealed_earlier_secret: bytes,
    earlier_secret_until: datetime,
) -> None:
    """Replace the secret of a locked endpoint, and the earlier one with it."""
    await tx.run(
        """
        UPDATE webhook_endpoints
           SET sealed_secret         = %(sealed_secret)s,
               sealed_earlier_secret = %(sealed_earlier_secret)s,
               earlier_secret_until  = %(earlier_secret_until)s
         WHERE organization_id = %(organization_id)s
           AND id = %(endpoint_id)s
        """,
        {
            "organization_id": scope.organization_id,
            "endpoint_id": endpoint_id,
            "sealed_secret": sealed_secret,
            "sealed_earlier_secret": sealed_earlier_secret,
            "earlier_secret_until": earlier_secret_until,
        },
    )


async def delete(tx: Tx, scope: TenantScope, endpoint_id: str) -> None:
    """Delete a locked endpoint. Nobody sees or sends its deliveries after that; a job deletes them."""
    await tx.run(
        """
        DELETE FROM webhook_endpoints
         WHERE organization_id = %(organization_id)s
           AND id = %(endpoint_id)s
        """,
        {"organization_id": scope.organization_id, "endpoint_id": endpoint_id},
    )

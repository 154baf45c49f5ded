"""The table `codes`. The signed records of Codes are in `broadcasts`, and no statement reads both."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.codes.campaign import Campaign
from soundmark.core.domain.codes.code import Code, ListedCode
from soundmark.core.domain.log.entry import QUEUED_MAX
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.domain.webhooks.act import ACT_CODES_MAX
from soundmark.kit.postgres.arrays import bytes_array, plain_array, text_array, time_array
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.tracing.context import find_traceparent

_SELECT: Final[LiteralString] = """
    SELECT xr_id, organization_id, project_id, campaign_id, issuer, issued_at, expires_at, broadcast_token,
           audience_integration_id, key_id, revoked_at
      FROM codes
"""


async def insert(tx: AnyTx, issued: Sequence[Code], addresses: Sequence[bytes], commitments: bytes) -> None:
    """Insert Codes of one organisation, issued at the same time under one key, with what belongs to them.

    These are their addresses, their broadcasts, and their commitments in the transparency log, 64 bytes each.
    """
    first = issued[0]
    assert len(addresses) == len(issued), "every Code has an address"
    numbers = {address: number for number, address in enumerate(dict.fromkeys(addresses), start=1)}
    await tx.run(
        """
        WITH fresh AS (
            SELECT *
              FROM unnest(%(xr_ids)s::text[], %(tokens)s::text[], %(project_ids)s::text[], %(campaign_ids)s::text[],
                          %(issuers)s::text[], %(expire_at)s::timestamptz[], %(integration_ids)s::text[],
                          %(payloads)s::bytea[], %(signatures)s::bytea[], %(address_numbers)s::int[])
                   AS fresh (xr_id, token, project_id, campaign_id, issuer, expires_at, integration_id, payload,
                             signature, address_number)
        ), audible AS (
            INSERT INTO broadcasts (token, payload, signature, organization_id)
            SELECT token, payload, signature, %(organization_id)s
              FROM fresh
        ), logged AS (
            INSERT INTO log_queue (kind, count, content)
            VALUES ('code.issued', %(count)s::int, %(commitments)s::bytea)
        )
        INSERT INTO codes (organization_id, xr_id, project_id, campaign_id, issuer, issued_at, expires_at,
                           broadcast_token, audience_integration_id, key_id, address)
        SELECT %(organization_id)s, xr_id, project_id, campaign_id, issuer, %(issued_at)s, expires_at, token,
               integration_id, %(key_id)s, (%(addresses)s::bytea[])[address_number]
          FROM fresh
        """,
        {
            "organization_id": first.organization_id,
            "issued_at": first.issued_at,
            "key_id": first.key_id,
            "xr_ids": text_array(code.xr_id for code in issued),
            "tokens": text_array(code.broadcast_token for code in issued),
            "project_ids": text_array(code.project_id for code in issued),
            "campaign_ids": text_array(code.campaign_id for code in issued),
            "issuers": text_array(code.issuer for code in issued),
            "expire_at": time_array(code.expires_at for code in issued),
            "integration_ids": text_array(code.audience_integration_id for code in issued),
            "payloads": bytes_array(code.payload for code in issued),
            "signatures": bytes_array(code.signature for code in issued),
            # Few, because a batch has one: to read the same one a hundred times would cost more than to store it.
            "addresses": bytes_array(numbers),
            "count": len(issued),
            "commitments": commitments,
            "address_numbers": plain_array(numbers[address] for address in addresses),
        },
    )


async def find(tx: AnyTx, scope: TenantScope, xr_id: str, *, project_id: str | None = None) -> ListedCode | None:
    """Return one Code of the organisation; of `project_id`, if given, and of the only project the caller may reach."""
    return await tx.one_or_none(
        ListedCode,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
           AND (%(confined_to)s::text IS NULL OR project_id = %(confined_to)s)
           AND xr_id = %(xr_id)s
        """,
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            "confined_to": scope.project_id,
            "xr_id": xr_id,
        },
    )


async def lock(tx: Tx, scope: TenantScope, xr_id: str) -> ListedCode | None:
    """Lock one Code, and with it its broadcast, until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(
        ListedCode,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND (%(confined_to)s::text IS NULL OR project_id = %(confined_to)s)
           AND xr_id = %(xr_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": scope.organization_id, "confined_to": scope.project_id, "xr_id": xr_id},
    )


async def find_many(tx: Tx, scope: TenantScope, project_id: str, xr_ids: Sequence[str]) -> list[ListedCode]:
    """Return those of the Codes that belong to the project, in no particular order."""
    return await tx.all(
        ListedCode,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND xr_id = ANY(%(xr_ids)s::text[])
        """,
        {"organization_id": scope.organization_id, "project_id": project_id, "xr_ids": list(xr_ids)},
    )


async def lock_many(tx: Tx, scope: TenantScope, project_id: str, xr_ids: Sequence[str]) -> list[ListedCode]:
    """Lock those of the Codes that belong to the project, and with them their broadcasts, until the transaction ends.

    They are locked in the order of their ids, so that overlapping selections never deadlock: docs/locks.md.
    """
    return await tx.all(
        ListedCode,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND xr_id = ANY(%(xr_ids)s::text[])
         ORDER BY xr_id
           FOR NO KEY UPDATE
        """,
        {"organization_id": scope.organization_id, "project_id": project_id, "xr_ids": list(xr_ids)},
    )


async def update_revoked(tx: Tx, scope: TenantScope, xr_ids: Sequence[str], *, now: datetime) -> None:
    """Mark locked Codes revoked."""
    await tx.run(
        """
        UPDATE codes
           SET revoked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND xr_id = ANY(%(xr_ids)s::text[])
           AND revoked_at IS NULL
        """,
        {"organization_id": scope.organization_id, "xr_ids": list(xr_ids), "now": now},
    )


async def lock_in_campaign(tx: Tx, scope: TenantScope, campaign_id: str, *, now: datetime) -> int:
    """Lock every Code of a campaign that is active at `now`, by id, until the transaction ends; return their number.

    It locks their broadcasts too: every change of a broadcast first locks its Code. Lock order: docs/locks.md.
    """
    count: int = await tx.value(
        """
        SELECT count(*)
          FROM (SELECT
                  FROM codes
                 WHERE organization_id = %(organization_id)s
                   AND campaign_id = %(campaign_id)s
                   AND revoked_at IS NULL
                   AND expires_at > %(now)s
                 ORDER BY xr_id
                   FOR NO KEY UPDATE) AS held
        """,
        {"organization_id": scope.organization_id, "campaign_id": campaign_id, "now": now},
    )
    return count


async def update_revoked_in_campaign(
    tx: Tx, scope: TenantScope, campaign: Campaign, *, act_id: str, now: datetime
) -> int:
    """Mark every Code of a campaign that is active at `now`, and its broadcast, revoked; return their number.

    `lock_in_campaign` locked them. There may be a hundred thousand, so their tokens and ids never leave the server:
    their commitments in the log are made here and, if the organisation has webhook endpoints, the acts that name the
    Codes, `act_id` and a number each.
    """
    count: int = await tx.value(
        """
        WITH revoked AS (
            UPDATE codes
               SET revoked_at = %(now)s
             WHERE organization_id = %(organization_id)s
               AND campaign_id = %(campaign_id)s
               AND revoked_at IS NULL
               AND expires_at > %(now)s
            RETURNING xr_id, broadcast_token
        ), silenced AS (
            UPDATE broadcasts
               SET revoked_at = %(now)s
              FROM revoked
             WHERE broadcasts.token = revoked.broadcast_token
            RETURNING commit_revoked(broadcasts.payload, broadcasts.signature) AS commitment
        ), logged AS (
            INSERT INTO log_queue (kind, count, content)
            SELECT 'code.revoked', count(*), string_agg(commitment, '')
              FROM (SELECT (row_number() OVER () - 1) / %(commitments_max)s AS number, commitment
                      FROM silenced) AS committed
             GROUP BY number
        ), listening AS (
            SELECT array_agg(id) AS endpoint_ids
              FROM webhook_endpoints
             WHERE organization_id = %(organization_id)s
        ), parts AS (
            SELECT (row_number() OVER () - 1) / %(act_codes_max)s AS number, xr_id
              FROM revoked
        ), announced AS (
            INSERT INTO webhook_acts
                   (organization_id, id, project_id, type, actor_type, actor_id, data, xr_ids, endpoint_ids,
                    traceparent, created_at)
            SELECT %(organization_id)s, %(act_id)s || '.' || number, %(project_id)s, 'code.revoked', %(actor_type)s,
                   %(actor_id)s, '{}', array_agg(xr_id), endpoint_ids, %(traceparent)s::text, %(now)s
              FROM parts CROSS JOIN listening
             WHERE endpoint_ids IS NOT NULL
             GROUP BY number, endpoint_ids
        )
        SELECT count(*) FROM revoked
        """,
        {
            "organization_id": scope.organization_id,
            "project_id": campaign.project_id,
            "campaign_id": campaign.id,
            "act_id": act_id,
            "act_codes_max": ACT_CODES_MAX,
            "commitments_max": QUEUED_MAX,
            "actor_type": scope.actor.type,
            "actor_id": scope.actor.id,
            "traceparent": find_traceparent(),
            "now": now,
        },
    )
    return count


async def find_unexpired_signed_by(tx: Tx, key_id: str, *, now: datetime) -> str | None:
    """Return the id of any Code, of any organisation, that this key signed and that is unexpired at `now`."""
    xr_id: str | None = await tx.value(
        """
        SELECT xr_id
          FROM codes
         WHERE key_id = %(key_id)s
           AND expires_at > %(now)s
         LIMIT 1
        """,
        {"key_id": key_id, "now": now},
    )
    return xr_id

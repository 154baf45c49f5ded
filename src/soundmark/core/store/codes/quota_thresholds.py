"""The table `quota_thresholds`."""

from collections.abc import Sequence
from datetime import datetime

from soundmark.core.domain.codes.quota import Quota
from soundmark.kit.postgres.arrays import plain_array
from soundmark.kit.postgres.transaction import AnyTx


async def insert_reached(
    tx: AnyTx,
    organization_id: str,
    quota: Quota,
    percents: Sequence[int],
    *,
    act_id: str,
    traceparent: str | None,
    now: datetime,
) -> None:
    """Insert each threshold that was not announced this month, and the act that announces it.

    If the organisation has no webhook endpoints, nothing is written: once it has one, it is announced. The id of an act
    is `act_id` and the threshold.
    """
    await tx.run(
        """
        WITH listening AS (
            SELECT array_agg(id) AS endpoint_ids
              FROM webhook_endpoints
             WHERE organization_id = %(organization_id)s
        ), reached AS (
            INSERT INTO quota_thresholds (organization_id, month, percent)
            SELECT %(organization_id)s, %(month)s, percent
              FROM unnest(%(percents)s::integer[]) AS percent
             CROSS JOIN listening
             WHERE endpoint_ids IS NOT NULL
                ON CONFLICT (organization_id, month, percent) DO NOTHING
            RETURNING percent
        )
        INSERT INTO webhook_acts
               (organization_id, id, type, actor_type, actor_id, data, endpoint_ids, traceparent, created_at)
        SELECT %(organization_id)s, %(act_id)s || '.' || percent, 'quota.threshold_reached', 'system', 'soundmark',
               jsonb_build_object('month', %(month)s::text, 'percent', percent, 'issued', %(issued)s::bigint,
                                  'monthly_quota', %(monthly_quota)s::bigint)::text,
               endpoint_ids, %(traceparent)s::text, %(now)s
          FROM reached CROSS JOIN listening
        """,
        {
            "organization_id": organization_id,
            "month": quota.month.name,
            "percents": plain_array(percents),
            "issued": quota.issued_count,
            "monthly_quota": quota.monthly_quota,
            "act_id": act_id,
            "traceparent": traceparent,
            "now": now,
        },
    )

"""The table `webhook_acts`."""

from dataclasses import asdict

from soundmark.core.domain.webhooks.act import Act
from soundmark.kit.postgres.arrays import plain_array
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.tracing.context import find_traceparent


async def insert(tx: Tx, act: Act) -> None:
    """Insert an act, for the endpoints that the organisation has; without one, do nothing."""
    await tx.run(
        """
        INSERT INTO webhook_acts
               (organization_id, id, project_id, type, actor_type, actor_id, data, xr_ids, endpoint_ids, traceparent,
                created_at)
        SELECT %(organization_id)s, %(id)s, %(project_id)s, %(type)s, %(actor_type)s, %(actor_id)s, %(data)s,
               %(xr_ids)s::text[], listening.endpoint_ids, %(traceparent)s::text, %(created_at)s
          FROM (SELECT array_agg(id) AS endpoint_ids
                  FROM webhook_endpoints
                 WHERE organization_id = %(organization_id)s) AS listening
         WHERE listening.endpoint_ids IS NOT NULL
        """,
        {
            **asdict(act),
            "xr_ids": None if act.xr_ids is None else plain_array(act.xr_ids),
            "traceparent": find_traceparent(),
        },
    )

"""Limits of replays: one pending delivery of an event to an endpoint, and what an organisation has replayed.

Of the duplicates that earlier replays made, the one with the fewest attempts stays. The worker and replays wait
meanwhile, for a second or so with millions of deliveries; everybody else continues.
"""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0018"
down_revision = "0017"


_PENDING: Final = """
SET LOCAL lock_timeout = '2s';
LOCK TABLE webhook_deliveries IN SHARE ROW EXCLUSIVE MODE;

DO $$
DECLARE
    organization  text;
    organizations text[];
BEGIN
    SET LOCAL soundmark.tenant TO '*';
    organizations := ARRAY(
        SELECT DISTINCT organization_id
          FROM (SELECT organization_id
                  FROM webhook_deliveries
                 WHERE status = 'pending'
                 GROUP BY organization_id, endpoint_id, event_id
                HAVING count(*) > 1) AS repeated);
    FOREACH organization IN ARRAY organizations LOOP
        EXECUTE format('SET LOCAL soundmark.tenant TO %L', organization);
        DELETE FROM webhook_deliveries
         USING (SELECT id,
                       row_number() OVER (PARTITION BY endpoint_id, event_id
                                              ORDER BY attempts, next_attempt_at, id) AS place
                  FROM webhook_deliveries
                 WHERE organization_id = organization
                   AND status = 'pending') AS ranked
         WHERE webhook_deliveries.organization_id = organization
           AND webhook_deliveries.id = ranked.id
           AND ranked.place > 1;
    END LOOP;
    SET LOCAL soundmark.tenant TO '';
END
$$;

-- Of one event and endpoint, one delivery waits, whoever made it.
CREATE UNIQUE INDEX webhook_deliveries_pending
    ON webhook_deliveries (organization_id, endpoint_id, event_id) WHERE status = 'pending';
"""
_COUNTS: Final = """
-- What an organisation has replayed: when each of its newest replays was answered, and how many deliveries they made
-- on `day`, in UTC.
CREATE TABLE webhook_replay_counts (
    organization_id  text          NOT NULL,
    replayed_at      timestamptz[] NOT NULL,
    day              date          NOT NULL,
    deliveries_count integer       NOT NULL,
    CONSTRAINT webhook_replay_counts_pkey PRIMARY KEY (organization_id),
    CONSTRAINT webhook_replay_counts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT webhook_replay_counts_deliveries_check CHECK (deliveries_count >= 0)
);

ALTER TABLE webhook_replay_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_replay_counts FORCE ROW LEVEL SECURITY;
CREATE POLICY webhook_replay_counts_of_tenant ON webhook_replay_counts USING (organization_id = current_tenant());
CREATE POLICY webhook_replay_counts_of_backup ON webhook_replay_counts FOR SELECT USING (is_backup());
"""


def upgrade() -> None:
    """Delete duplicates and forbid further ones, then create the table."""
    run_script(_PENDING)
    run_script(_COUNTS)

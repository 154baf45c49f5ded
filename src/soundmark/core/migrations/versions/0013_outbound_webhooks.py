"""Outbound webhooks: endpoints, acts that wait to be turned into events, events, and deliveries.

An index on Codes is built without blocking their readers and writers.
"""

from typing import Final

from alembic import op

from soundmark.kit.postgres.revision import run_script

revision = "0013"
down_revision = "0012"


# An interrupted attempt leaves an invalid index, which cannot be completed.
_DROP_REMAINS: Final = "DROP INDEX IF EXISTS codes_by_expiry"
_BUILD: Final = "CREATE INDEX CONCURRENTLY codes_by_expiry ON codes (organization_id, expires_at)"
_TABLES: Final = """
-- `event_types` is null for all. `failing_since` is when the first delivery failed since the last that succeeded. The
-- earlier secret signs beside the other until `earlier_secret_until`.
CREATE TABLE webhook_endpoints (
    organization_id       text        NOT NULL,
    id                    text        NOT NULL,
    project_id            text,
    url                   text        NOT NULL,
    event_types           text[],
    description           text,
    enabled               boolean     NOT NULL,
    disabled_reason       text,
    failing_since         timestamptz,
    sealed_secret         bytea       NOT NULL,
    sealed_earlier_secret bytea,
    earlier_secret_until  timestamptz,
    created_at            timestamptz NOT NULL,
    CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT webhook_endpoints_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT webhook_endpoints_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT webhook_endpoints_reason_check CHECK (disabled_reason IN ('gone', 'failing')),
    CONSTRAINT webhook_endpoints_enabled_check CHECK (NOT enabled OR disabled_reason IS NULL),
    CONSTRAINT webhook_endpoints_secret_check
        CHECK ((sealed_earlier_secret IS NULL) = (earlier_secret_until IS NULL))
);

CREATE INDEX webhook_endpoints_newest_first ON webhook_endpoints (organization_id, created_at DESC, id DESC);

-- One row for each act of an organisation that has an endpoint, written in the transaction of the act and deleted in
-- the transaction that turns it into events. `xr_ids` are the Codes of a bulk act, each of which has an event; the
-- Codes of a large act are spread over several rows. `endpoint_ids` are the endpoints that existed. The ids of events
-- and deliveries are derived from the act's, which has 128 random bits.
CREATE TABLE webhook_acts (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    project_id      text,
    type            text        NOT NULL,
    actor_type      text        NOT NULL,
    actor_id        text        NOT NULL,
    data            text        NOT NULL,
    xr_ids          text[],
    endpoint_ids    text[]      NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT webhook_acts_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT webhook_acts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

CREATE INDEX webhook_acts_oldest_first ON webhook_acts (organization_id, created_at, id);

-- How far the expiry of an organisation's Codes was announced: every Code up to this one, by time and id.
CREATE TABLE announced_expiries (
    organization_id text        NOT NULL,
    expires_at      timestamptz NOT NULL,
    xr_id           text        NOT NULL,
    CONSTRAINT announced_expiries_pkey PRIMARY KEY (organization_id),
    CONSTRAINT announced_expiries_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

-- Events and deliveries have no foreign keys: a stop writes a hundred thousand of each, and deleting an endpoint, or
-- old events, must not take as long as that. An organisation's row is held while they are written, and a job deletes
-- what no longer belongs to an endpoint.
CREATE TABLE webhook_events (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    project_id      text,
    type            text        NOT NULL,
    actor_type      text        NOT NULL,
    actor_id        text        NOT NULL,
    data            text        NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT webhook_events_pkey PRIMARY KEY (organization_id, id)
);

CREATE INDEX webhook_events_oldest_first ON webhook_events (organization_id, created_at, id);

CREATE TABLE webhook_deliveries (
    organization_id  text        NOT NULL,
    id               text        NOT NULL,
    endpoint_id      text        NOT NULL,
    event_id         text        NOT NULL,
    event_type       text        NOT NULL,
    status           text        NOT NULL,
    attempts         integer     NOT NULL DEFAULT 0,
    last_status_code integer,
    last_error       text,
    next_attempt_at  timestamptz,
    created_at       timestamptz NOT NULL,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT webhook_deliveries_status_check CHECK (status IN ('pending', 'delivered', 'failed')),
    CONSTRAINT webhook_deliveries_next_check CHECK ((next_attempt_at IS NULL) = (status <> 'pending'))
);

CREATE INDEX webhook_deliveries_newest_first
    ON webhook_deliveries (organization_id, endpoint_id, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_due
    ON webhook_deliveries (organization_id, endpoint_id, next_attempt_at) WHERE status = 'pending';

-- The thresholds of the Codes quota that were announced in a month, each once.
CREATE TABLE quota_thresholds (
    organization_id text    NOT NULL,
    month           text    NOT NULL,
    percent         integer NOT NULL,
    CONSTRAINT quota_thresholds_pkey PRIMARY KEY (organization_id, month, percent),
    CONSTRAINT quota_thresholds_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

ALTER TABLE webhook_endpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_endpoints FORCE ROW LEVEL SECURITY;
CREATE POLICY webhook_endpoints_of_tenant ON webhook_endpoints USING (organization_id = current_tenant());
CREATE POLICY webhook_endpoints_of_everybody ON webhook_endpoints FOR SELECT USING (current_tenant() = '*');
-- An operator reseals the secrets of every tenant under a new master key.
CREATE POLICY webhook_endpoints_resealed ON webhook_endpoints FOR UPDATE USING (current_tenant() = '*');
CREATE POLICY webhook_endpoints_of_backup ON webhook_endpoints FOR SELECT USING (is_backup());

ALTER TABLE webhook_acts ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_acts FORCE ROW LEVEL SECURITY;
CREATE POLICY webhook_acts_of_tenant ON webhook_acts USING (organization_id = current_tenant());
CREATE POLICY webhook_acts_of_everybody ON webhook_acts FOR SELECT USING (current_tenant() = '*');
CREATE POLICY webhook_acts_of_backup ON webhook_acts FOR SELECT USING (is_backup());

ALTER TABLE webhook_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_events FORCE ROW LEVEL SECURITY;
CREATE POLICY webhook_events_of_tenant ON webhook_events USING (organization_id = current_tenant());
CREATE POLICY webhook_events_of_everybody ON webhook_events FOR SELECT USING (current_tenant() = '*');
CREATE POLICY webhook_events_of_backup ON webhook_events FOR SELECT USING (is_backup());

ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY webhook_deliveries_of_tenant ON webhook_deliveries USING (organization_id = current_tenant());
CREATE POLICY webhook_deliveries_of_everybody ON webhook_deliveries FOR SELECT USING (current_tenant() = '*');
CREATE POLICY webhook_deliveries_of_backup ON webhook_deliveries FOR SELECT USING (is_backup());

ALTER TABLE announced_expiries ENABLE ROW LEVEL SECURITY;
ALTER TABLE announced_expiries FORCE ROW LEVEL SECURITY;
CREATE POLICY announced_expiries_of_tenant ON announced_expiries USING (organization_id = current_tenant());
CREATE POLICY announced_expiries_of_backup ON announced_expiries FOR SELECT USING (is_backup());

ALTER TABLE quota_thresholds ENABLE ROW LEVEL SECURITY;
ALTER TABLE quota_thresholds FORCE ROW LEVEL SECURITY;
CREATE POLICY quota_thresholds_of_tenant ON quota_thresholds USING (organization_id = current_tenant());
CREATE POLICY quota_thresholds_of_backup ON quota_thresholds FOR SELECT USING (is_backup());
"""


def upgrade() -> None:
    """Build the index, then create the tables."""
    with op.get_context().autocommit_block():
        run_script(_DROP_REMAINS)
        run_script(_BUILD)
    run_script(_TABLES)

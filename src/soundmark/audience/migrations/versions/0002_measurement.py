"""Integrations, events and their counters."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0002"
down_revision = "0001"

_TABLES: Final = """
-- A publisher's source of measurements. Millions of rows below refer to it by `number` instead of its id. The HMAC
-- secret is sealed, because every event needs it again. Proofs are verified with Core's key; the key before it is
-- trusted for seven more minutes.
CREATE TABLE integrations (
    number              integer     NOT NULL GENERATED ALWAYS AS IDENTITY,
    id                  text        NOT NULL,
    organization_id     text        NOT NULL,
    project_id          text        NOT NULL,
    mode                text        NOT NULL,
    retention_days      integer     NOT NULL,
    sealed_secret       bytea       NOT NULL,
    secret_rotated_at   timestamptz,
    core_key_id         text        NOT NULL,
    core_public_key     bytea       NOT NULL,
    previous_key_id     text,
    previous_public_key bytea,
    previous_until      timestamptz,
    created_at          timestamptz NOT NULL,
    revoked_at          timestamptz,
    CONSTRAINT integrations_pkey PRIMARY KEY (number),
    CONSTRAINT integrations_id_key UNIQUE (id),
    CONSTRAINT integrations_mode_check CHECK (mode IN ('demo', 'contract', 'self_service')),
    CONSTRAINT integrations_retention_check CHECK (retention_days BETWEEN 1 AND 730),
    CONSTRAINT integrations_demo_check CHECK (mode <> 'demo' OR retention_days <= 14),
    CONSTRAINT integrations_previous_check CHECK (
        (previous_key_id IS NULL) = (previous_public_key IS NULL)
        AND (previous_key_id IS NULL) = (previous_until IS NULL)
    )
);

CREATE INDEX integrations_newest_first ON integrations (organization_id, project_id, created_at DESC, id DESC);

-- The latest copies of Core's entitlements. A copy with a smaller revision changes nothing.
CREATE TABLE entitlements (
    organization_id     text   NOT NULL,
    mode                text   NOT NULL,
    monthly_event_quota bigint NOT NULL,
    ends_at             timestamptz,
    revision            bigint NOT NULL,
    CONSTRAINT entitlements_pkey PRIMARY KEY (organization_id, mode),
    CONSTRAINT entitlements_mode_check CHECK (mode IN ('contract', 'self_service')),
    CONSTRAINT entitlements_quota_check CHECK (monthly_event_quota >= 0)
);

-- The results of Core's operations. A repeated operation gets its result and does nothing. Never a secret.
CREATE TABLE operations (
    id              text        NOT NULL,
    organization_id text        NOT NULL,
    project_id      text        NOT NULL,
    integration_id  text        NOT NULL,
    action          text        NOT NULL,
    answer          text        NOT NULL,
    applied_at      timestamptz NOT NULL,
    CONSTRAINT operations_pkey PRIMARY KEY (id)
);

-- Secrets that Audience made at its first start, such as the key of its digests of tokens.
CREATE TABLE instance_secrets (
    name       text        NOT NULL,
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT instance_secrets_pkey PRIMARY KEY (name)
);

-- The number of events recorded in a calendar month (UTC) of receipt. Recording locks this row, so that events of one
-- organisation and mode form one queue, in which everything that depends on their order is judged.
CREATE TABLE event_months (
    organization_id text   NOT NULL,
    mode            text   NOT NULL,
    first_day       date   NOT NULL,
    events          bigint NOT NULL DEFAULT 0,
    CONSTRAINT event_months_pkey PRIMARY KEY (organization_id, mode, first_day)
);

-- The Codes of an integration's events. The rows below refer to them by number instead of id.
CREATE TABLE measured_codes (
    number      integer NOT NULL GENERATED ALWAYS AS IDENTITY,
    integration integer NOT NULL,
    xr_id       text    NOT NULL,
    campaign_id text,
    CONSTRAINT measured_codes_pkey PRIMARY KEY (number),
    CONSTRAINT measured_codes_once UNIQUE (integration, xr_id),
    CONSTRAINT measured_codes_integration_fkey FOREIGN KEY (integration) REFERENCES integrations (number)
);

-- One recorded event. Its token is kept as 64 bits of a digest, its id and its proof as 128: enough to tell them apart,
-- and not enough to identify anybody. `day` is the UTC day of the occurrence and `occurred_ms` the milliseconds since
-- it began; `receiver` and `country` are numbers of audience/domain/packing.py. The index holds whole rows, so that a
-- report never reads the table, and the table is vacuumed early, so that this stays true.
CREATE TABLE events (
    token       bigint   NOT NULL,
    integration integer  NOT NULL,
    day         date     NOT NULL,
    code        integer  NOT NULL,
    occurred_ms integer  NOT NULL,
    receiver    smallint NOT NULL,
    country     smallint,
    CONSTRAINT events_once_a_day UNIQUE (integration, day, token, code) INCLUDE (occurred_ms, receiver, country),
    CONSTRAINT events_occurred_check CHECK (occurred_ms BETWEEN 0 AND 86399999)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 10000);

-- Every event id that was answered as recorded or as a duplicate of its pair, with the digest of its body.
CREATE TABLE event_ids (
    integration integer NOT NULL,
    event_id    uuid    NOT NULL,
    body        uuid    NOT NULL,
    day         date    NOT NULL,
    CONSTRAINT event_ids_pkey PRIMARY KEY (integration, event_id)
);

CREATE TABLE spent_proofs (
    integration integer NOT NULL,
    proof       uuid    NOT NULL,
    day         date    NOT NULL,
    CONSTRAINT spent_proofs_pkey PRIMARY KEY (integration, proof)
);

-- By the UTC day of receipt; never by Code or campaign.
CREATE TABLE integrity_days (
    integration           integer NOT NULL,
    day                   date    NOT NULL,
    event_replays         bigint  NOT NULL DEFAULT 0,
    code_token_duplicates bigint  NOT NULL DEFAULT 0,
    proof_replays         bigint  NOT NULL DEFAULT 0,
    CONSTRAINT integrity_days_pkey PRIMARY KEY (integration, day)
);

-- Daily aggregates of the time before XR v1, which are neither verified nor comparable.
CREATE TABLE legacy_days (
    organization_id text   NOT NULL,
    project_id      text   NOT NULL,
    day             date   NOT NULL,
    events          bigint NOT NULL,
    CONSTRAINT legacy_days_pkey PRIMARY KEY (organization_id, project_id, day),
    CONSTRAINT legacy_days_events_check CHECK (events >= 0)
);

-- The time of this migration. Proofs of the earlier shape, without an id, are accepted for five minutes after it.
CREATE TABLE proof_transition (
    began_at timestamptz NOT NULL,
    only_row boolean     NOT NULL DEFAULT true,
    CONSTRAINT proof_transition_pkey PRIMARY KEY (only_row),
    CONSTRAINT proof_transition_one_row CHECK (only_row)
);
"""

# Here alone the database's own clock counts: it tells when the database was migrated.
_TRANSITION: Final = "INSERT INTO proof_transition (began_at) VALUES (clock_timestamp());"


def upgrade() -> None:
    """Create the tables."""
    run_script(_TABLES)
    run_script(_TRANSITION)

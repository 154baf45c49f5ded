-- The whole schema of Audience and its first row, as reviewed. All revisions together make exactly this (tests/database),
-- beside the queue of background jobs: soundmark/kit/postgres/jobs_schema_3_10_0.sql.

-- A publisher's source of measurements. The millions of rows below hold its `number` instead of its id. The HMAC secret
-- is sealed, not digested, because every event needs it. Proofs are verified with Core's key; the key before it is
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

-- A copy of Core's entitlements. One with a smaller revision than the stored one changes nothing.
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

-- A copy of Core's suspensions. One with a smaller revision than the stored one changes nothing.
CREATE TABLE suspensions (
    organization_id text    NOT NULL,
    is_suspended    boolean NOT NULL,
    revision        bigint  NOT NULL,
    CONSTRAINT suspensions_pkey PRIMARY KEY (organization_id)
);

-- Operations that were carried out for Core. A repeated one gets the stored answer, which holds no secret.
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

-- The number of events received in a calendar month (UTC). Recording locks this row, so that events of one organisation
-- and mode form one queue, in which everything that depends on their order is judged.
CREATE TABLE event_months (
    organization_id text   NOT NULL,
    mode            text   NOT NULL,
    first_day       date   NOT NULL,
    events          bigint NOT NULL DEFAULT 0,
    CONSTRAINT event_months_pkey PRIMARY KEY (organization_id, mode, first_day)
);

-- The Codes that events of an integration were about, numbered in each integration. The rows below hold these numbers
-- instead of ids. Every unique key of a table with `integration` contains it, so that the table can be divided by it.
CREATE TABLE measured_codes (
    integration integer NOT NULL,
    number      integer NOT NULL,
    xr_id       text    NOT NULL,
    campaign_id text,
    CONSTRAINT measured_codes_pkey PRIMARY KEY (integration, number),
    CONSTRAINT measured_codes_once UNIQUE (integration, xr_id),
    CONSTRAINT measured_codes_integration_fkey FOREIGN KEY (integration) REFERENCES integrations (number)
);

-- One recorded event. Its token is stored as 64 bits of a digest, its id and its proof as 128: enough to tell them
-- apart, too little to identify anybody. `day` is the UTC day of the event and `occurred_ms` the milliseconds since then;
-- audience/domain/packing.py has the numbers of `receiver` and `country`. The index holds whole rows, and early
-- vacuuming keeps the visibility map current, so that a report never reads the table.
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

-- Every event id that was answered as recorded, or as a duplicate of its Code and token, with a digest of its body.
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

-- Counters by the UTC day of receipt; there are none by Code or campaign.
CREATE TABLE integrity_days (
    integration           integer NOT NULL,
    day                   date    NOT NULL,
    event_replays         bigint  NOT NULL DEFAULT 0,
    code_token_duplicates bigint  NOT NULL DEFAULT 0,
    proof_replays         bigint  NOT NULL DEFAULT 0,
    CONSTRAINT integrity_days_pkey PRIMARY KEY (integration, day)
);

-- Daily aggregates from before XR v1, which were not verified and are not comparable.
CREATE TABLE legacy_days (
    organization_id text   NOT NULL,
    project_id      text   NOT NULL,
    day             date   NOT NULL,
    events          bigint NOT NULL,
    CONSTRAINT legacy_days_pkey PRIMARY KEY (organization_id, project_id, day),
    CONSTRAINT legacy_days_events_check CHECK (events >= 0)
);

-- When this schema was installed. Proofs of the shape before it, without an id, are accepted for five more minutes.
CREATE TABLE proof_transition (
    began_at timestamptz NOT NULL,
    only_row boolean     NOT NULL DEFAULT true,
    CONSTRAINT proof_transition_pkey PRIMARY KEY (only_row),
    CONSTRAINT proof_transition_one_row CHECK (only_row)
);

-- The database's own clock counts here alone.
INSERT INTO proof_transition (began_at) VALUES (clock_timestamp());

-- The purges of tenants that left, begun or completed, with the numbers of rows deleted so far. A row stays for ever and
-- keeps everything of its subject from coming back. It names the subject by a digest: ids are random, so nobody who
-- reads this table learns who left.
CREATE TABLE purges (
    operation_id    text        NOT NULL,
    subject_digest  bytea       NOT NULL,
    began_at        timestamptz NOT NULL,
    completed_at    timestamptz,
    integrations    bigint      NOT NULL DEFAULT 0,
    events          bigint      NOT NULL DEFAULT 0,
    integrity_days  bigint      NOT NULL DEFAULT 0,
    legacy_days     bigint      NOT NULL DEFAULT 0,
    spent_proofs    bigint      NOT NULL DEFAULT 0,
    CONSTRAINT purges_pkey PRIMARY KEY (operation_id)
);

CREATE INDEX purges_by_subject ON purges (subject_digest);

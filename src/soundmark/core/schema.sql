-- The whole schema of Core and its first rows, as reviewed. All revisions together make exactly this (tests/database),
-- beside the queue of background jobs: soundmark/kit/postgres/jobs_schema_3_10_0.sql.
--
-- The keys of every tenant table begin with organization_id, so no row can belong to two tenants, and each table can be
-- divided by organisation.

-- `audience_cell` names the Audience that has everything of the organisation; it is set by the first integration or
-- import, and never changes. The operator may name a cell before that. `suspended_at` says that nothing of it resolves
-- and nothing is added; `suspension_revision` counts its suspensions and restorations, so that Audience knows the latest.
CREATE TABLE organizations (
    id                      text        NOT NULL,
    name                    text        NOT NULL,
    created_at              timestamptz NOT NULL,
    deletion_requested_at   timestamptz,
    audience_cell           text,
    preferred_audience_cell text,
    suspended_at            timestamptz,
    suspension_reason       text,
    suspension_revision     bigint      NOT NULL DEFAULT 0,
    CONSTRAINT organizations_pkey PRIMARY KEY (id),
    CONSTRAINT organizations_suspension_check CHECK ((suspended_at IS NULL) = (suspension_reason IS NULL)),
    CONSTRAINT organizations_cell_check CHECK (audience_cell ~ '^[a-z0-9-]{1,40}$'),
    CONSTRAINT organizations_preferred_cell_check CHECK (preferred_audience_cell ~ '^[a-z0-9-]{1,40}$')
);

-- Counts the organisations of each cell, and finds the cells in use.
CREATE INDEX organizations_by_cell ON organizations (audience_cell) WHERE audience_cell IS NOT NULL;
CREATE INDEX organizations_by_preferred_cell ON organizations (preferred_audience_cell)
    WHERE preferred_audience_cell IS NOT NULL;

-- An administrator of the platform looks for organisations.
CREATE INDEX organizations_newest_first ON organizations (created_at DESC, id DESC);

-- The organisations with a `suspended_at`, for the statement of a resolution, which knows no tenant. One statement
-- changes both, and triggers compare them.
CREATE TABLE suspended_organizations (
    organization_id text NOT NULL,
    CONSTRAINT suspended_organizations_pkey PRIMARY KEY (organization_id),
    CONSTRAINT suspended_organizations_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

-- Refuses a statement after which an organisation is suspended in one of the two tables alone. The argument is the
-- column of the changed table that has the organisation's id.
CREATE FUNCTION compare_suspension() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed_id text := CASE TG_OP WHEN 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END ->> TG_ARGV[0];
    tenant     text := current_setting('soundmark.tenant', true);
BEGIN
    PERFORM set_config('soundmark.tenant', '*', true);  -- Whoever changes the tables, the policies hide no row here.
    IF EXISTS (SELECT FROM organizations WHERE id = changed_id AND suspended_at IS NOT NULL)
       <> EXISTS (SELECT FROM suspended_organizations WHERE organization_id = changed_id)
    THEN
        RAISE integrity_constraint_violation USING MESSAGE = 'suspended in one of the two tables alone';
    END IF;
    PERFORM set_config('soundmark.tenant', tenant, true);
    RETURN NULL;
END
$$;

CREATE TRIGGER organizations_suspension_is_listed AFTER INSERT OR UPDATE OF suspended_at ON organizations
    FOR EACH ROW EXECUTE FUNCTION compare_suspension('id');
CREATE TRIGGER suspended_organizations_are_suspended AFTER INSERT OR UPDATE OR DELETE ON suspended_organizations
    FOR EACH ROW EXECUTE FUNCTION compare_suspension('organization_id');

CREATE TABLE members (
    organization_id text        NOT NULL,
    subject_id      text        NOT NULL,
    email           text        NOT NULL,
    role            text        NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT members_pkey PRIMARY KEY (organization_id, subject_id),
    CONSTRAINT members_organization_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT members_role_check CHECK (role IN ('owner', 'admin', 'member', 'billing'))
);

-- A person asks which organisations they belong to before they chose one.
CREATE INDEX members_by_subject ON members (subject_id, organization_id);
CREATE INDEX members_newest_first ON members (organization_id, created_at DESC, subject_id DESC);

-- `allowed_hosts` are those to which intents may lead, null for any; `allowed_hosts_at` is when they were last set.
CREATE TABLE projects (
    organization_id       text        NOT NULL,
    id                    text        NOT NULL,
    name                  text        NOT NULL,
    created_at            timestamptz NOT NULL,
    deletion_requested_at timestamptz,
    allowed_hosts         text[],
    allowed_hosts_at      timestamptz,
    CONSTRAINT projects_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT projects_name_key UNIQUE (organization_id, name),
    CONSTRAINT projects_allowed_hosts_check CHECK (allowed_hosts IS NULL OR allowed_hosts_at IS NOT NULL),
    CONSTRAINT projects_allowed_hosts_number_check CHECK (cardinality(allowed_hosts) <= 100),
    CONSTRAINT projects_organization_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id) ON DELETE CASCADE
);

CREATE INDEX projects_newest_first ON projects (organization_id, created_at DESC, id DESC);

-- The cell of each integration, for events, which name no organisation. A row is written before Audience is asked to
-- create the integration, so it is there before the first event.
CREATE TABLE integration_cells (
    integration_id  text NOT NULL,
    organization_id text NOT NULL,
    project_id      text NOT NULL,
    cell            text NOT NULL,
    CONSTRAINT integration_cells_pkey PRIMARY KEY (integration_id),
    CONSTRAINT integration_cells_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX integration_cells_of_project ON integration_cells (organization_id, project_id);

-- All that a resolution reads. Its key is the token, because a receiver knows no organisation: broadcasts_pkey alone
-- keeps tokens unique, and codes refers to no row here, so that the two tables may be divided by keys of their own.
-- Every fact of the answer is in the signed payload; the columns beside it are what the signature cannot cover, and the
-- organisation, which finds its suspension.
CREATE TABLE broadcasts (
    token           text  NOT NULL,
    payload         bytea NOT NULL,
    signature       bytea NOT NULL,
    revoked_at      timestamptz,
    organization_id text  NOT NULL,
    CONSTRAINT broadcasts_pkey PRIMARY KEY (token)
);

CREATE TABLE codes (
    organization_id         text        NOT NULL,
    xr_id                   text        NOT NULL,
    project_id              text        NOT NULL,
    campaign_id             text,
    issuer                  text        NOT NULL,
    issued_at               timestamptz NOT NULL,
    expires_at              timestamptz NOT NULL,
    broadcast_token         text        NOT NULL,
    audience_integration_id text,
    key_id                  text        NOT NULL,
    revoked_at              timestamptz,
    address                 bytea       NOT NULL,
    CONSTRAINT codes_pkey PRIMARY KEY (organization_id, xr_id),
    CONSTRAINT codes_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT codes_life_check CHECK (expires_at > issued_at)
);

CREATE INDEX codes_newest_first ON codes (organization_id, issued_at DESC, xr_id DESC);
-- Announces the expiry of Codes to webhook endpoints.
CREATE INDEX codes_by_expiry ON codes (organization_id, expires_at);
-- The beginning of the intent's address, as bytes: a text cannot hold every character that an address may. It is empty
-- if the intent has none.
CREATE INDEX codes_by_address ON codes (organization_id, address);

-- `push_began_at` is when Audience began to receive a key, `pushed_at` when every integration had it.
-- A signing key outlives everything that it signed, but its secret half is deleted when it retires. A public half is
-- trusted only if its sealed copy is the same, so write access to this table does not suffice to add a key.
CREATE TABLE signing_keys (
    key_id            text        NOT NULL,
    public_key        bytea       NOT NULL,
    sealed_seed       bytea,
    status            text        NOT NULL,
    created_at        timestamptz NOT NULL,
    activated_at      timestamptz,
    superseded_at     timestamptz,
    retired_at        timestamptz,
    sealed_public_key bytea       NOT NULL,
    push_began_at     timestamptz,
    pushed_at         timestamptz,
    CONSTRAINT signing_keys_pkey PRIMARY KEY (key_id),
    CONSTRAINT signing_keys_status_check CHECK (status IN ('next', 'active', 'retiring', 'retired')),
    CONSTRAINT signing_keys_seed_check CHECK ((sealed_seed IS NULL) = (status = 'retired'))
);

CREATE UNIQUE INDEX signing_keys_one_active ON signing_keys (status) WHERE status = 'active';

-- Tells the processes that wait for rows of a table, on the channel of its name, when the transaction commits.
CREATE FUNCTION notify_of_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_TABLE_NAME, '');
    RETURN NULL;
END
$$;

CREATE TRIGGER signing_keys_changed AFTER INSERT OR UPDATE OR DELETE ON signing_keys
    FOR EACH ROW EXECUTE FUNCTION notify_of_rows();

-- API keys. The secret is not stored. Its digest has a table of its own, because a request names no organisation.
CREATE TABLE api_keys (
    organization_id   text        NOT NULL,
    id                text        NOT NULL,
    project_id        text        NOT NULL,
    scopes            text[]      NOT NULL,
    created_at        timestamptz NOT NULL,
    expires_at        timestamptz NOT NULL,
    last_used_at      timestamptz,
    secret_rotated_at timestamptz,
    revoked_at        timestamptz,
    name              text,
    CONSTRAINT api_keys_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT api_keys_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT api_keys_scopes_check CHECK (
        cardinality(scopes) > 0
        AND scopes <@ ARRAY['audience:read', 'audience:write', 'codes:read', 'codes:write']
    ),
    CONSTRAINT api_keys_life_check CHECK (expires_at > created_at)
);

CREATE INDEX api_keys_newest_first ON api_keys (organization_id, created_at DESC, id DESC);

CREATE TABLE api_key_digests (
    digest          bytea NOT NULL,
    organization_id text  NOT NULL,
    api_key_id      text  NOT NULL,
    CONSTRAINT api_key_digests_pkey PRIMARY KEY (digest),
    CONSTRAINT api_key_digests_one_for_a_key UNIQUE (organization_id, api_key_id),
    CONSTRAINT api_key_digests_key_fkey FOREIGN KEY (organization_id, api_key_id)
        REFERENCES api_keys (organization_id, id) ON DELETE CASCADE
);

-- The secret is stored, sealed, only until its mail is delivered. Its digest finds the invitation when it is accepted.
CREATE TABLE invitations (
    organization_id   text        NOT NULL,
    id                text        NOT NULL,
    email             text        NOT NULL,
    role              text        NOT NULL,
    created_at        timestamptz NOT NULL,
    expires_at        timestamptz NOT NULL,
    accepted_at       timestamptz,
    revoked_at        timestamptz,
    delivery_status   text        NOT NULL,
    delivery_attempts integer     NOT NULL DEFAULT 0,
    delivery_due_at   timestamptz,
    sealed_secret     bytea,
    CONSTRAINT invitations_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT invitations_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT invitations_role_check CHECK (role IN ('admin', 'member', 'billing')),
    CONSTRAINT invitations_life_check CHECK (expires_at > created_at),
    CONSTRAINT invitations_end_check CHECK (accepted_at IS NULL OR revoked_at IS NULL),
    CONSTRAINT invitations_delivery_check
        CHECK (delivery_status IN ('pending', 'processing', 'sent', 'cancelled', 'dead', 'unavailable')),
    CONSTRAINT invitations_attempts_check CHECK (delivery_attempts BETWEEN 0 AND 5),
    CONSTRAINT invitations_secret_check
        CHECK ((sealed_secret IS NOT NULL) = (delivery_status IN ('pending', 'processing'))),
    CONSTRAINT invitations_due_check CHECK ((delivery_due_at IS NOT NULL) = (sealed_secret IS NOT NULL))
);

CREATE INDEX invitations_newest_first ON invitations (organization_id, created_at DESC, id DESC);

CREATE TABLE invitation_digests (
    digest          bytea NOT NULL,
    organization_id text  NOT NULL,
    invitation_id   text  NOT NULL,
    CONSTRAINT invitation_digests_pkey PRIMARY KEY (digest),
    CONSTRAINT invitation_digests_one_for_an_invitation UNIQUE (organization_id, invitation_id),
    CONSTRAINT invitation_digests_invitation_fkey FOREIGN KEY (organization_id, invitation_id)
        REFERENCES invitations (organization_id, id) ON DELETE CASCADE
);

-- `metadata` is canonical JSON as text, because the seal covers its bytes.
CREATE TABLE audit_entries (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    project_id      text,
    action          text        NOT NULL,
    actor_type      text        NOT NULL,
    actor_id        text        NOT NULL,
    outcome         text        NOT NULL,
    metadata        text        NOT NULL,
    created_at      timestamptz NOT NULL,
    finalised_at    timestamptz,
    CONSTRAINT audit_entries_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT audit_entries_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT audit_entries_actor_check CHECK (actor_type IN ('user', 'api_key', 'system', 'platform')),
    CONSTRAINT audit_entries_outcome_check CHECK (outcome IN ('requested', 'completed', 'failed')),
    CONSTRAINT audit_entries_finalised_check CHECK ((finalised_at IS NULL) = (outcome = 'requested'))
);

CREATE INDEX audit_entries_newest_first ON audit_entries (organization_id, created_at DESC, id DESC);

-- Entries that are not in their organisation's chain yet. Sealers read it for every tenant, so it holds ids only.
CREATE TABLE audit_unsealed (
    organization_id text        NOT NULL,
    entry_id        text        NOT NULL,
    stage           text        NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT audit_unsealed_pkey PRIMARY KEY (organization_id, created_at, entry_id, stage),
    CONSTRAINT audit_unsealed_entry_fkey FOREIGN KEY (organization_id, entry_id)
        REFERENCES audit_entries (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT audit_unsealed_stage_check CHECK (stage IN ('requested', 'final'))
);

-- The chain of each organisation. An entry is sealed when it is written, and again when it gets its outcome. With its
-- final seal it also gets its place in the chain that everybody can check, who has the entries.
CREATE TABLE audit_seals (
    organization_id text   NOT NULL,
    position        bigint NOT NULL,
    entry_id        text   NOT NULL,
    stage           text   NOT NULL,
    seal            bytea  NOT NULL,
    chain_position  bigint,
    chain_hash      bytea,
    CONSTRAINT audit_seals_pkey PRIMARY KEY (organization_id, position),
    CONSTRAINT audit_seals_once UNIQUE (organization_id, entry_id, stage),
    CONSTRAINT audit_seals_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT audit_seals_position_check CHECK (position > 0),
    CONSTRAINT audit_seals_stage_check CHECK (stage IN ('requested', 'final')),
    CONSTRAINT audit_seals_chain_check CHECK ((chain_position IS NULL) = (chain_hash IS NULL))
);

CREATE TABLE audit_heads (
    organization_id text   NOT NULL,
    position        bigint NOT NULL,
    entry_id        text,
    seal            bytea  NOT NULL,
    chain_position  bigint NOT NULL,
    chain_hash      bytea  NOT NULL,
    CONSTRAINT audit_heads_pkey PRIMARY KEY (organization_id),
    CONSTRAINT audit_heads_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT audit_heads_entry_check CHECK ((entry_id IS NULL) = (position = 0))
);

-- Organisations whose chain has grown since its head was last entered into the transparency log. A job reads it for every
-- tenant, so it holds ids only.
CREATE TABLE audit_unlogged (
    organization_id text NOT NULL,
    CONSTRAINT audit_unlogged_pkey PRIMARY KEY (organization_id),
    CONSTRAINT audit_unlogged_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

-- The heads that were entered, from the newest one that is published on. `digest` is the commitment in the log.
CREATE TABLE audit_logged_heads (
    organization_id text        NOT NULL,
    entries         bigint      NOT NULL,
    chain_hash      bytea       NOT NULL,
    digest          bytea       NOT NULL,
    logged_at       timestamptz NOT NULL,
    CONSTRAINT audit_logged_heads_pkey PRIMARY KEY (organization_id, entries),
    CONSTRAINT audit_logged_heads_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

-- Settings of the operator, which belong to no tenant.
CREATE TABLE platform_secrets (
    name       text        NOT NULL,
    sealed     bytea       NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT platform_secrets_pkey PRIMARY KEY (name)
);

CREATE TABLE platform_configuration (
    name       text        NOT NULL,
    value      text        NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT platform_configuration_pkey PRIMARY KEY (name)
);

-- What the worker last found in the release evidence.
CREATE TABLE release_readiness (
    is_only     boolean     NOT NULL DEFAULT true,
    computed_at timestamptz NOT NULL,
    evidence    text,
    finding     text,
    CONSTRAINT release_readiness_pkey PRIMARY KEY (is_only),
    CONSTRAINT release_readiness_only_check CHECK (is_only),
    CONSTRAINT release_readiness_found_check CHECK ((evidence IS NULL) <> (finding IS NULL)),
    CONSTRAINT release_readiness_finding_check CHECK (finding IN (
        'not_configured', 'missing', 'not_a_file', 'unreadable', 'changing', 'too_large', 'malformed', 'asymmetric'
    ))
);

-- Secrets that Core made at its first start, such as the key of the audit chain.
CREATE TABLE instance_secrets (
    name       text        NOT NULL,
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT instance_secrets_pkey PRIMARY KEY (name)
);

-- Plans of subscriptions. Every new organisation has the plan Codes Starter.
CREATE TABLE plans (
    id                  text    NOT NULL,
    name                text    NOT NULL,
    product             text    NOT NULL,
    monthly_code_quota  bigint,
    monthly_event_quota bigint,
    active              boolean NOT NULL,
    updated_at          timestamptz NOT NULL,
    CONSTRAINT plans_pkey PRIMARY KEY (id),
    CONSTRAINT plans_product_check CHECK (product IN ('codes', 'audience')),
    CONSTRAINT plans_quota_check CHECK (
        (product = 'codes') = (monthly_code_quota IS NOT NULL)
        AND (product = 'audience') = (monthly_event_quota IS NOT NULL)
    ),
    CONSTRAINT plans_code_quota_check CHECK (monthly_code_quota >= 0),
    CONSTRAINT plans_event_quota_check CHECK (monthly_event_quota >= 0)
);

INSERT INTO plans (id, name, product, monthly_code_quota, monthly_event_quota, active, updated_at)
VALUES ('plan_codes_starter', 'Codes Starter', 'codes', 100, NULL, true, '2026-11-23T00:00:00Z'),
       ('plan_audience_contract', 'Audience Contract', 'audience', NULL, 5000, true, '2026-11-23T00:00:00Z');

-- The Codes plan of each organisation. Issuing locks this row, so that issuances of one organisation form one queue.
-- An operator may set a floor in place of the Starter plan's quota, until `floor_ends_at` or without an end.
CREATE TABLE code_entitlements (
    organization_id     text NOT NULL,
    plan_id             text NOT NULL,
    floor_monthly_quota bigint,
    floor_ends_at       timestamptz,
    CONSTRAINT code_entitlements_pkey PRIMARY KEY (organization_id),
    CONSTRAINT code_entitlements_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT code_entitlements_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id),
    CONSTRAINT code_entitlements_floor_check CHECK (floor_monthly_quota >= 0),
    CONSTRAINT code_entitlements_floor_end_check CHECK (floor_ends_at IS NULL OR floor_monthly_quota IS NOT NULL)
);

-- The number of Codes issued on each UTC day, in whatever state they are now.
CREATE TABLE code_usage_days (
    organization_id text   NOT NULL,
    day             date   NOT NULL,
    issued_count    bigint NOT NULL,
    CONSTRAINT code_usage_days_pkey PRIMARY KEY (organization_id, day),
    CONSTRAINT code_usage_days_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT code_usage_days_count_check CHECK (issued_count > 0)
);

-- A campaign with an `archived_at` is archived, for good.
CREATE TABLE campaigns (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    project_id      text        NOT NULL,
    name            text        NOT NULL,
    starts_at       timestamptz,
    ends_at         timestamptz,
    created_at      timestamptz NOT NULL,
    archived_at     timestamptz,
    CONSTRAINT campaigns_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT campaigns_in_project_key UNIQUE (organization_id, project_id, id),
    CONSTRAINT campaigns_name_key UNIQUE (organization_id, project_id, name),
    CONSTRAINT campaigns_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT campaigns_schedule_check CHECK (starts_at < ends_at)
);

CREATE INDEX campaigns_newest_first ON campaigns (organization_id, project_id, created_at DESC, id DESC);

ALTER TABLE codes ADD CONSTRAINT codes_campaign_fkey FOREIGN KEY (organization_id, project_id, campaign_id)
    REFERENCES campaigns (organization_id, project_id, id);

CREATE INDEX codes_of_project ON codes (organization_id, project_id, issued_at DESC, xr_id DESC);
CREATE INDEX codes_of_campaign ON codes (organization_id, campaign_id, issued_at DESC, xr_id DESC)
    WHERE campaign_id IS NOT NULL;

-- Half of each page stays free for the new versions of revoked rows: stopping a campaign of 100,000 Codes then neither
-- moves a row to another page nor touches an index, and takes a quarter of the time.
ALTER TABLE codes SET (fillfactor = 45);
ALTER TABLE broadcasts SET (fillfactor = 45);

-- The responses to issuances and checkouts with an idempotency key, for a day. Of the key and the request it holds only
-- digests. A checkout belongs to no project.
CREATE TABLE issuance_receipts (
    organization_id text        NOT NULL,
    key_digest      bytea       NOT NULL,
    project_id      text,
    route           text        NOT NULL,
    request_digest  bytea       NOT NULL,
    answer          bytea       NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT issuance_receipts_pkey PRIMARY KEY (organization_id, key_digest),
    CONSTRAINT issuance_receipts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT issuance_receipts_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT issuance_receipts_project_check CHECK ((project_id IS NULL) = (route = 'checkout')),
    CONSTRAINT issuance_receipts_route_check CHECK (route IN ('single', 'batch', 'checkout'))
);

CREATE INDEX issuance_receipts_oldest_first ON issuance_receipts (created_at);

-- Whatever a statement says, it sees the rows of one tenant: the one that `Database` set for its transaction. A person
-- also sees their own memberships, to choose an organisation. No policy has a subquery: each one compares a column of
-- its own table with a setting. Forced, because the application's role owns the tables.
CREATE FUNCTION current_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT current_setting('soundmark.tenant', true) $$;

CREATE FUNCTION current_subject() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT current_setting('soundmark.subject', true) $$;

ALTER TABLE organizations ENABLE ROW LEVEL SECURITY;
ALTER TABLE organizations FORCE ROW LEVEL SECURITY;
CREATE POLICY organizations_of_tenant ON organizations USING (id = current_tenant());

ALTER TABLE members ENABLE ROW LEVEL SECURITY;
ALTER TABLE members FORCE ROW LEVEL SECURITY;
CREATE POLICY members_of_tenant ON members USING (organization_id = current_tenant());
CREATE POLICY members_of_subject ON members FOR SELECT USING (subject_id = current_subject());

ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE projects FORCE ROW LEVEL SECURITY;
CREATE POLICY projects_of_tenant ON projects USING (organization_id = current_tenant());

ALTER TABLE codes ENABLE ROW LEVEL SECURITY;
ALTER TABLE codes FORCE ROW LEVEL SECURITY;
CREATE POLICY codes_of_tenant ON codes USING (organization_id = current_tenant());
-- A signing key may not retire while a Code of any tenant needs it.
CREATE POLICY codes_of_everybody ON codes FOR SELECT USING (current_tenant() = '*');

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY api_keys_of_tenant ON api_keys USING (organization_id = current_tenant());

-- Every request with an API key needs the key, so this takes one round trip. The digest finds the organisation, and
-- the key is then read as a row of that tenant. The tenant stays set until the transaction ends, so a call of this
-- function has a transaction of its own.
CREATE FUNCTION api_key_of_credential(credential bytea) RETURNS SETOF api_keys LANGUAGE plpgsql AS $$
DECLARE
    opened api_key_digests;
BEGIN
    SELECT d.* INTO opened FROM api_key_digests d WHERE d.digest = credential;
    IF FOUND THEN
        EXECUTE format('SET LOCAL soundmark.tenant TO %L', opened.organization_id);
        RETURN QUERY
            SELECT k.*
              FROM api_keys k
             WHERE k.organization_id = opened.organization_id
               AND k.id = opened.api_key_id;
    END IF;
END
$$;

ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations FORCE ROW LEVEL SECURITY;
CREATE POLICY invitations_of_tenant ON invitations USING (organization_id = current_tenant());
-- An operator reseals the waiting invitations of every tenant under a new master key.
CREATE POLICY invitations_of_everybody ON invitations FOR SELECT USING (current_tenant() = '*');
CREATE POLICY invitations_resealed ON invitations FOR UPDATE USING (current_tenant() = '*');

ALTER TABLE audit_entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_entries FORCE ROW LEVEL SECURITY;
CREATE POLICY audit_entries_of_tenant ON audit_entries USING (organization_id = current_tenant());

ALTER TABLE audit_seals ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_seals FORCE ROW LEVEL SECURITY;
CREATE POLICY audit_seals_of_tenant ON audit_seals USING (organization_id = current_tenant());

ALTER TABLE audit_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY audit_heads_of_tenant ON audit_heads USING (organization_id = current_tenant());

ALTER TABLE audit_logged_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_logged_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY audit_logged_heads_of_tenant ON audit_logged_heads USING (organization_id = current_tenant());

-- Every request of a person needs their role, so this takes one round trip. As in api_key_of_credential, the tenant
-- stays set until the transaction ends.
CREATE FUNCTION role_of_member(organization text, subject text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SET LOCAL soundmark.tenant TO %L', organization);
    RETURN QUERY SELECT m.role FROM members m WHERE m.organization_id = organization AND m.subject_id = subject;
END
$$;

-- The organisations that a person belongs to. Their memberships are found by the person alone; each organisation is
-- then read as a row of its own tenant.
CREATE FUNCTION organizations_of_member(subject text)
    RETURNS TABLE (id text, name text, role text, created_at timestamptz, deletion_requested_at timestamptz,
                   suspended_at timestamptz)
    LANGUAGE plpgsql AS $$
DECLARE
    membership record;
BEGIN
    EXECUTE format('SET LOCAL soundmark.subject TO %L', subject);
    FOR membership IN SELECT m.organization_id, m.role FROM members m WHERE m.subject_id = subject LOOP
        EXECUTE format('SET LOCAL soundmark.tenant TO %L', membership.organization_id);
        RETURN QUERY
            SELECT o.id, o.name, membership.role, o.created_at, o.deletion_requested_at, o.suspended_at
              FROM organizations o
             WHERE o.id = membership.organization_id;
    END LOOP;
END
$$;

ALTER TABLE code_entitlements ENABLE ROW LEVEL SECURITY;
ALTER TABLE code_entitlements FORCE ROW LEVEL SECURITY;
CREATE POLICY code_entitlements_of_tenant ON code_entitlements USING (organization_id = current_tenant());

ALTER TABLE code_usage_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE code_usage_days FORCE ROW LEVEL SECURITY;
CREATE POLICY code_usage_days_of_tenant ON code_usage_days USING (organization_id = current_tenant());

ALTER TABLE campaigns ENABLE ROW LEVEL SECURITY;
ALTER TABLE campaigns FORCE ROW LEVEL SECURITY;
CREATE POLICY campaigns_of_tenant ON campaigns USING (organization_id = current_tenant());

ALTER TABLE issuance_receipts ENABLE ROW LEVEL SECURITY;
ALTER TABLE issuance_receipts FORCE ROW LEVEL SECURITY;
CREATE POLICY issuance_receipts_of_tenant ON issuance_receipts USING (organization_id = current_tenant());
-- A job deletes the old receipts of every tenant.
CREATE POLICY issuance_receipts_of_everybody ON issuance_receipts USING (current_tenant() = '*');

-- What an organisation may measure beyond a demo. Audience has a copy; `revision` tells which of two is newer.
CREATE TABLE audience_entitlements (
    organization_id     text        NOT NULL,
    mode                text        NOT NULL,
    monthly_event_quota bigint      NOT NULL,
    ends_at             timestamptz,
    revision            bigint      NOT NULL,
    updated_at          timestamptz NOT NULL,
    CONSTRAINT audience_entitlements_pkey PRIMARY KEY (organization_id, mode),
    CONSTRAINT audience_entitlements_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT audience_entitlements_mode_check CHECK (mode IN ('contract', 'self_service')),
    CONSTRAINT audience_entitlements_quota_check CHECK (monthly_event_quota >= 0),
    CONSTRAINT audience_entitlements_revision_check CHECK (revision > 0)
);

ALTER TABLE audience_entitlements ENABLE ROW LEVEL SECURITY;
ALTER TABLE audience_entitlements FORCE ROW LEVEL SECURITY;
CREATE POLICY audience_entitlements_of_tenant ON audience_entitlements USING (organization_id = current_tenant());

-- A job settles the entries of every tenant that a crash left without an outcome.
CREATE INDEX audit_entries_requested ON audit_entries (created_at, id) WHERE outcome = 'requested';
CREATE POLICY audit_entries_of_everybody ON audit_entries FOR SELECT USING (current_tenant() = '*');

-- True in the sessions of a backup, which set `soundmark.backup` and only read; never in a request or a job.
CREATE FUNCTION is_backup() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT current_setting('soundmark.backup', true) = 'on' $$;

CREATE POLICY organizations_of_backup ON organizations FOR SELECT USING (is_backup());
CREATE POLICY members_of_backup ON members FOR SELECT USING (is_backup());
CREATE POLICY projects_of_backup ON projects FOR SELECT USING (is_backup());
CREATE POLICY codes_of_backup ON codes FOR SELECT USING (is_backup());
CREATE POLICY api_keys_of_backup ON api_keys FOR SELECT USING (is_backup());
CREATE POLICY invitations_of_backup ON invitations FOR SELECT USING (is_backup());
CREATE POLICY audit_entries_of_backup ON audit_entries FOR SELECT USING (is_backup());
CREATE POLICY audit_seals_of_backup ON audit_seals FOR SELECT USING (is_backup());
CREATE POLICY audit_heads_of_backup ON audit_heads FOR SELECT USING (is_backup());
CREATE POLICY audit_logged_heads_of_backup ON audit_logged_heads FOR SELECT USING (is_backup());
CREATE POLICY code_entitlements_of_backup ON code_entitlements FOR SELECT USING (is_backup());
CREATE POLICY code_usage_days_of_backup ON code_usage_days FOR SELECT USING (is_backup());
CREATE POLICY campaigns_of_backup ON campaigns FOR SELECT USING (is_backup());
CREATE POLICY issuance_receipts_of_backup ON issuance_receipts FOR SELECT USING (is_backup());
CREATE POLICY audience_entitlements_of_backup ON audience_entitlements FOR SELECT USING (is_backup());

-- The number of mails of a UTC day, of an organisation or to an address, under a keyed digest of it: rows outlive the
-- organisation, and disclose no address.
CREATE TABLE mail_counts (
    day         date    NOT NULL,
    counted     bytea   NOT NULL,
    mails_count integer NOT NULL,
    CONSTRAINT mail_counts_pkey PRIMARY KEY (day, counted),
    CONSTRAINT mail_counts_count_check CHECK (mails_count >= 0)
);

-- Closures that are under way. A row is inserted with the marker `deletion_requested_at`, counts what was deleted so far,
-- and goes in the transaction that completes the deletion. `operation_id` is the audit entry of the request, and names
-- the purge to Audience. `worked_at` is when somebody last worked on it.
CREATE TABLE closures (
    organization_id         text        NOT NULL,
    subject_id              text        NOT NULL,
    project_id              text,
    certificate_id          text        NOT NULL,
    operation_id            text        NOT NULL,
    phase                   text        NOT NULL,
    requested_at            timestamptz NOT NULL,
    worked_at               timestamptz NOT NULL,
    deleted_codes           bigint      NOT NULL DEFAULT 0,
    deleted_audit_entries   bigint      NOT NULL DEFAULT 0,
    deleted_certificates    bigint      NOT NULL DEFAULT 0,
    purged_integrations     bigint      NOT NULL DEFAULT 0,
    purged_events           bigint      NOT NULL DEFAULT 0,
    purged_integrity_days   bigint      NOT NULL DEFAULT 0,
    purged_legacy_days      bigint      NOT NULL DEFAULT 0,
    purged_spent_proofs     bigint      NOT NULL DEFAULT 0,
    CONSTRAINT closures_pkey PRIMARY KEY (organization_id, subject_id),
    CONSTRAINT closures_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT closures_subject_check CHECK (subject_id = coalesce(project_id, organization_id)),
    CONSTRAINT closures_phase_check CHECK (phase IN ('requested', 'purged', 'deleting'))
);

ALTER TABLE closures ENABLE ROW LEVEL SECURITY;
ALTER TABLE closures FORCE ROW LEVEL SECURITY;
CREATE POLICY closures_of_tenant ON closures USING (organization_id = current_tenant());
-- A job resumes the closures of every tenant.
CREATE POLICY closures_of_everybody ON closures FOR SELECT USING (current_tenant() = '*');
CREATE POLICY closures_of_backup ON closures FOR SELECT USING (is_backup());

-- Signed certificates of what was measured of a Code, which may be deleted before them. The other table finds the
-- organisation of a certificate: everybody who knows an id may read its certificate.
CREATE TABLE decode_certificates (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    project_id      text        NOT NULL,
    xr_id           text        NOT NULL,
    issued_at       timestamptz NOT NULL,
    document        bytea       NOT NULL,
    CONSTRAINT decode_certificates_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT decode_certificates_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE
);

-- Limits how many an organisation issues in an hour.
CREATE INDEX decode_certificates_newest_first ON decode_certificates (organization_id, issued_at DESC);
-- Finds those of a project that is being deleted.
CREATE INDEX decode_certificates_of_project ON decode_certificates (organization_id, project_id);

CREATE TABLE decode_certificate_owners (
    certificate_id  text NOT NULL,
    organization_id text NOT NULL,
    CONSTRAINT decode_certificate_owners_pkey PRIMARY KEY (certificate_id),
    CONSTRAINT decode_certificate_owners_one_for_a_certificate UNIQUE (organization_id, certificate_id),
    CONSTRAINT decode_certificate_owners_certificate_fkey FOREIGN KEY (organization_id, certificate_id)
        REFERENCES decode_certificates (organization_id, id) ON DELETE CASCADE
);

ALTER TABLE decode_certificates ENABLE ROW LEVEL SECURITY;
ALTER TABLE decode_certificates FORCE ROW LEVEL SECURITY;
CREATE POLICY decode_certificates_of_tenant ON decode_certificates USING (organization_id = current_tenant());
CREATE POLICY decode_certificates_of_backup ON decode_certificates FOR SELECT USING (is_backup());

-- Records of offline packs, whose documents are not kept. A pack may outlive the Codes in it.
CREATE TABLE offline_packs (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    project_id      text        NOT NULL,
    campaign_id     text,
    issued_at       timestamptz NOT NULL,
    valid_until     timestamptz NOT NULL,
    CONSTRAINT offline_packs_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT offline_packs_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT offline_packs_life_check CHECK (valid_until > issued_at)
);

-- Limits how many an organisation makes in an hour.
CREATE INDEX offline_packs_newest_first ON offline_packs (organization_id, issued_at DESC);
-- Finds those that receivers may still answer from.
CREATE INDEX offline_packs_by_end ON offline_packs (organization_id, valid_until);
-- Finds those of a project that is being deleted.
CREATE INDEX offline_packs_of_project ON offline_packs (organization_id, project_id);

ALTER TABLE offline_packs ENABLE ROW LEVEL SECURITY;
ALTER TABLE offline_packs FORCE ROW LEVEL SECURITY;
CREATE POLICY offline_packs_of_tenant ON offline_packs USING (organization_id = current_tenant());
CREATE POLICY offline_packs_of_backup ON offline_packs FOR SELECT USING (is_backup());

-- Signed certificates of deletions, kept for ever. Anybody who knows an id may read its certificate, so there is no tenant here.
CREATE TABLE deletion_certificates (
    id           text        NOT NULL,
    document     bytea       NOT NULL,
    completed_at timestamptz NOT NULL,
    CONSTRAINT deletion_certificates_pkey PRIMARY KEY (id)
);

-- The payment providers, and whether their offers are for sale. They belong to no tenant.
CREATE TABLE payment_providers (
    name       text        NOT NULL,
    enabled    boolean     NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT payment_providers_pkey PRIMARY KEY (name),
    CONSTRAINT payment_providers_name_check CHECK (name IN ('card', 'local'))
);

INSERT INTO payment_providers (name, enabled, updated_at)
VALUES ('card', false, '2026-11-23T00:00:00Z'),
       ('local', false, '2026-11-23T00:00:00Z');

-- What is for sale. Country, currency, amount and months of an offer of the local provider are fixed by the operator.
-- Currency, amount and interval of a card offer are what the provider says of its price, for display only. The status
-- of that price says whether the provider has it.
CREATE TABLE offers (
    id                 text        NOT NULL,
    plan_id            text        NOT NULL,
    provider           text        NOT NULL,
    active             boolean     NOT NULL,
    price_reference    text,
    country            text,
    currency           text,
    amount_minor       bigint,
    price_interval     text,
    entitlement_months integer,
    price_read_at      timestamptz,
    updated_at         timestamptz NOT NULL,
    price_status       text,
    CONSTRAINT offers_pkey PRIMARY KEY (id),
    CONSTRAINT offers_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id),
    CONSTRAINT offers_provider_fkey FOREIGN KEY (provider) REFERENCES payment_providers (name),
    CONSTRAINT offers_local_check CHECK (
        provider <> 'local'
        OR (num_nonnulls(price_reference, price_interval, price_read_at, price_status) = 0
            AND country = 'TN' AND currency = 'TND' AND amount_minor > 0 AND entitlement_months BETWEEN 1 AND 36
            AND num_nulls(country, currency, amount_minor, entitlement_months) = 0)
    ),
    CONSTRAINT offers_card_check CHECK (
        provider <> 'card'
        OR (num_nulls(price_reference, price_status) = 0 AND country IS NULL AND entitlement_months IS NULL)
    ),
    CONSTRAINT offers_interval_check CHECK (price_interval IN ('month', 'year')),
    CONSTRAINT offers_status_check CHECK (price_status IN ('known', 'unknown', 'missing'))
);

CREATE INDEX offers_of_price ON offers (price_reference) WHERE price_reference IS NOT NULL;

-- Finds the organisation of a provider's notification, which names none, and keeps references unique among all
-- organisations. It holds digests only. `subject_id` is the id of a checkout, a subscription or the organisation.
CREATE TABLE billing_references (
    kind            text  NOT NULL,
    digest          bytea NOT NULL,
    organization_id text  NOT NULL,
    subject_id      text  NOT NULL,
    CONSTRAINT billing_references_pkey PRIMARY KEY (kind, digest),
    CONSTRAINT billing_references_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT billing_references_kind_check CHECK (
        kind IN ('card_customer', 'card_subscription', 'contract', 'local_payment', 'local_secret', 'thirdparty')
    )
);

CREATE INDEX billing_references_of_organization ON billing_references (organization_id);

-- Purchases. Offer, plan, price and amount are bound when the checkout is made. `attempts` counts the calls that ask the
-- provider for a page. A read of the provider's objects takes its number from `reads_begun` before it begins, and is
-- applied only if no later one was. `reread_at` is when a job asks the provider next, if no notification arrives.
-- `unpaid_at` is when the local provider was last asked about a payment that it then called unpaid.
CREATE TABLE checkouts (
    organization_id        text        NOT NULL,
    id                     text        NOT NULL,
    offer_id               text        NOT NULL,
    plan_id                text        NOT NULL,
    product                text        NOT NULL,
    provider               text        NOT NULL,
    status                 text        NOT NULL,
    price_reference        text,
    amount_minor           bigint,
    currency               text,
    entitlement_months     integer,
    key_digest             bytea,
    request_digest         bytea,
    attempts               integer     NOT NULL DEFAULT 0,
    provider_reference     text,
    subscription_reference text,
    reads_begun            bigint      NOT NULL DEFAULT 0,
    read_applied           bigint      NOT NULL DEFAULT 0,
    rereads                integer     NOT NULL DEFAULT 0,
    reread_at              timestamptz,
    created_at             timestamptz NOT NULL,
    expires_at             timestamptz NOT NULL,
    completed_at           timestamptz,
    unpaid_at              timestamptz,
    CONSTRAINT checkouts_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT checkouts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT checkouts_offer_fkey FOREIGN KEY (offer_id) REFERENCES offers (id),
    CONSTRAINT checkouts_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id),
    CONSTRAINT checkouts_product_check CHECK (product IN ('codes', 'audience')),
    CONSTRAINT checkouts_status_check CHECK (status IN ('pending', 'completed', 'failed', 'expired')),
    CONSTRAINT checkouts_completed_check CHECK ((completed_at IS NOT NULL) = (status = 'completed')),
    CONSTRAINT checkouts_provider_check CHECK (
        (provider = 'card' AND price_reference IS NOT NULL AND entitlement_months IS NULL)
        OR (provider = 'local' AND price_reference IS NULL
            AND num_nulls(amount_minor, currency, entitlement_months) = 0)
    ),
    CONSTRAINT checkouts_key_check CHECK ((key_digest IS NULL) = (request_digest IS NULL)),
    CONSTRAINT checkouts_life_check CHECK (expires_at > created_at)
);

CREATE INDEX checkouts_of_key ON checkouts (organization_id, key_digest) WHERE key_digest IS NOT NULL;
CREATE INDEX checkouts_pending ON checkouts (expires_at) WHERE status = 'pending';
CREATE INDEX checkouts_to_reread ON checkouts (reread_at) WHERE reread_at IS NOT NULL;

-- The ledger of the providers' notifications, one row for each event. It stays pending until the event is reconciled.
-- Nothing of the payer is in it. The organisation is unknown until an event is understood.
CREATE TABLE payment_receipts (
    provider        text        NOT NULL,
    event_id        text        NOT NULL,
    event_type      text        NOT NULL,
    body_digest     bytea       NOT NULL,
    organization_id text,
    checkout_id     text,
    status          text        NOT NULL,
    amount_minor    bigint,
    currency        text,
    rereads         integer     NOT NULL DEFAULT 0,
    reread_at       timestamptz,
    received_at     timestamptz NOT NULL,
    processed_at    timestamptz,
    CONSTRAINT payment_receipts_pkey PRIMARY KEY (provider, event_id),
    CONSTRAINT payment_receipts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT payment_receipts_provider_check CHECK (provider IN ('card', 'local')),
    CONSTRAINT payment_receipts_status_check CHECK (status IN ('pending', 'processed', 'ignored')),
    CONSTRAINT payment_receipts_processed_check CHECK ((processed_at IS NULL) = (status = 'pending'))
);

CREATE INDEX payment_receipts_of_organization ON payment_receipts (organization_id) WHERE organization_id IS NOT NULL;
CREATE INDEX payment_receipts_to_reread ON payment_receipts (reread_at) WHERE reread_at IS NOT NULL;
CREATE INDEX payment_receipts_to_forget ON payment_receipts (received_at)
    WHERE status = 'ignored' OR organization_id IS NULL;

-- The calls that verified payments with the local provider, in each minute: its limit is counted for all processes
-- together. The notifications of anybody, and the jobs that heal what was lost, each have a share of the limit.
CREATE TABLE local_verifications (
    minute             timestamptz NOT NULL,
    verification_count integer     NOT NULL,
    share              text        NOT NULL,
    CONSTRAINT local_verifications_pkey PRIMARY KEY (minute, share),
    CONSTRAINT local_verifications_share_check CHECK (share IN ('public', 'jobs'))
);

-- Until when the provider's list of events was read, for those of which no notification arrived.
CREATE TABLE payment_event_polls (
    provider     text        NOT NULL,
    polled_until timestamptz NOT NULL,
    CONSTRAINT payment_event_polls_pkey PRIMARY KEY (provider),
    CONSTRAINT payment_event_polls_provider_check CHECK (provider = 'card')
);

-- What an organisation has bought or been granted. `monthly_quota` is an operator's, in place of the plan's.
-- `audience_mode` is the mode of integrations that it enables. `checkout_id` is the checkout that began it.
-- `last_event_at` is the time of the newest card event that it went by. `paid_through` is what entitles. The provider made
-- the newest paid invoice at `paid_invoice_at`, for a period until `paid_period_end`. `is_price_known` is false while a
-- card subscription has a price that we do not sell.
CREATE TABLE subscriptions (
    organization_id      text        NOT NULL,
    id                   text        NOT NULL,
    plan_id              text        NOT NULL,
    product              text        NOT NULL,
    audience_mode        text,
    provider             text        NOT NULL,
    status               text        NOT NULL,
    current_period_end   timestamptz,
    cancel_at_period_end boolean     NOT NULL,
    monthly_quota        bigint,
    checkout_id          text,
    provider_reference   text,
    contract_reference   text,
    last_event_at        timestamptz,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    paid_through         timestamptz,
    paid_period_end      timestamptz,
    paid_invoice_at      timestamptz,
    is_price_known       boolean     NOT NULL DEFAULT true,
    CONSTRAINT subscriptions_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT subscriptions_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT subscriptions_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id),
    CONSTRAINT subscriptions_product_check CHECK (product IN ('codes', 'audience')),
    CONSTRAINT subscriptions_mode_check CHECK (
        (audience_mode IS NULL) = (product = 'codes') AND audience_mode IN ('contract', 'self_service')
    ),
    CONSTRAINT subscriptions_provider_check CHECK (
        (provider = 'card' AND provider_reference IS NOT NULL AND contract_reference IS NULL)
        OR (provider = 'local' AND provider_reference IS NULL AND contract_reference IS NULL)
        OR (provider = 'contract' AND provider_reference IS NULL AND contract_reference IS NOT NULL)
    ),
    CONSTRAINT subscriptions_status_check
        CHECK (status IN ('trialing', 'active', 'past_due', 'cancelled', 'expired')),
    CONSTRAINT subscriptions_quota_check CHECK (monthly_quota >= 0),
    CONSTRAINT subscriptions_paid_check CHECK (
        provider = 'card'
        OR (is_price_known AND num_nonnulls(paid_period_end, paid_invoice_at) = 0)
    ),
    CONSTRAINT subscriptions_card_key UNIQUE (organization_id, provider_reference),
    CONSTRAINT subscriptions_contract_key UNIQUE (organization_id, contract_reference)
);

CREATE UNIQUE INDEX subscriptions_one_contract ON subscriptions (organization_id, audience_mode)
    WHERE provider = 'contract' AND status = 'active';
CREATE UNIQUE INDEX subscriptions_one_prepaid ON subscriptions (organization_id, plan_id)
    WHERE provider = 'local' AND status = 'active';
CREATE INDEX subscriptions_newest_first ON subscriptions (organization_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_by_end ON subscriptions (paid_through)
    WHERE status IN ('trialing', 'active', 'past_due');
CREATE INDEX subscriptions_of_plan ON subscriptions (plan_id) WHERE status IN ('trialing', 'active', 'past_due');

-- The card provider's customer of an organisation, for its portal. The reference is never shown.
CREATE TABLE card_customers (
    organization_id    text        NOT NULL,
    customer_reference text        NOT NULL,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT card_customers_pkey PRIMARY KEY (organization_id),
    CONSTRAINT card_customers_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

-- The third party in the accounting system that an organisation's invoices go to.
CREATE TABLE accounting_customers (
    organization_id text        NOT NULL,
    thirdparty_id   bigint      NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT accounting_customers_pkey PRIMARY KEY (organization_id),
    CONSTRAINT accounting_customers_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT accounting_customers_id_check CHECK (thirdparty_id BETWEEN 1 AND 2147483647)
);

-- Draft invoices to make, one for each verified payment. A row is `processing` while a worker is on it, until `due_at`.
-- `posted_invoice_id` is the accounting system's answer to the last post, `invoice_id` the invoice that proved to be it.
CREATE TABLE accounting_outbox (
    organization_id   text        NOT NULL,
    id                text        NOT NULL,
    subscription_id   text        NOT NULL,
    checkout_id       text        NOT NULL,
    payment_digest    bytea       NOT NULL,
    description       text        NOT NULL,
    amount_minor      bigint      NOT NULL,
    currency          text        NOT NULL,
    period_start      timestamptz NOT NULL,
    period_end        timestamptz NOT NULL,
    status            text        NOT NULL,
    attempts          integer     NOT NULL DEFAULT 0,
    due_at            timestamptz,
    give_up_at        timestamptz NOT NULL,
    invoice_id        bigint,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    posted_invoice_id bigint,
    CONSTRAINT accounting_outbox_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT accounting_outbox_payment_key UNIQUE (organization_id, payment_digest),
    CONSTRAINT accounting_outbox_subscription_fkey FOREIGN KEY (organization_id, subscription_id)
        REFERENCES subscriptions (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT accounting_outbox_amount_check CHECK (amount_minor > 0),
    CONSTRAINT accounting_outbox_status_check CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    CONSTRAINT accounting_outbox_due_check CHECK ((due_at IS NOT NULL) = (status IN ('pending', 'processing'))),
    CONSTRAINT accounting_outbox_invoice_check CHECK (
        (invoice_id IS NOT NULL) = (status = 'completed') AND invoice_id BETWEEN 1 AND 2147483647
    ),
    CONSTRAINT accounting_outbox_posted_check CHECK (posted_invoice_id BETWEEN 1 AND 2147483647)
);

CREATE INDEX accounting_outbox_of_subscription
    ON accounting_outbox (organization_id, subscription_id, created_at DESC, id DESC);

ALTER TABLE checkouts ENABLE ROW LEVEL SECURITY;
ALTER TABLE checkouts FORCE ROW LEVEL SECURITY;
CREATE POLICY checkouts_of_tenant ON checkouts USING (organization_id = current_tenant());
-- Jobs expire checkouts and subscriptions, ask providers again, and make invoices for every tenant.
CREATE POLICY checkouts_of_everybody ON checkouts FOR SELECT USING (current_tenant() = '*');
CREATE POLICY checkouts_of_backup ON checkouts FOR SELECT USING (is_backup());

ALTER TABLE subscriptions ENABLE ROW LEVEL SECURITY;
ALTER TABLE subscriptions FORCE ROW LEVEL SECURITY;
CREATE POLICY subscriptions_of_tenant ON subscriptions USING (organization_id = current_tenant());
CREATE POLICY subscriptions_of_everybody ON subscriptions FOR SELECT USING (current_tenant() = '*');
CREATE POLICY subscriptions_of_backup ON subscriptions FOR SELECT USING (is_backup());

ALTER TABLE card_customers ENABLE ROW LEVEL SECURITY;
ALTER TABLE card_customers FORCE ROW LEVEL SECURITY;
CREATE POLICY card_customers_of_tenant ON card_customers USING (organization_id = current_tenant());
CREATE POLICY card_customers_of_backup ON card_customers FOR SELECT USING (is_backup());

ALTER TABLE accounting_customers ENABLE ROW LEVEL SECURITY;
ALTER TABLE accounting_customers FORCE ROW LEVEL SECURITY;
CREATE POLICY accounting_customers_of_tenant ON accounting_customers USING (organization_id = current_tenant());
CREATE POLICY accounting_customers_of_everybody ON accounting_customers FOR SELECT USING (current_tenant() = '*');
CREATE POLICY accounting_customers_of_backup ON accounting_customers FOR SELECT USING (is_backup());

ALTER TABLE accounting_outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE accounting_outbox FORCE ROW LEVEL SECURITY;
CREATE POLICY accounting_outbox_of_tenant ON accounting_outbox USING (organization_id = current_tenant());
CREATE POLICY accounting_outbox_of_everybody ON accounting_outbox FOR SELECT USING (current_tenant() = '*');
CREATE POLICY accounting_outbox_of_backup ON accounting_outbox FOR SELECT USING (is_backup());

-- The catalogue names the organisations that it lists.
CREATE POLICY audience_entitlements_of_everybody ON audience_entitlements FOR SELECT USING (current_tenant() = '*');

CREATE POLICY organizations_of_everybody ON organizations FOR SELECT USING (current_tenant() = '*');

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
    traceparent     text,
    created_at      timestamptz NOT NULL,
    CONSTRAINT webhook_acts_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT webhook_acts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);

CREATE INDEX webhook_acts_oldest_first ON webhook_acts (organization_id, created_at, id);

CREATE TRIGGER webhook_acts_added AFTER INSERT ON webhook_acts FOR EACH ROW EXECUTE FUNCTION notify_of_rows();

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
    traceparent     text,
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
-- Of one event and endpoint, one delivery waits, whoever made it.
CREATE UNIQUE INDEX webhook_deliveries_pending
    ON webhook_deliveries (organization_id, endpoint_id, event_id) WHERE status = 'pending';

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

ALTER TABLE webhook_replay_counts ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_replay_counts FORCE ROW LEVEL SECURITY;
CREATE POLICY webhook_replay_counts_of_tenant ON webhook_replay_counts USING (organization_id = current_tenant());
CREATE POLICY webhook_replay_counts_of_backup ON webhook_replay_counts FOR SELECT USING (is_backup());

ALTER TABLE announced_expiries ENABLE ROW LEVEL SECURITY;
ALTER TABLE announced_expiries FORCE ROW LEVEL SECURITY;
CREATE POLICY announced_expiries_of_tenant ON announced_expiries USING (organization_id = current_tenant());
CREATE POLICY announced_expiries_of_backup ON announced_expiries FOR SELECT USING (is_backup());

ALTER TABLE quota_thresholds ENABLE ROW LEVEL SECURITY;
ALTER TABLE quota_thresholds FORCE ROW LEVEL SECURITY;
CREATE POLICY quota_thresholds_of_tenant ON quota_thresholds USING (organization_id = current_tenant());
CREATE POLICY quota_thresholds_of_backup ON quota_thresholds FOR SELECT USING (is_backup());

-- The message is kept, sealed, until the desk has the ticket. No attempt may post it before `post_after`.
CREATE TABLE tickets (
    organization_id   text        NOT NULL,
    id                text        NOT NULL,
    subject_id        text        NOT NULL,
    request_id        text        NOT NULL,
    subject           text        NOT NULL,
    status            text        NOT NULL,
    sealed_message    bytea,
    conversation_id   bigint,
    mailbox_id        bigint,
    desk_updated_at   timestamptz,
    attempts          integer     NOT NULL DEFAULT 0,
    post_after        timestamptz NOT NULL,
    created_at        timestamptz NOT NULL,
    CONSTRAINT tickets_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT tickets_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT tickets_request_key UNIQUE (organization_id, subject_id, request_id),
    CONSTRAINT tickets_status_check CHECK (status IN ('active', 'pending', 'closed')),
    CONSTRAINT tickets_conversation_check CHECK ((conversation_id IS NULL) = (mailbox_id IS NULL)),
    CONSTRAINT tickets_message_check CHECK ((sealed_message IS NULL) = (conversation_id IS NOT NULL))
);

CREATE INDEX tickets_newest_first ON tickets (organization_id, created_at DESC, id DESC);
CREATE INDEX tickets_by_id ON tickets (id);

-- A reply is kept and posted like the message of its ticket.
CREATE TABLE ticket_replies (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    ticket_id       text        NOT NULL,
    subject_id      text        NOT NULL,
    request_id      text        NOT NULL,
    sealed_message  bytea,
    thread_id       bigint,
    attempts        integer     NOT NULL DEFAULT 0,
    post_after      timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT ticket_replies_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT ticket_replies_ticket_fkey FOREIGN KEY (organization_id, ticket_id)
        REFERENCES tickets (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT ticket_replies_request_key UNIQUE (organization_id, ticket_id, subject_id, request_id),
    CONSTRAINT ticket_replies_message_check CHECK ((sealed_message IS NULL) = (thread_id IS NOT NULL))
);

-- By which the desk's webhooks, which name no organisation, find their ticket.
CREATE TABLE desk_conversations (
    conversation_id bigint NOT NULL,
    organization_id text   NOT NULL,
    ticket_id       text   NOT NULL,
    CONSTRAINT desk_conversations_pkey PRIMARY KEY (conversation_id),
    CONSTRAINT desk_conversations_ticket_fkey FOREIGN KEY (organization_id, ticket_id)
        REFERENCES tickets (organization_id, id) ON DELETE CASCADE
);

-- Finds the conversation of each ticket of an organisation that is being deleted.
CREATE INDEX desk_conversations_of_ticket ON desk_conversations (organization_id, ticket_id);

CREATE TABLE desk_deliveries (
    digest      bytea       NOT NULL,
    received_at timestamptz NOT NULL,
    CONSTRAINT desk_deliveries_pkey PRIMARY KEY (digest)
);

CREATE INDEX desk_deliveries_oldest_first ON desk_deliveries (received_at);

ALTER TABLE tickets ENABLE ROW LEVEL SECURITY;
ALTER TABLE tickets FORCE ROW LEVEL SECURITY;
CREATE POLICY tickets_of_tenant ON tickets USING (organization_id = current_tenant());
CREATE POLICY tickets_of_everybody ON tickets FOR SELECT USING (current_tenant() = '*');
CREATE POLICY tickets_resealed ON tickets FOR UPDATE USING (current_tenant() = '*');
CREATE POLICY tickets_of_backup ON tickets FOR SELECT USING (is_backup());

ALTER TABLE ticket_replies ENABLE ROW LEVEL SECURITY;
ALTER TABLE ticket_replies FORCE ROW LEVEL SECURITY;
CREATE POLICY ticket_replies_of_tenant ON ticket_replies USING (organization_id = current_tenant());
CREATE POLICY ticket_replies_of_everybody ON ticket_replies FOR SELECT USING (current_tenant() = '*');
CREATE POLICY ticket_replies_resealed ON ticket_replies FOR UPDATE USING (current_tenant() = '*');
CREATE POLICY ticket_replies_of_backup ON ticket_replies FOR SELECT USING (is_backup());

-- What people call an Audience integration, which is a row of Audience's database. Until Audience has answered,
-- `named_id` is the id of the audit intent with which the integration is created.
CREATE TABLE integration_names (
    organization_id text NOT NULL,
    named_id        text NOT NULL,
    project_id      text NOT NULL,
    name            text NOT NULL,
    CONSTRAINT integration_names_pkey PRIMARY KEY (organization_id, named_id),
    CONSTRAINT integration_names_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX integration_names_of_project ON integration_names (organization_id, project_id);

ALTER TABLE integration_names ENABLE ROW LEVEL SECURITY;
ALTER TABLE integration_names FORCE ROW LEVEL SECURITY;
CREATE POLICY integration_names_of_tenant ON integration_names USING (organization_id = current_tenant());
CREATE POLICY integration_names_of_backup ON integration_names FOR SELECT USING (is_backup());

-- The transparency log. No row refers to a tenant, so deleting one removes nothing here.
--
-- What is not in the tree yet, written by the transaction of what it states. One row has the commitments of all Codes
-- that were issued (64 bytes each) or revoked (32 bytes) together, or one whole entry of another kind. It has no check:
-- reading one would take PostgreSQL as long as inserting the row, and the worker drops what is no entry.
CREATE TABLE log_queue (
    id      bigint  GENERATED ALWAYS AS IDENTITY,
    kind    text    NOT NULL DEFAULT 'entry',
    count   integer NOT NULL DEFAULT 1,
    content bytea   NOT NULL,
    CONSTRAINT log_queue_pkey PRIMARY KEY (id)
);

-- Digests do not compress.
ALTER TABLE log_queue ALTER COLUMN content SET STORAGE EXTERNAL;

-- The commitment to a revoked Code, as core/domain/log/entry.py computes it: a stop revokes a hundred thousand, whose
-- records never leave the server. The signature's place is before the last 110 bytes of the payload. It is neither
-- STRICT nor made of functions that are only STABLE, such as convert_to: PostgreSQL would not inline it, which takes 10
-- µs each. `translate` for the three letters would take 4 µs more.
CREATE FUNCTION commit_revoked(payload bytea, signature bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN sha256(
        'soundmark/log/v1/code.revoked/code\000'::bytea
        || overlay(
            payload PLACING (
                ',"signature":"'
                || replace(replace(replace(rtrim(encode(signature, 'base64'), '='), '+', '-'), '/', '_'), E'\n', '')
                || '"'
            )::bytea FROM greatest(1, octet_length(payload) - 109) FOR 0
        )
    );

-- The leaves of the tree. `digest` is the entry's first commitment, which no other entry has, and `answer` the second.
CREATE TABLE log_leaves (
    position bigint NOT NULL,
    entry    bytea  NOT NULL,
    digest   bytea  NOT NULL,
    answer   bytea,
    CONSTRAINT log_leaves_pkey PRIMARY KEY (position),
    CONSTRAINT log_leaves_once UNIQUE (digest),
    CONSTRAINT log_leaves_answered_once UNIQUE (answer),
    CONSTRAINT log_leaves_position_check CHECK (position >= 0)
);

-- The hashes of the tree (C2SP, tlog-tiles); a tile that is not full grows in place. They do not compress.
CREATE TABLE log_tiles (
    level  integer NOT NULL,
    number bigint  NOT NULL,
    hashes bytea   NOT NULL,
    CONSTRAINT log_tiles_pkey PRIMARY KEY (level, number),
    CONSTRAINT log_tiles_hashes_check CHECK (octet_length(hashes) BETWEEN 32 AND 8192 AND octet_length(hashes) % 32 = 0)
);

ALTER TABLE log_tiles ALTER COLUMN hashes SET STORAGE EXTERNAL;

-- What the log signed: the newest published checkpoint, and those after it. It is stored before any witness sees it,
-- so that there are never two roots of one size. `asked_at` is when a worker began to ask the witnesses.
CREATE TABLE log_checkpoints (
    size         bigint      NOT NULL,
    root         bytea       NOT NULL,
    note         text        NOT NULL,
    cosignatures text        NOT NULL DEFAULT '',
    signed_at    timestamptz NOT NULL,
    asked_at     timestamptz,
    published_at timestamptz,
    CONSTRAINT log_checkpoints_pkey PRIMARY KEY (size),
    CONSTRAINT log_checkpoints_size_check CHECK (size >= 0)
);

-- The log's own keys, which sign checkpoints and nothing else. `id` is that of the key in a signed note.
CREATE TABLE log_keys (
    id          text        NOT NULL,
    public_key  bytea       NOT NULL,
    sealed_seed bytea,
    created_at  timestamptz NOT NULL,
    retired_at  timestamptz,
    CONSTRAINT log_keys_pkey PRIMARY KEY (id),
    CONSTRAINT log_keys_seed_check CHECK ((sealed_seed IS NULL) = (retired_at IS NOT NULL))
);

-- `size` is that of the tree. Codes that were active when the log was made are entered by their token, up to
-- `entered_token`, which is null when all are.
CREATE TABLE log_state (
    is_only        boolean     NOT NULL DEFAULT true,
    origin         text        NOT NULL,
    size           bigint      NOT NULL,
    stopped_reason text,
    entered_token  text,
    created_at     timestamptz NOT NULL,
    CONSTRAINT log_state_pkey PRIMARY KEY (is_only),
    CONSTRAINT log_state_only_check CHECK (is_only),
    CONSTRAINT log_state_reason_check CHECK (stopped_reason IN ('witness_conflict', 'tree_damaged', 'restored'))
);
-- What receivers reported about Codes. The rows are the platform's: one outlives its organisation, whose id it then lost.
-- What people wrote is sealed, and deleted after a time. A claim names a Code by its id, and nobody has looked for the
-- Code yet: no index finds it, so a job and the platform's list do, a few at a time, and not whoever reports.
CREATE TABLE abuse_reports (
    id              text        NOT NULL,
    organization_id text,
    xr_id           text        NOT NULL,
    category        text        NOT NULL,
    status          text        NOT NULL,
    created_at      timestamptz NOT NULL,
    closed_at       timestamptz,
    sealed_text     bytea,
    sealed_contact  bytea,
    sealed_note     bytea,
    is_claim        boolean     NOT NULL DEFAULT false,
    CONSTRAINT abuse_reports_pkey PRIMARY KEY (id),
    CONSTRAINT abuse_reports_category_check
        CHECK (category IN ('spam', 'malware', 'impersonation', 'illegal', 'other')),
    CONSTRAINT abuse_reports_status_check CHECK (status IN ('open', 'closed')),
    CONSTRAINT abuse_reports_closed_check CHECK ((closed_at IS NOT NULL) = (status = 'closed')),
    CONSTRAINT abuse_reports_claim_check CHECK (NOT is_claim OR (organization_id IS NULL AND status = 'open'))
);

CREATE INDEX abuse_reports_newest_first ON abuse_reports (created_at DESC, id DESC);
CREATE INDEX abuse_reports_of_organization ON abuse_reports (organization_id) WHERE organization_id IS NOT NULL;
CREATE INDEX abuse_reports_claims ON abuse_reports (created_at, id) WHERE is_claim;
CREATE INDEX abuse_reports_to_forget ON abuse_reports (created_at)
    WHERE sealed_text IS NOT NULL OR sealed_contact IS NOT NULL OR sealed_note IS NOT NULL;

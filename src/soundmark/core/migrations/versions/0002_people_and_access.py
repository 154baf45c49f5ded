"""API keys, invitations, the audit log and its seals, platform settings, and row-level security."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0002"
down_revision = "0001"

_TABLES: Final = """
CREATE INDEX members_newest_first ON members (organization_id, created_at DESC, subject_id DESC);

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

CREATE TABLE audit_seals (
    organization_id text   NOT NULL,
    position        bigint NOT NULL,
    entry_id        text   NOT NULL,
    stage           text   NOT NULL,
    seal            bytea  NOT NULL,
    CONSTRAINT audit_seals_pkey PRIMARY KEY (organization_id, position),
    CONSTRAINT audit_seals_once UNIQUE (organization_id, entry_id, stage),
    CONSTRAINT audit_seals_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT audit_seals_position_check CHECK (position > 0),
    CONSTRAINT audit_seals_stage_check CHECK (stage IN ('requested', 'final'))
);

CREATE TABLE audit_heads (
    organization_id text   NOT NULL,
    position        bigint NOT NULL,
    entry_id        text,
    seal            bytea  NOT NULL,
    CONSTRAINT audit_heads_pkey PRIMARY KEY (organization_id),
    CONSTRAINT audit_heads_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT audit_heads_entry_check CHECK ((entry_id IS NULL) = (position = 0))
);

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

ALTER TABLE signing_keys ADD COLUMN sealed_public_key bytea;

CREATE TABLE instance_secrets (
    name       text        NOT NULL,
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT instance_secrets_pkey PRIMARY KEY (name)
);

CREATE FUNCTION current_tenant() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT current_setting('soundmark.tenant', true) $$;

CREATE FUNCTION current_subject() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT current_setting('soundmark.subject', true) $$;

ALTER TABLE organizations ENABLE ROW LEVEL SECURITY;
ALTER TABLE organizations FORCE ROW LEVEL SECURITY;
CREATE POLICY organizations_of_tenant ON organizations USING (id = current_tenant());
CREATE POLICY organizations_of_subject ON organizations FOR SELECT USING (
    EXISTS (SELECT FROM members m WHERE m.organization_id = organizations.id AND m.subject_id = current_subject())
);

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
CREATE POLICY codes_of_everybody ON codes FOR SELECT USING (current_tenant() = '*');

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY api_keys_of_tenant ON api_keys USING (organization_id = current_tenant());
CREATE POLICY api_keys_of_credential ON api_keys FOR SELECT USING (
    EXISTS (
        SELECT
          FROM api_key_digests d
         WHERE d.digest = decode(current_setting('soundmark.credential', true), 'hex')
           AND d.organization_id = api_keys.organization_id
           AND d.api_key_id = api_keys.id
    )
);

-- Every request with an API key needs the key, so this takes one round trip. The policy shows the key of the credential
-- to this statement alone.
CREATE FUNCTION api_key_of_credential(credential bytea) RETURNS SETOF api_keys LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('soundmark.credential', encode(credential, 'hex'), true);
    RETURN QUERY
        SELECT k.*
          FROM api_key_digests d
          JOIN api_keys k ON k.organization_id = d.organization_id AND k.id = d.api_key_id
         WHERE d.digest = credential;
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
"""


def upgrade() -> None:
    """Create the tables and the policies."""
    run_script(_TABLES)

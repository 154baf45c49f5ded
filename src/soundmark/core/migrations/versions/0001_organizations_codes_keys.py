"""Organisations, projects, Codes and their broadcasts, signing keys, and the queue of background jobs."""

from typing import Final

from alembic import op

from soundmark.kit.postgres.revision import create_job_tables

revision = "0001"
down_revision = None

_TABLES: Final = """
CREATE TABLE organizations (
    id                    text        NOT NULL,
    name                  text        NOT NULL,
    created_at            timestamptz NOT NULL,
    deletion_requested_at timestamptz,
    CONSTRAINT organizations_pkey PRIMARY KEY (id)
);

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

CREATE INDEX members_by_subject ON members (subject_id, organization_id);

CREATE TABLE projects (
    organization_id       text        NOT NULL,
    id                    text        NOT NULL,
    name                  text        NOT NULL,
    created_at            timestamptz NOT NULL,
    deletion_requested_at timestamptz,
    CONSTRAINT projects_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT projects_name_key UNIQUE (organization_id, name),
    CONSTRAINT projects_organization_fkey FOREIGN KEY (organization_id) REFERENCES organizations (id) ON DELETE CASCADE
);

CREATE INDEX projects_newest_first ON projects (organization_id, created_at DESC, id DESC);

CREATE TABLE broadcasts (
    token      text  NOT NULL,
    payload    bytea NOT NULL,
    signature  bytea NOT NULL,
    revoked_at timestamptz,
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
    CONSTRAINT codes_pkey PRIMARY KEY (organization_id, xr_id),
    CONSTRAINT codes_broadcast_token_key UNIQUE (broadcast_token),
    CONSTRAINT codes_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT codes_broadcast_fkey FOREIGN KEY (broadcast_token) REFERENCES broadcasts (token),
    CONSTRAINT codes_life_check CHECK (expires_at > issued_at)
);

CREATE INDEX codes_newest_first ON codes (organization_id, issued_at DESC, xr_id DESC);

CREATE TABLE signing_keys (
    key_id        text        NOT NULL,
    public_key    bytea       NOT NULL,
    sealed_seed   bytea,
    status        text        NOT NULL,
    created_at    timestamptz NOT NULL,
    activated_at  timestamptz,
    superseded_at timestamptz,
    retired_at    timestamptz,
    CONSTRAINT signing_keys_pkey PRIMARY KEY (key_id),
    CONSTRAINT signing_keys_status_check CHECK (status IN ('next', 'active', 'retiring', 'retired')),
    CONSTRAINT signing_keys_seed_check CHECK ((sealed_seed IS NULL) = (status = 'retired'))
);

CREATE UNIQUE INDEX signing_keys_one_active ON signing_keys (status) WHERE status = 'active';
"""


def upgrade() -> None:
    """Create the first tables of Core."""
    op.execute(_TABLES)
    create_job_tables()

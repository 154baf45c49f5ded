"""Entitlements to measure, audit entries that wait for their outcome, and the signing keys that Audience received."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0004"
down_revision = "0003"

_SCRIPT: Final = """
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

-- `push_began_at` is when Audience began to receive a key, `pushed_at` when every integration had it.
ALTER TABLE signing_keys ADD COLUMN push_began_at timestamptz;
ALTER TABLE signing_keys ADD COLUMN pushed_at timestamptz;
"""


def upgrade() -> None:
    """Create the table, the policies and the columns."""
    run_script(_SCRIPT)

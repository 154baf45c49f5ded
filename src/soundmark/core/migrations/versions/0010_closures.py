"""Closures of organisations and projects, and deletion certificates."""

from soundmark.kit.postgres.revision import run_script

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the tables."""
    run_script("""
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
CREATE POLICY closures_of_everybody ON closures FOR SELECT USING (current_tenant() = '*');
CREATE POLICY closures_of_backup ON closures FOR SELECT USING (is_backup());

CREATE TABLE deletion_certificates (
    id           text        NOT NULL,
    document     bytea       NOT NULL,
    completed_at timestamptz NOT NULL,
    CONSTRAINT deletion_certificates_pkey PRIMARY KEY (id)
);
""")

"""Purges of deleted organisations and projects."""

from soundmark.kit.postgres.revision import run_script

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    run_script("""
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
""")

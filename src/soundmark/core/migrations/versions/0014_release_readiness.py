"""What the worker last found in the release evidence."""

from soundmark.kit.postgres.revision import run_script

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create the table of one row."""
    run_script("""
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
""")

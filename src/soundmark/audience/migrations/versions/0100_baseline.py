"""The first schema of Audience, and the queue of background jobs."""

from soundmark.kit.postgres.revision import run_file, run_queue_file

revision = "0100"
down_revision = None


def upgrade() -> None:
    """Create everything that is in `schema.sql`."""
    run_queue_file("soundmark.kit.postgres", "jobs_schema_3_10_0.sql")
    run_file("soundmark.audience", "schema.sql")

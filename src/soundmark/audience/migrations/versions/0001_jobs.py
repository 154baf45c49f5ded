"""The queue of background jobs."""

from soundmark.kit.postgres.revision import create_job_tables

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables of the queue."""
    create_job_tables()

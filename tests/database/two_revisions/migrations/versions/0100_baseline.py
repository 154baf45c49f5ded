"""The first schema."""

from soundmark.kit.postgres.revision import run_script

revision = "0100"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    run_script("CREATE TABLE notes (id integer NOT NULL, body text NOT NULL);")

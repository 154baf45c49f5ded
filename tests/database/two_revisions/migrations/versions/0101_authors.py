"""The authors of notes."""

from soundmark.kit.postgres.revision import run_script

revision = "0101"
down_revision = "0100"


def upgrade() -> None:
    """Add the column, and delete what is empty."""
    run_script("""
SET LOCAL lock_timeout = '50ms';
ALTER TABLE notes ADD COLUMN author text;
DELETE FROM notes WHERE body = '';
""")

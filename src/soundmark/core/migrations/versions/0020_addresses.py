"""The addresses of Codes, and the index in which lists look for their beginnings.

Codes that exist have none yet: a job reads them from the signed payloads (record 33). Both indexes are built while
Codes are issued and resolved; the first is empty until the job runs, the second empty when it has ended. Only the new
column takes a lock, for milliseconds.
"""

from typing import Final

from alembic import op

from soundmark.kit.postgres.revision import run_script

revision = "0020"
down_revision = "0019"

# An attempt that was interrupted leaves the column, and perhaps an invalid index, which cannot be completed.
_ADD: Final = """
SET LOCAL lock_timeout = '2s';
ALTER TABLE codes ADD COLUMN IF NOT EXISTS address bytea;
"""
_BUILD: Final = (
    "DROP INDEX IF EXISTS codes_by_address",
    "CREATE INDEX CONCURRENTLY codes_by_address ON codes (organization_id, address) WHERE address IS NOT NULL",
    "DROP INDEX IF EXISTS codes_without_address",
    "CREATE INDEX CONCURRENTLY codes_without_address ON codes (organization_id, xr_id) WHERE address IS NULL",
)


def upgrade() -> None:
    """Add the column, then build the indexes."""
    run_script(_ADD)
    with op.get_context().autocommit_block():
        for statement in _BUILD:
            run_script(statement)

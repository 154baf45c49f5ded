"""The floor of an organisation's Codes quota, set by an operator."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0005"
down_revision = "0004"

_SCRIPT: Final = """
-- An operator may set a floor in place of the Starter plan's quota, until `floor_ends_at` or without an end.
ALTER TABLE code_entitlements
    ADD COLUMN floor_monthly_quota bigint,
    ADD COLUMN floor_ends_at       timestamptz,
    ADD CONSTRAINT code_entitlements_floor_check CHECK (floor_monthly_quota >= 0),
    ADD CONSTRAINT code_entitlements_floor_end_check CHECK (floor_ends_at IS NULL OR floor_monthly_quota IS NOT NULL);
"""


def upgrade() -> None:
    """Add the columns of the floor."""
    run_script(_SCRIPT)

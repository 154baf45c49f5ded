"""Policies that let Core's own role read every row for a backup."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0006"
down_revision = "0005"

_SCRIPT: Final = """
-- True in the sessions of a backup, which set `soundmark.backup` and only read; never in a request or a job.
CREATE FUNCTION is_backup() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT current_setting('soundmark.backup', true) = 'on' $$;

CREATE POLICY organizations_of_backup ON organizations FOR SELECT USING (is_backup());
CREATE POLICY members_of_backup ON members FOR SELECT USING (is_backup());
CREATE POLICY projects_of_backup ON projects FOR SELECT USING (is_backup());
CREATE POLICY codes_of_backup ON codes FOR SELECT USING (is_backup());
CREATE POLICY api_keys_of_backup ON api_keys FOR SELECT USING (is_backup());
CREATE POLICY invitations_of_backup ON invitations FOR SELECT USING (is_backup());
CREATE POLICY audit_entries_of_backup ON audit_entries FOR SELECT USING (is_backup());
CREATE POLICY audit_seals_of_backup ON audit_seals FOR SELECT USING (is_backup());
CREATE POLICY audit_heads_of_backup ON audit_heads FOR SELECT USING (is_backup());
CREATE POLICY code_entitlements_of_backup ON code_entitlements FOR SELECT USING (is_backup());
CREATE POLICY code_usage_days_of_backup ON code_usage_days FOR SELECT USING (is_backup());
CREATE POLICY campaigns_of_backup ON campaigns FOR SELECT USING (is_backup());
CREATE POLICY issuance_receipts_of_backup ON issuance_receipts FOR SELECT USING (is_backup());
CREATE POLICY audience_entitlements_of_backup ON audience_entitlements FOR SELECT USING (is_backup());
"""


def upgrade() -> None:
    """Create the policies of backups."""
    run_script(_SCRIPT)

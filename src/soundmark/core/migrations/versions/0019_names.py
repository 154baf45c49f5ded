"""The names of API keys and of Audience integrations."""

from soundmark.kit.postgres.revision import run_script

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the column and the table."""
    run_script("""
SET LOCAL lock_timeout = '2s';

ALTER TABLE api_keys ADD COLUMN name text;

-- What people call an Audience integration, which is a row of Audience's database. Until Audience has answered,
-- `named_id` is the id of the audit intent with which the integration is created.
CREATE TABLE integration_names (
    organization_id text NOT NULL,
    named_id        text NOT NULL,
    project_id      text NOT NULL,
    name            text NOT NULL,
    CONSTRAINT integration_names_pkey PRIMARY KEY (organization_id, named_id),
    CONSTRAINT integration_names_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE
);

CREATE INDEX integration_names_of_project ON integration_names (organization_id, project_id);

ALTER TABLE integration_names ENABLE ROW LEVEL SECURITY;
ALTER TABLE integration_names FORCE ROW LEVEL SECURITY;
CREATE POLICY integration_names_of_tenant ON integration_names USING (organization_id = current_tenant());
CREATE POLICY integration_names_of_backup ON integration_names FOR SELECT USING (is_backup());
""")

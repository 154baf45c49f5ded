"""Campaigns, plans and quotas, usage, and receipts of issuances."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0003"
down_revision = "0002"

_TABLES: Final = """
-- Plans of subscriptions. Every new organisation has the plan Codes Starter.
CREATE TABLE plans (
    id                  text    NOT NULL,
    name                text    NOT NULL,
    product             text    NOT NULL,
    monthly_code_quota  bigint,
    monthly_event_quota bigint,
    active              boolean NOT NULL,
    CONSTRAINT plans_pkey PRIMARY KEY (id),
    CONSTRAINT plans_product_check CHECK (product IN ('codes', 'audience')),
    CONSTRAINT plans_quota_check CHECK (
        (product = 'codes') = (monthly_code_quota IS NOT NULL)
        AND (product = 'audience') = (monthly_event_quota IS NOT NULL)
    ),
    CONSTRAINT plans_code_quota_check CHECK (monthly_code_quota >= 0),
    CONSTRAINT plans_event_quota_check CHECK (monthly_event_quota >= 0)
);

-- The Codes plan of each organisation. Issuing locks this row, so that issuances of one organisation form one queue.
CREATE TABLE code_entitlements (
    organization_id text NOT NULL,
    plan_id         text NOT NULL,
    CONSTRAINT code_entitlements_pkey PRIMARY KEY (organization_id),
    CONSTRAINT code_entitlements_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT code_entitlements_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id)
);

-- The number of Codes issued on each UTC day, in whatever state they are now.
CREATE TABLE code_usage_days (
    organization_id text   NOT NULL,
    day             date   NOT NULL,
    issued_count    bigint NOT NULL,
    CONSTRAINT code_usage_days_pkey PRIMARY KEY (organization_id, day),
    CONSTRAINT code_usage_days_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT code_usage_days_count_check CHECK (issued_count > 0)
);

-- A campaign with an `archived_at` is archived, for good.
CREATE TABLE campaigns (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    project_id      text        NOT NULL,
    name            text        NOT NULL,
    starts_at       timestamptz,
    ends_at         timestamptz,
    created_at      timestamptz NOT NULL,
    archived_at     timestamptz,
    CONSTRAINT campaigns_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT campaigns_in_project_key UNIQUE (organization_id, project_id, id),
    CONSTRAINT campaigns_name_key UNIQUE (organization_id, project_id, name),
    CONSTRAINT campaigns_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT campaigns_schedule_check CHECK (starts_at < ends_at)
);

CREATE INDEX campaigns_newest_first ON campaigns (organization_id, project_id, created_at DESC, id DESC);

ALTER TABLE codes ADD CONSTRAINT codes_campaign_fkey FOREIGN KEY (organization_id, project_id, campaign_id)
    REFERENCES campaigns (organization_id, project_id, id);

CREATE INDEX codes_of_project ON codes (organization_id, project_id, issued_at DESC, xr_id DESC);
CREATE INDEX codes_of_campaign ON codes (organization_id, campaign_id, issued_at DESC, xr_id DESC)
    WHERE campaign_id IS NOT NULL;

-- Half of each page stays free for the new versions of revoked rows: stopping a campaign of 100,000 Codes then neither
-- moves a row to another page nor touches an index, and takes a quarter of the time.
ALTER TABLE codes SET (fillfactor = 45);
ALTER TABLE broadcasts SET (fillfactor = 45);

-- The responses to issuances with an idempotency key, for a day. Of the key and the request it holds only digests.
CREATE TABLE issuance_receipts (
    organization_id text        NOT NULL,
    key_digest      bytea       NOT NULL,
    project_id      text        NOT NULL,
    route           text        NOT NULL,
    request_digest  bytea       NOT NULL,
    answer          bytea       NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT issuance_receipts_pkey PRIMARY KEY (organization_id, key_digest),
    CONSTRAINT issuance_receipts_project_fkey FOREIGN KEY (organization_id, project_id)
        REFERENCES projects (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT issuance_receipts_route_check CHECK (route IN ('single', 'batch'))
);

CREATE INDEX issuance_receipts_oldest_first ON issuance_receipts (created_at);
"""

_WHAT_IS_THERE: Final = """
INSERT INTO plans (id, name, product, monthly_code_quota, active)
VALUES ('plan_codes_starter', 'Codes Starter', 'codes', 100, true);

-- Organisations that exist already. Row-level security shows their rows to their own tenant only, so it is not forced
-- meanwhile.
ALTER TABLE organizations NO FORCE ROW LEVEL SECURITY;
ALTER TABLE codes NO FORCE ROW LEVEL SECURITY;

INSERT INTO code_entitlements (organization_id, plan_id)
SELECT id, 'plan_codes_starter' FROM organizations;

INSERT INTO code_usage_days (organization_id, day, issued_count)
SELECT organization_id, (issued_at AT TIME ZONE 'UTC')::date, count(*) FROM codes GROUP BY 1, 2;

ALTER TABLE organizations FORCE ROW LEVEL SECURITY;
ALTER TABLE codes FORCE ROW LEVEL SECURITY;
"""

_TENANTS: Final = """
-- Every request of a person needs their role, so this takes one round trip. The policy shows the person's own row to
-- this statement alone.
CREATE FUNCTION role_of_member(organization text, subject text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('soundmark.tenant', organization, true);
    RETURN QUERY SELECT m.role FROM members m WHERE m.organization_id = organization AND m.subject_id = subject;
END
$$;

ALTER TABLE code_entitlements ENABLE ROW LEVEL SECURITY;
ALTER TABLE code_entitlements FORCE ROW LEVEL SECURITY;
CREATE POLICY code_entitlements_of_tenant ON code_entitlements USING (organization_id = current_tenant());

ALTER TABLE code_usage_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE code_usage_days FORCE ROW LEVEL SECURITY;
CREATE POLICY code_usage_days_of_tenant ON code_usage_days USING (organization_id = current_tenant());

ALTER TABLE campaigns ENABLE ROW LEVEL SECURITY;
ALTER TABLE campaigns FORCE ROW LEVEL SECURITY;
CREATE POLICY campaigns_of_tenant ON campaigns USING (organization_id = current_tenant());

ALTER TABLE issuance_receipts ENABLE ROW LEVEL SECURITY;
ALTER TABLE issuance_receipts FORCE ROW LEVEL SECURITY;
CREATE POLICY issuance_receipts_of_tenant ON issuance_receipts USING (organization_id = current_tenant());
-- A job deletes the old receipts of every tenant.
CREATE POLICY issuance_receipts_of_everybody ON issuance_receipts USING (current_tenant() = '*');
"""


def upgrade() -> None:
    """Create the tables, and give every organisation the plan Codes Starter."""
    for script in (_TABLES, _WHAT_IS_THERE, _TENANTS):
        run_script(script)

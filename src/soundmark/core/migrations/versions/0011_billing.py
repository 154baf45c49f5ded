"""The catalogue, checkouts, subscriptions, receipts of payment events, and draft invoices."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0011"
down_revision = "0010"

_CATALOGUE: Final = """
CREATE TABLE payment_providers (
    name       text        NOT NULL,
    enabled    boolean     NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT payment_providers_pkey PRIMARY KEY (name),
    CONSTRAINT payment_providers_name_check CHECK (name IN ('card', 'local'))
);

INSERT INTO payment_providers (name, enabled, updated_at)
VALUES ('card', false, '2026-11-23T00:00:00Z'),
       ('local', false, '2026-11-23T00:00:00Z');

ALTER TABLE plans ADD COLUMN updated_at timestamptz NOT NULL DEFAULT '2026-11-23T00:00:00Z';

INSERT INTO plans (id, name, product, monthly_event_quota, active, updated_at)
VALUES ('plan_audience_contract', 'Audience Contract', 'audience', 5000, true, '2026-11-23T00:00:00Z');

CREATE TABLE offers (
    id                 text        NOT NULL,
    plan_id            text        NOT NULL,
    provider           text        NOT NULL,
    active             boolean     NOT NULL,
    price_reference    text,
    country            text,
    currency           text,
    amount_minor       bigint,
    price_interval     text,
    entitlement_months integer,
    price_read_at      timestamptz,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT offers_pkey PRIMARY KEY (id),
    CONSTRAINT offers_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id),
    CONSTRAINT offers_provider_fkey FOREIGN KEY (provider) REFERENCES payment_providers (name),
    CONSTRAINT offers_local_check CHECK (
        provider <> 'local'
        OR (price_reference IS NULL AND price_interval IS NULL AND price_read_at IS NULL
            AND country = 'TN' AND currency = 'TND' AND amount_minor > 0 AND entitlement_months BETWEEN 1 AND 36
            AND num_nulls(country, currency, amount_minor, entitlement_months) = 0)
    ),
    CONSTRAINT offers_card_check CHECK (
        provider <> 'card'
        OR (price_reference IS NOT NULL AND country IS NULL AND entitlement_months IS NULL)
    ),
    CONSTRAINT offers_interval_check CHECK (price_interval IN ('month', 'year'))
);

CREATE INDEX offers_of_price ON offers (price_reference) WHERE price_reference IS NOT NULL;
"""

_CHECKOUTS: Final = """
CREATE TABLE billing_references (
    kind            text  NOT NULL,
    digest          bytea NOT NULL,
    organization_id text  NOT NULL,
    subject_id      text  NOT NULL,
    CONSTRAINT billing_references_pkey PRIMARY KEY (kind, digest),
    CONSTRAINT billing_references_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT billing_references_kind_check CHECK (
        kind IN ('card_customer', 'card_subscription', 'contract', 'local_payment', 'local_secret', 'thirdparty')
    )
);

CREATE INDEX billing_references_of_organization ON billing_references (organization_id);

CREATE TABLE checkouts (
    organization_id        text        NOT NULL,
    id                     text        NOT NULL,
    offer_id               text        NOT NULL,
    plan_id                text        NOT NULL,
    product                text        NOT NULL,
    provider               text        NOT NULL,
    status                 text        NOT NULL,
    price_reference        text,
    amount_minor           bigint,
    currency               text,
    entitlement_months     integer,
    key_digest             bytea,
    request_digest         bytea,
    attempts               integer     NOT NULL DEFAULT 0,
    provider_reference     text,
    subscription_reference text,
    reads_begun            bigint      NOT NULL DEFAULT 0,
    read_applied           bigint      NOT NULL DEFAULT 0,
    rereads                integer     NOT NULL DEFAULT 0,
    reread_at              timestamptz,
    created_at             timestamptz NOT NULL,
    expires_at             timestamptz NOT NULL,
    completed_at           timestamptz,
    CONSTRAINT checkouts_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT checkouts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT checkouts_offer_fkey FOREIGN KEY (offer_id) REFERENCES offers (id),
    CONSTRAINT checkouts_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id),
    CONSTRAINT checkouts_product_check CHECK (product IN ('codes', 'audience')),
    CONSTRAINT checkouts_status_check CHECK (status IN ('pending', 'completed', 'failed', 'expired')),
    CONSTRAINT checkouts_completed_check CHECK ((completed_at IS NOT NULL) = (status = 'completed')),
    CONSTRAINT checkouts_provider_check CHECK (
        (provider = 'card' AND price_reference IS NOT NULL AND entitlement_months IS NULL)
        OR (provider = 'local' AND price_reference IS NULL
            AND num_nulls(amount_minor, currency, entitlement_months) = 0)
    ),
    CONSTRAINT checkouts_key_check CHECK ((key_digest IS NULL) = (request_digest IS NULL)),
    CONSTRAINT checkouts_life_check CHECK (expires_at > created_at)
);

CREATE INDEX checkouts_of_key ON checkouts (organization_id, key_digest) WHERE key_digest IS NOT NULL;
CREATE INDEX checkouts_pending ON checkouts (expires_at) WHERE status = 'pending';
CREATE INDEX checkouts_to_reread ON checkouts (reread_at) WHERE reread_at IS NOT NULL;

ALTER TABLE issuance_receipts ALTER COLUMN project_id DROP NOT NULL;
ALTER TABLE issuance_receipts DROP CONSTRAINT issuance_receipts_route_check;
ALTER TABLE issuance_receipts
    ADD CONSTRAINT issuance_receipts_route_check CHECK (route IN ('single', 'batch', 'checkout')),
    ADD CONSTRAINT issuance_receipts_project_check CHECK ((project_id IS NULL) = (route = 'checkout')),
    ADD CONSTRAINT issuance_receipts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE;

CREATE TABLE payment_receipts (
    provider        text        NOT NULL,
    event_id        text        NOT NULL,
    event_type      text        NOT NULL,
    body_digest     bytea       NOT NULL,
    organization_id text,
    checkout_id     text,
    status          text        NOT NULL,
    amount_minor    bigint,
    currency        text,
    rereads         integer     NOT NULL DEFAULT 0,
    reread_at       timestamptz,
    received_at     timestamptz NOT NULL,
    processed_at    timestamptz,
    CONSTRAINT payment_receipts_pkey PRIMARY KEY (provider, event_id),
    CONSTRAINT payment_receipts_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT payment_receipts_provider_check CHECK (provider IN ('card', 'local')),
    CONSTRAINT payment_receipts_status_check CHECK (status IN ('pending', 'processed', 'ignored')),
    CONSTRAINT payment_receipts_processed_check CHECK ((processed_at IS NULL) = (status = 'pending'))
);

CREATE INDEX payment_receipts_of_organization ON payment_receipts (organization_id) WHERE organization_id IS NOT NULL;
CREATE INDEX payment_receipts_to_reread ON payment_receipts (reread_at) WHERE reread_at IS NOT NULL;

CREATE TABLE local_verifications (
    minute             timestamptz NOT NULL,
    verification_count integer     NOT NULL,
    CONSTRAINT local_verifications_pkey PRIMARY KEY (minute)
);

CREATE TABLE payment_event_polls (
    provider     text        NOT NULL,
    polled_until timestamptz NOT NULL,
    CONSTRAINT payment_event_polls_pkey PRIMARY KEY (provider),
    CONSTRAINT payment_event_polls_provider_check CHECK (provider = 'card')
);
"""

_SUBSCRIPTIONS: Final = """
CREATE TABLE subscriptions (
    organization_id      text        NOT NULL,
    id                   text        NOT NULL,
    plan_id              text        NOT NULL,
    product              text        NOT NULL,
    audience_mode        text,
    provider             text        NOT NULL,
    status               text        NOT NULL,
    current_period_end   timestamptz,
    cancel_at_period_end boolean     NOT NULL,
    monthly_quota        bigint,
    checkout_id          text,
    provider_reference   text,
    contract_reference   text,
    last_event_at        timestamptz,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    CONSTRAINT subscriptions_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT subscriptions_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT subscriptions_plan_fkey FOREIGN KEY (plan_id) REFERENCES plans (id),
    CONSTRAINT subscriptions_product_check CHECK (product IN ('codes', 'audience')),
    CONSTRAINT subscriptions_mode_check CHECK (
        (audience_mode IS NULL) = (product = 'codes') AND audience_mode IN ('contract', 'self_service')
    ),
    CONSTRAINT subscriptions_provider_check CHECK (
        (provider = 'card' AND provider_reference IS NOT NULL AND contract_reference IS NULL)
        OR (provider = 'local' AND provider_reference IS NULL AND contract_reference IS NULL)
        OR (provider = 'contract' AND provider_reference IS NULL AND contract_reference IS NOT NULL)
    ),
    CONSTRAINT subscriptions_status_check
        CHECK (status IN ('trialing', 'active', 'past_due', 'cancelled', 'expired')),
    CONSTRAINT subscriptions_quota_check CHECK (monthly_quota >= 0),
    CONSTRAINT subscriptions_card_key UNIQUE (organization_id, provider_reference),
    CONSTRAINT subscriptions_contract_key UNIQUE (organization_id, contract_reference)
);

CREATE UNIQUE INDEX subscriptions_one_contract ON subscriptions (organization_id, audience_mode)
    WHERE provider = 'contract' AND status = 'active';
CREATE UNIQUE INDEX subscriptions_one_prepaid ON subscriptions (organization_id, plan_id)
    WHERE provider = 'local' AND status = 'active';
CREATE INDEX subscriptions_newest_first ON subscriptions (organization_id, created_at DESC, id DESC);
CREATE INDEX subscriptions_by_end ON subscriptions (current_period_end)
    WHERE status IN ('trialing', 'active', 'past_due');
CREATE INDEX subscriptions_of_plan ON subscriptions (plan_id) WHERE status IN ('trialing', 'active', 'past_due');

CREATE TABLE card_customers (
    organization_id    text        NOT NULL,
    customer_reference text        NOT NULL,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT card_customers_pkey PRIMARY KEY (organization_id),
    CONSTRAINT card_customers_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE
);
"""

# What an operator granted before is a contract like any other, with 128 random bits in its id.
_CONTRACTS: Final = """
ALTER TABLE audience_entitlements NO FORCE ROW LEVEL SECURITY;

INSERT INTO subscriptions
       (organization_id, id, plan_id, product, audience_mode, provider, status, current_period_end,
        cancel_at_period_end, monthly_quota, contract_reference, created_at, updated_at)
SELECT organization_id,
       'bsu_' || rtrim(translate(encode(substring(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
                                                  FROM 1 FOR 16), 'base64'), '+/', '-_'), '='),
       'plan_audience_contract', 'audience', mode, 'contract', 'active', ends_at, false, monthly_event_quota,
       'operator-' || mode || '-' || organization_id, updated_at, updated_at
  FROM audience_entitlements;

ALTER TABLE audience_entitlements FORCE ROW LEVEL SECURITY;

INSERT INTO billing_references (kind, digest, organization_id, subject_id)
SELECT 'contract', sha256(convert_to(contract_reference, 'UTF8')), organization_id, id FROM subscriptions;
"""

_ACCOUNTING: Final = """
CREATE TABLE accounting_customers (
    organization_id text        NOT NULL,
    thirdparty_id   bigint      NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT accounting_customers_pkey PRIMARY KEY (organization_id),
    CONSTRAINT accounting_customers_organization_fkey FOREIGN KEY (organization_id)
        REFERENCES organizations (id) ON DELETE CASCADE,
    CONSTRAINT accounting_customers_id_check CHECK (thirdparty_id BETWEEN 1 AND 2147483647)
);

CREATE TABLE accounting_outbox (
    organization_id text        NOT NULL,
    id              text        NOT NULL,
    subscription_id text        NOT NULL,
    checkout_id     text        NOT NULL,
    payment_digest  bytea       NOT NULL,
    description     text        NOT NULL,
    amount_minor    bigint      NOT NULL,
    currency        text        NOT NULL,
    period_start    timestamptz NOT NULL,
    period_end      timestamptz NOT NULL,
    status          text        NOT NULL,
    attempts        integer     NOT NULL DEFAULT 0,
    due_at          timestamptz,
    give_up_at      timestamptz NOT NULL,
    invoice_id      bigint,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT accounting_outbox_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT accounting_outbox_payment_key UNIQUE (organization_id, payment_digest),
    CONSTRAINT accounting_outbox_subscription_fkey FOREIGN KEY (organization_id, subscription_id)
        REFERENCES subscriptions (organization_id, id) ON DELETE CASCADE,
    CONSTRAINT accounting_outbox_amount_check CHECK (amount_minor > 0),
    CONSTRAINT accounting_outbox_status_check CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    CONSTRAINT accounting_outbox_due_check CHECK ((due_at IS NOT NULL) = (status IN ('pending', 'processing'))),
    CONSTRAINT accounting_outbox_invoice_check CHECK (
        (invoice_id IS NOT NULL) = (status = 'completed') AND invoice_id BETWEEN 1 AND 2147483647
    )
);

CREATE INDEX accounting_outbox_of_subscription
    ON accounting_outbox (organization_id, subscription_id, created_at DESC, id DESC);
"""

_POLICIES: Final = """
ALTER TABLE checkouts ENABLE ROW LEVEL SECURITY;
ALTER TABLE checkouts FORCE ROW LEVEL SECURITY;
CREATE POLICY checkouts_of_tenant ON checkouts USING (organization_id = current_tenant());
CREATE POLICY checkouts_of_everybody ON checkouts FOR SELECT USING (current_tenant() = '*');
CREATE POLICY checkouts_of_backup ON checkouts FOR SELECT USING (is_backup());

ALTER TABLE subscriptions ENABLE ROW LEVEL SECURITY;
ALTER TABLE subscriptions FORCE ROW LEVEL SECURITY;
CREATE POLICY subscriptions_of_tenant ON subscriptions USING (organization_id = current_tenant());
CREATE POLICY subscriptions_of_everybody ON subscriptions FOR SELECT USING (current_tenant() = '*');
CREATE POLICY subscriptions_of_backup ON subscriptions FOR SELECT USING (is_backup());

ALTER TABLE card_customers ENABLE ROW LEVEL SECURITY;
ALTER TABLE card_customers FORCE ROW LEVEL SECURITY;
CREATE POLICY card_customers_of_tenant ON card_customers USING (organization_id = current_tenant());
CREATE POLICY card_customers_of_backup ON card_customers FOR SELECT USING (is_backup());

ALTER TABLE accounting_customers ENABLE ROW LEVEL SECURITY;
ALTER TABLE accounting_customers FORCE ROW LEVEL SECURITY;
CREATE POLICY accounting_customers_of_tenant ON accounting_customers USING (organization_id = current_tenant());
CREATE POLICY accounting_customers_of_everybody ON accounting_customers FOR SELECT USING (current_tenant() = '*');
CREATE POLICY accounting_customers_of_backup ON accounting_customers FOR SELECT USING (is_backup());

ALTER TABLE accounting_outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE accounting_outbox FORCE ROW LEVEL SECURITY;
CREATE POLICY accounting_outbox_of_tenant ON accounting_outbox USING (organization_id = current_tenant());
CREATE POLICY accounting_outbox_of_everybody ON accounting_outbox FOR SELECT USING (current_tenant() = '*');
CREATE POLICY accounting_outbox_of_backup ON accounting_outbox FOR SELECT USING (is_backup());

CREATE POLICY audience_entitlements_of_everybody ON audience_entitlements FOR SELECT USING (current_tenant() = '*');

CREATE POLICY organizations_of_everybody ON organizations FOR SELECT USING (current_tenant() = '*');
"""


def upgrade() -> None:
    """Create the tables, seed the providers and the plan of contracts, and make contracts of earlier entitlements."""
    for script in (_CATALOGUE, _CHECKOUTS, _SUBSCRIPTIONS, _CONTRACTS, _ACCOUNTING, _POLICIES):
        run_script(script)

UPDATE payment_providers SET enabled = true;

INSERT INTO offers (id, plan_id, provider, active, price_reference, updated_at)
VALUES ('offer_card_example', 'plan_codes_starter', 'card', true, 'price_example', %(now)s);

INSERT INTO offers (id, plan_id, provider, active, country, currency, amount_minor, entitlement_months, updated_at)
VALUES ('offer_local_example', 'plan_audience_contract', 'local', true, 'TN', 'TND', 10555, 1, %(now)s);

INSERT INTO checkouts
       (organization_id, id, offer_id, plan_id, product, provider, status, price_reference, key_digest, request_digest,
        created_at, expires_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'bco_b3RoZXItcmFkaW8tZXhhbQ', 'offer_card_example', 'plan_codes_starter', 'codes',
        'card', 'pending', 'price_example', '\x01', '\x02', %(now)s, %(now)s + interval '1 day');

INSERT INTO billing_references (kind, digest, organization_id, subject_id)
VALUES ('contract', '\x03', 'org_b3RoZXItcmFkaW8tZXhhbQ', 'bsu_b3RoZXItcmFkaW8tZXhhbQ');

INSERT INTO issuance_receipts (organization_id, key_digest, route, request_digest, answer, created_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', '\x01', 'checkout', '\x02', '{}', %(now)s);

INSERT INTO payment_receipts
       (provider, event_id, event_type, body_digest, organization_id, checkout_id, status, received_at)
VALUES ('card', 'evt_example', 'invoice.paid', '\x04', 'org_b3RoZXItcmFkaW8tZXhhbQ', 'bco_b3RoZXItcmFkaW8tZXhhbQ',
        'pending', %(now)s);

INSERT INTO subscriptions
       (organization_id, id, plan_id, product, audience_mode, provider, status, cancel_at_period_end,
        contract_reference, created_at, updated_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'bsu_b3RoZXItcmFkaW8tZXhhbQ', 'plan_audience_contract', 'audience', 'contract',
        'contract', 'active', false, 'contract-example', %(now)s, %(now)s);

INSERT INTO card_customers (organization_id, customer_reference, updated_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'cus_example', %(now)s);

INSERT INTO accounting_customers (organization_id, thirdparty_id, updated_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 7, %(now)s);

INSERT INTO accounting_outbox
       (organization_id, id, subscription_id, checkout_id, payment_digest, description, amount_minor, currency,
        period_start, period_end, status, due_at, give_up_at, created_at, updated_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'acc_b3RoZXItcmFkaW8tZXhhbQ', 'bsu_b3RoZXItcmFkaW8tZXhhbQ',
        'bco_b3RoZXItcmFkaW8tZXhhbQ', '\x05', 'Audience Contract', 10555, 'TND', %(now)s, %(now)s, 'pending', %(now)s,
        %(now)s, %(now)s, %(now)s);

INSERT INTO local_verifications (minute, verification_count) VALUES (%(now)s, 1);

INSERT INTO payment_event_polls (provider, polled_until) VALUES ('card', %(now)s);

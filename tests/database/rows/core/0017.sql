INSERT INTO subscriptions
       (organization_id, id, plan_id, product, provider, status, current_period_end, cancel_at_period_end, checkout_id,
        provider_reference, created_at, updated_at, paid_through, paid_period_end, paid_invoice_at, is_price_known,
        reread_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'bsu_cGFpZC1ieS1jYXJkLWV4YQ', 'plan_codes_starter', 'codes', 'card', 'active',
        %(now)s, false, 'bco_b3RoZXItcmFkaW8tZXhhbQ', 'sub_example', %(now)s, %(now)s, %(now)s, %(now)s, %(now)s, false,
        NULL);

INSERT INTO accounting_outbox
       (organization_id, id, subscription_id, checkout_id, payment_digest, description, amount_minor, currency,
        period_start, period_end, status, due_at, give_up_at, created_at, updated_at, posted_invoice_id)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'acc_cG9zdGVkLWRyYWZ0LWV4YW', 'bsu_b3RoZXItcmFkaW8tZXhhbQ',
        'bco_b3RoZXItcmFkaW8tZXhhbQ', '\x06', 'Audience Contract', 10555, 'TND', %(now)s, %(now)s, 'pending', %(now)s,
        %(now)s, %(now)s, %(now)s, 41);

INSERT INTO plans (id, name, product, monthly_code_quota, active) VALUES ('plan_large', 'Large', 'codes', 5000, true);

INSERT INTO code_entitlements (organization_id, plan_id)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'plan_large'), ('org_b3RoZXItcmFkaW8tZXhhbQ', 'plan_codes_starter');

INSERT INTO code_usage_days (organization_id, day, issued_count)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', (%(now)s AT TIME ZONE 'UTC')::date, 2);

INSERT INTO campaigns (organization_id, id, project_id, name, starts_at, ends_at, created_at, archived_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'cmp_Y2FtcGFpZ24tZXhhbXBsZS', 'prj_bW9ybmluZy1zaG93LWV4YW', 'Tonight', NULL,
        %(tomorrow)s, %(now)s, NULL);

INSERT INTO issuance_receipts (organization_id, key_digest, project_id, route, request_digest, answer, created_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', decode(repeat('cd', 32), 'hex'), 'prj_bW9ybmluZy1zaG93LWV4YW', 'single',
        decode(repeat('ef', 32), 'hex'), '\x7b7d', %(now)s);

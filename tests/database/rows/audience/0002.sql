INSERT INTO integrations
       (id, organization_id, project_id, mode, retention_days, sealed_secret, core_key_id, core_public_key, created_at)
VALUES ('int_aW50ZWdyYXRpb24tZXhhbX', 'org_b2xkLXJhZGlvLWV4YW1wbA', 'prj_bW9ybmluZy1zaG93LWV4YW', 'contract', 30,
        '\x00', %(key_id)s, %(public_key)s, %(now)s);

INSERT INTO entitlements (organization_id, mode, monthly_event_quota, ends_at, revision)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'contract', 5000, NULL, 3);

INSERT INTO operations (id, organization_id, project_id, integration_id, action, answer, applied_at)
VALUES ('aud_b3BlcmF0aW9uLW9mLWFuLW', 'org_b2xkLXJhZGlvLWV4YW1wbA', 'prj_bW9ybmluZy1zaG93LWV4YW',
        'int_aW50ZWdyYXRpb24tZXhhbX', 'create', '{}', %(now)s);

INSERT INTO event_months (organization_id, mode, first_day, events)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'contract', date_trunc('month', %(now)s AT TIME ZONE 'UTC')::date, 1);

INSERT INTO measured_codes (integration, xr_id, campaign_id)
SELECT number, 'xr_YWN0aXZlLWNvZGUtZXhhbX', NULL FROM integrations;

INSERT INTO events (token, integration, day, code, occurred_ms, receiver, country)
SELECT 7, integration, (%(now)s AT TIME ZONE 'UTC')::date, number, 0, 0, NULL FROM measured_codes;

INSERT INTO event_ids (integration, event_id, body, day)
SELECT number, '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002',
       (%(now)s AT TIME ZONE 'UTC')::date
  FROM integrations;

INSERT INTO spent_proofs (integration, proof, day)
SELECT number, '00000000-0000-0000-0000-000000000003', (%(now)s AT TIME ZONE 'UTC')::date FROM integrations;

INSERT INTO integrity_days (integration, day, event_replays)
SELECT number, (%(now)s AT TIME ZONE 'UTC')::date, 5 FROM integrations;

INSERT INTO legacy_days (organization_id, project_id, day, events)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'prj_bW9ybmluZy1zaG93LWV4YW', '2026-01-30', 412);

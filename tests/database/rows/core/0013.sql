INSERT INTO webhook_endpoints
       (organization_id, id, project_id, url, event_types, description, enabled, disabled_reason, failing_since,
        sealed_secret, sealed_earlier_secret, earlier_secret_until, created_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'whe_Y29uc3VtZXItZXhhbXBsZQ', 'prj_ZXZlbmluZy1zaG93LWV4YW',
        'https://consumer.example.org', ARRAY['code.revoked'], 'Playout', false, 'failing', %(now)s, '\x01', '\x02',
        %(now)s, %(now)s);

INSERT INTO webhook_acts
       (organization_id, id, project_id, type, actor_type, actor_id, data, xr_ids, endpoint_ids, created_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'act_c3RvcHBlZC1leGFtcGxlMQ', 'prj_ZXZlbmluZy1zaG93LWV4YW', 'code.revoked',
        'user', 'ada', '{}', ARRAY['xr_b25lLW9mLXR3by1leGFtcG'], ARRAY['whe_Y29uc3VtZXItZXhhbXBsZQ'], %(now)s);

INSERT INTO announced_expiries (organization_id, expires_at, xr_id)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', %(now)s, 'xr_b25lLW9mLXR3by1leGFtcG');

INSERT INTO webhook_events (organization_id, id, project_id, type, actor_type, actor_id, data, created_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'evn_c3RvcHBlZC1leGFtcGxlMQ', 'prj_ZXZlbmluZy1zaG93LWV4YW', 'code.revoked',
        'user', 'ada', '{"xr_id": "xr_b25lLW9mLXR3by1leGFtcG"}', %(now)s);

INSERT INTO webhook_deliveries
       (organization_id, id, endpoint_id, event_id, event_type, status, attempts, last_status_code, last_error,
        next_attempt_at, created_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'whd_c3RvcHBlZC1leGFtcGxlMQ', 'whe_Y29uc3VtZXItZXhhbXBsZQ',
        'evn_c3RvcHBlZC1leGFtcGxlMQ', 'code.revoked', 'pending', 2, 500, 'The response was 500.', %(now)s, %(now)s);

INSERT INTO quota_thresholds (organization_id, month, percent)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', '2026-11', 80);

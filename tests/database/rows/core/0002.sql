UPDATE signing_keys SET sealed_public_key = %(sealed_public_key)s WHERE key_id = %(key_id)s;

INSERT INTO api_keys (organization_id, id, project_id, scopes, created_at, expires_at, last_used_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'key_c2VydmVyLWtleS1leGFtcG', 'prj_bW9ybmluZy1zaG93LWV4YW',
        ARRAY['codes:read', 'codes:write'], %(now)s, %(tomorrow)s, %(now)s);

INSERT INTO api_key_digests (digest, organization_id, api_key_id)
VALUES (%(api_key_digest)s, 'org_b2xkLXJhZGlvLWV4YW1wbA', 'key_c2VydmVyLWtleS1leGFtcG');

INSERT INTO invitations (organization_id, id, email, role, created_at, expires_at, delivery_status)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'inv_aW52aXRhdGlvbi1leGFtcG', 'eve@example.org', 'billing', %(now)s, %(tomorrow)s,
        'unavailable');

INSERT INTO invitation_digests (digest, organization_id, invitation_id)
VALUES (decode(repeat('ab', 32), 'hex'), 'org_b2xkLXJhZGlvLWV4YW1wbA', 'inv_aW52aXRhdGlvbi1leGFtcG');

INSERT INTO audit_entries
       (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata, created_at, finalised_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'aud_ZW50cnktb2YtYW4tb2xkLW', NULL, 'organization.created', 'user', 'operator',
        'completed', '{"name":"Radio Nordlicht"}', %(now)s, %(now)s);

INSERT INTO audit_unsealed (organization_id, entry_id, stage, created_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'aud_ZW50cnktb2YtYW4tb2xkLW', 'final', %(now)s);

INSERT INTO platform_configuration (name, value, updated_at) VALUES ('smtp_host', '"mail.example.org"', %(now)s);

INSERT INTO platform_secrets (name, sealed, updated_at) VALUES ('smtp_password', %(sealed_password)s, %(now)s);

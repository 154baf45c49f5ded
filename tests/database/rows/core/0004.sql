UPDATE signing_keys SET push_began_at = %(now)s, pushed_at = %(now)s WHERE key_id = %(key_id)s;

INSERT INTO audience_entitlements (organization_id, mode, monthly_event_quota, ends_at, revision, updated_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'contract', 5000, NULL, 3, %(now)s);

INSERT INTO audit_entries
       (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata, created_at, finalised_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'aud_aW50ZW50LW9mLWFuLW9sZC', 'prj_bW9ybmluZy1zaG93LWV4YW',
        'audience.integration_revocation', 'user', 'operator', 'requested', '{}', %(now)s, NULL);

INSERT INTO audit_unsealed (organization_id, entry_id, stage, created_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'aud_aW50ZW50LW9mLWFuLW9sZC', 'requested', %(now)s);

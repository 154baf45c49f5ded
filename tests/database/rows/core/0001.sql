INSERT INTO organizations (id, name, created_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'Radio Nordlicht', %(now)s),
       ('org_b3RoZXItcmFkaW8tZXhhbQ', 'Radio Südlicht', %(now)s);

INSERT INTO members (organization_id, subject_id, email, role, created_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'operator', 'operator@localhost', 'owner', %(now)s),
       ('org_b2xkLXJhZGlvLWV4YW1wbA', 'ada', 'ada@example.org', 'member', %(now)s),
       ('org_b3RoZXItcmFkaW8tZXhhbQ', 'bea', 'bea@example.org', 'owner', %(now)s);

INSERT INTO projects (organization_id, id, name, created_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'prj_bW9ybmluZy1zaG93LWV4YW', 'Morning show', %(now)s),
       ('org_b3RoZXItcmFkaW8tZXhhbQ', 'prj_ZXZlbmluZy1zaG93LWV4YW', 'Evening show', %(now)s);

INSERT INTO signing_keys
       (key_id, public_key, sealed_seed, status, created_at, activated_at, superseded_at, retired_at)
VALUES (%(key_id)s, %(public_key)s, %(sealed_seed)s, 'active', %(now)s, %(now)s, NULL, NULL),
       ('sig_cmV0aXJlZC1rZXktZXhhbX', '\x00', NULL, 'retired', %(now)s, %(now)s, %(now)s, %(now)s);

INSERT INTO broadcasts (token, payload, signature, revoked_at)
VALUES ('brd_YWN0aXZlLWNvZGUx', %(active_payload)s, %(active_signature)s, NULL),
       ('brd_cmV2b2tlZC1jb2Rl', %(revoked_payload)s, %(revoked_signature)s, %(now)s);

INSERT INTO codes
       (organization_id, xr_id, project_id, issuer, issued_at, expires_at, broadcast_token, key_id, revoked_at)
VALUES ('org_b2xkLXJhZGlvLWV4YW1wbA', 'xr_YWN0aXZlLWNvZGUtZXhhbX', 'prj_bW9ybmluZy1zaG93LWV4YW', 'Radio Nordlicht',
        %(now)s, %(tomorrow)s, 'brd_YWN0aXZlLWNvZGUx', %(key_id)s, NULL),
       ('org_b2xkLXJhZGlvLWV4YW1wbA', 'xr_cmV2b2tlZC1jb2RlLWV4YX', 'prj_bW9ybmluZy1zaG93LWV4YW', 'Radio Nordlicht',
        %(now)s, %(tomorrow)s, 'brd_cmV2b2tlZC1jb2Rl', %(key_id)s, %(now)s);

INSERT INTO procrastinate_jobs (queue_name, task_name, args)
VALUES ('default', 'a_task_of_an_older_release', '{"organization_id": "org_b2xkLXJhZGlvLWV4YW1wbA"}');

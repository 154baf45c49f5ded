-- This revision changed a constraint and no table: a token is unique in its organisation, and in `broadcasts`.
INSERT INTO broadcasts (token, payload, signature, revoked_at)
VALUES ('brd_b3RoZXItdG9rZW4x', %(active_payload)s, %(active_signature)s, NULL);

INSERT INTO codes
       (organization_id, xr_id, project_id, issuer, issued_at, expires_at, broadcast_token, key_id, revoked_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'xr_b3RoZXItY29kZS1leGFtcG', 'prj_ZXZlbmluZy1zaG93LWV4YW', 'Radio Südlicht',
        %(now)s, %(tomorrow)s, 'brd_b3RoZXItdG9rZW4x', %(key_id)s, NULL);

INSERT INTO closures
       (organization_id, subject_id, project_id, certificate_id, operation_id, phase, requested_at, worked_at,
        purged_events)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'prj_ZXZlbmluZy1zaG93LWV4YW', 'prj_ZXZlbmluZy1zaG93LWV4YW',
        'dct_bGVhdmluZy1leGFtcGxlMQ', 'aud_bGVhdmluZy1leGFtcGxlMQ', 'purged', %(now)s, %(now)s, 7);

INSERT INTO deletion_certificates (id, document, completed_at)
VALUES ('dct_Z29uZS1leGFtcGxlLWV4YW', '{}', %(now)s);

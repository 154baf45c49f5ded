UPDATE api_keys SET name = 'Playout server';

INSERT INTO integration_names (organization_id, named_id, project_id, name)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'int_c3R1ZGlvLW1lYXN1cmVtZW50', 'prj_ZXZlbmluZy1zaG93LWV4YW', 'Studio');

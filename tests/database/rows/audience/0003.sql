INSERT INTO purges (operation_id, subject_digest, began_at, completed_at, events)
VALUES ('aud_cHVyZ2VkLWV4YW1wbGUtMQ', '\x00ff', %(now)s, %(now)s, 7);

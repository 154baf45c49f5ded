INSERT INTO tickets
       (organization_id, id, subject_id, request_id, subject, status, conversation_id, mailbox_id, desk_updated_at,
        attempts, post_after, created_at)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', 'tkt_b3RoZXItcmFkaW8tZXhhbQ', 'user-example', 'supreq_b3RoZXItcmFkaW8tZXhhbQ',
        'A question', 'active', 1, 1, %(now)s, 1, %(now)s, %(now)s);

INSERT INTO desk_conversations (conversation_id, organization_id, ticket_id)
VALUES (1, 'org_b3RoZXItcmFkaW8tZXhhbQ', 'tkt_b3RoZXItcmFkaW8tZXhhbQ');

INSERT INTO desk_deliveries (digest, received_at) VALUES ('\x06', %(now)s);

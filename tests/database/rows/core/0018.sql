INSERT INTO webhook_replay_counts (organization_id, replayed_at, day, deliveries_count)
VALUES ('org_b3RoZXItcmFkaW8tZXhhbQ', ARRAY[%(now)s::timestamptz], '2026-11-26', 3);

INSERT INTO local_verifications (minute, share, verification_count) VALUES (%(now)s, 'jobs', 1);

UPDATE checkouts SET unpaid_at = %(now)s;

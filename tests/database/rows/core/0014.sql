INSERT INTO release_readiness (computed_at, evidence) VALUES (%(now)s, '{}');

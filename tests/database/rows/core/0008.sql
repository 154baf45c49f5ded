-- This revision changed policies and functions, and no table. The key is found by its digest as before.
SELECT id FROM api_key_of_credential(%(api_key_digest)s);

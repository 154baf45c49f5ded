-- This revision made policies and no table.
SELECT is_backup();

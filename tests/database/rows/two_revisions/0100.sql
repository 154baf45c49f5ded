INSERT INTO notes (id, body) VALUES (1, 'Kept.');

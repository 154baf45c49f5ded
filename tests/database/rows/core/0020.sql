UPDATE codes SET address = 'https://example.org' WHERE broadcast_token = 'brd_cmV2b2tlZC1jb2Rl';

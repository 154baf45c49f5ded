UPDATE offers SET price_status = 'missing' WHERE provider = 'card';

"""PostgreSQL: transactions, batches, migrations and the job queue."""

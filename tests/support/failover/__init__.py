"""Two PostgreSQL servers, one a synchronous standby of the other, and what stands in for failover software."""

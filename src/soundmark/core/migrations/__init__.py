"""Core's migrations: Alembic revisions of plain SQL, forward only."""

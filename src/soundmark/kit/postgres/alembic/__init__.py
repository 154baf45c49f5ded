"""Where Alembic finds how to run revisions."""

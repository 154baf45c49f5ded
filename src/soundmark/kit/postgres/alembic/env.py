"""What Alembic runs around the revisions of a component: `kit.postgres.migrations` hands over the connection."""

from alembic import context

given = context.config.attributes
context.configure(
    connection=given["connection"],
    on_version_apply=given["on_version_apply"],
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()

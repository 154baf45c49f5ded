"""The functions for revisions of a database schema, which run SQL scripts exactly as they are written."""

from importlib.resources import files

from alembic import op
from sqlalchemy import Connection


def run_script(sql: str) -> None:
    """Execute all statements in `sql`.

    `op.execute` would treat `:name` and `%` as placeholders; this function sends the text as it is.
    """
    bind = op.get_bind()
    assert isinstance(bind, Connection), "migrations run on a connection"
    driver = bind.connection.driver_connection
    assert driver is not None, "the connection is open"
    driver.execute(sql)


def create_job_tables() -> None:
    """Create the tables, types and functions of procrastinate 3.10.0, the queue of background jobs.

    The script is a pinned copy of `procrastinate/sql/schema.sql`, because a revision must never change.
    """
    run_script(files("soundmark.kit.postgres").joinpath("jobs_schema_3_10_0.sql").read_text(encoding="utf-8"))

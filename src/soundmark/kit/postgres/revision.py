"""What a revision of a database schema is written with: scripts of SQL, run exactly as they stand."""

from importlib.resources import files

from alembic import op
from sqlalchemy import Connection


def run_script(sql: str) -> None:
    """Carry out every statement of `sql`, which may hold any number of them.

    `op.execute` would read `:name` and `%` as places for parameters; this sends the text as it is.
    """
    bind = op.get_bind()
    assert isinstance(bind, Connection), "migrations run on a connection"
    driver = bind.connection.driver_connection
    assert driver is not None, "the connection is open"
    driver.execute(sql)


def create_job_tables() -> None:
    """Create the tables, types and functions of procrastinate 3.10.0, the queue of background jobs.

    The text is a pinned copy of `procrastinate/sql/schema.sql`: a revision must do tomorrow what it does today.
    """
    run_script(files("soundmark.kit.postgres").joinpath("jobs_schema_3_10_0.sql").read_text(encoding="utf-8"))

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


def run_file(package: str, name: str) -> None:
    """Execute all statements in a file of `package`, such as the pinned schema of the queue.

    A released revision must never change, and neither must a file that it runs.
    """
    run_script(files(package).joinpath(name).read_text(encoding="utf-8"))

"""The functions for revisions of a database schema, which run SQL scripts exactly as they are written."""

import json
from collections.abc import Sequence
from importlib.resources import files

from alembic import context, op
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


def run_queue_file(package: str, name: str) -> None:
    """Do the same as `run_file` for tables of the job queue, which may be in a schema of their own."""
    schemas: tuple[str, ...] = context.config.attributes.get("schemas", ())
    _search(schemas[::-1])
    run_file(package, name)
    _search(schemas)


def _search(schemas: Sequence[str]) -> None:
    """Find and create tables in the first of these schemas until the transaction ends; without any, change nothing."""
    if schemas:
        run_script(f"SET LOCAL search_path TO {', '.join(map(json.dumps, schemas))}")


def run_file(package: str, name: str) -> None:
    """Execute all statements in a file of `package`, such as the pinned schema of the queue.

    A released revision must never change, and neither must a file that it runs.
    """
    run_script(files(package).joinpath(name).read_text(encoding="utf-8"))

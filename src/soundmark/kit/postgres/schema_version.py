"""The revision of a database, and the one that this program needs.

Revisions are files `<package>/migrations/versions/NNNN_words.py` with the revision id `NNNN`, so that a serving process
finds the newest one by its name alone, without loading Alembic. The first is 0100: checkouts from before the release
0.1.0 had smaller ones.
"""

import functools
import re
from importlib.resources import files
from typing import Final

from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx

_REVISION_FILE: Final = re.compile(r"(\d{4})_\w+\.py")


class SchemaOutdated(Exception):
    """The database lacks what this release needs; the message tells the operator what to do."""


@functools.cache
def newest_revision(package: str) -> str:
    """Return the last revision that ships with `package`, such as `soundmark.core`."""
    names = (entry.name for entry in files(package).joinpath("migrations", "versions").iterdir())
    return max(match[1] for name in names if (match := _REVISION_FILE.fullmatch(name)))


async def current_revision(tx: Tx) -> str | None:
    """Return the revision of the database; None before the first."""
    exists = await tx.value("SELECT to_regclass('alembic_version') IS NOT NULL")
    return await tx.value("SELECT version_num FROM alembic_version") if exists else None


async def is_current(tx: Tx, package: str) -> bool:
    """Return whether the database is at least at the revision that `package` needs.

    A newer one is fine: revisions only go forward, and the old release keeps serving while the new one is rolled out.
    """
    return (await current_revision(tx) or "") >= newest_revision(package)


async def require_current(db: Database, package: str, *, schema: str | None = None) -> None:
    """Refuse a database that is not at least at the revision that `package` needs.

    With a `schema`, refuse a role whose tables are in another one.

    Raises: SchemaOutdated; DatabaseUnavailable.
    """
    component = package.rpartition(".")[2]
    async with db.snapshot() as tx:
        if schema is not None and await tx.value("SELECT current_schema()") != schema:
            raise SchemaOutdated(
                f"the role does not use the schema {schema} in this database: run `soundmark migrate {component}`"
            )
        if not await is_current(tx, package):
            raise SchemaOutdated(
                f"the database is not at the schema of this release: run `soundmark migrate {component}`"
            )

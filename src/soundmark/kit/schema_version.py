"""Which revision a database is at, and which one this program needs.

Revisions are files `<package>/migrations/versions/NNNN_words.py` with the revision id `NNNN`, so that names alone tell
which is the newest; a serving process asks this without loading Alembic.
"""

import functools
import re
from importlib.resources import files
from typing import Final

from soundmark.kit.postgres import Tx

_REVISION_FILE: Final = re.compile(r"(\d{4})_\w+\.py")


@functools.cache
def newest_revision(package: str) -> str:
    """The last revision that ships with `package`, such as `soundmark.core`."""
    names = (entry.name for entry in files(package).joinpath("migrations", "versions").iterdir())
    return max(match[1] for name in names if (match := _REVISION_FILE.fullmatch(name)))


async def current_revision(tx: Tx) -> str | None:
    """The revision that the database is at; None before the first."""
    exists = await tx.value("SELECT to_regclass('alembic_version') IS NOT NULL")
    return await tx.value("SELECT version_num FROM alembic_version") if exists else None


async def is_current(tx: Tx, package: str) -> bool:
    """Whether the database is at least at the revision that `package` needs.

    A newer one is fine: revisions only go forward, and while a new release rolls out the old one keeps serving.
    """
    return (await current_revision(tx) or "") >= newest_revision(package)

"""Everything that Audience's database keeps sealed, for whoever replaces the master key."""

from soundmark.audience.store.sealed_values import SEALED_COLUMNS, lock_all
from soundmark.kit.postgres import Database
from soundmark.kit.resealing import Vault


def vault(db: Database) -> Vault:
    """What is sealed, of every tenant and of none."""
    return Vault(db, SEALED_COLUMNS, lock_all)

"""Core's database without content, while a Core goes on running on it."""

from typing import Any, Final

import psycopg

from soundmark.kit.crypto.secret import Secret
from support.database.connections import borrow
from support.database.empty_tables import empty_tables

# A running Core finds these again as they were, so they are not emptied.
_KEPT: Final = {
    "alembic_version",
    "instance_secrets",
    "log_checkpoints",
    "log_keys",
    "log_leaves",
    "log_state",
    "log_tiles",
    "signing_keys",
}
# As the migrations seed them.
_RESTORE_CATALOGUE: Final = """
DELETE FROM plans WHERE id NOT IN ('plan_audience_contract', 'plan_codes_starter');
UPDATE plans SET name = 'Codes Starter', monthly_code_quota = 100, active = true
 WHERE id = 'plan_codes_starter' AND (name, monthly_code_quota, active) <> ('Codes Starter', 100, true);
UPDATE plans SET name = 'Audience Contract', monthly_event_quota = 5000, active = true
 WHERE id = 'plan_audience_contract' AND (name, monthly_event_quota, active) <> ('Audience Contract', 5000, true);
UPDATE payment_providers SET enabled = false WHERE enabled;
"""


def read_signing_keys(url: Secret) -> list[Any]:
    """Return the rows of the keys that a Core made when it started."""
    with psycopg.connect(url.reveal()) as connection:
        return connection.execute("SELECT * FROM signing_keys").fetchall()


def restore_core(url: Secret, signing_keys: list[Any]) -> None:
    """Empty the database of a running Core, except for these keys; `url` is of a superuser."""
    with borrow(url) as connection:
        empty_core(connection, kept=_KEPT)
        if connection.execute("SELECT * FROM signing_keys").fetchall() != signing_keys:
            with connection.transaction():  # The running Core never sees a database without keys.
                connection.execute("DELETE FROM signing_keys")
                for row in signing_keys:
                    places = ", ".join(["%s"] * len(row))
                    connection.execute(f"INSERT INTO signing_keys VALUES ({places})".encode(), row)


def empty_core(connection: psycopg.Connection[Any], *, kept: set[str]) -> None:
    """Empty Core's database except for the tables of `kept`, and restore the catalogue that migrations seed."""
    empty_tables(connection, kept=kept | {"payment_providers", "plans"}, then=_RESTORE_CATALOGUE)

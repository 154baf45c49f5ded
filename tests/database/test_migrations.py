"""Migrations: their result, several at once, and the refusal of what they must not do."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import psycopg
import pytest

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres import migrations
from soundmark.kit.postgres.migrations import MigrationFailed, migrate
from soundmark.kit.postgres.schema_version import current_revision, is_current, newest_revision
from soundmark.kit.postgres.transaction import Tx

COMPONENTS = ["core", "audience"]


@pytest.fixture
def empty(cluster: RunningCluster) -> Secret:
    return new_database(cluster)


def new_database(cluster: RunningCluster) -> Secret:
    name = "migrations_under_test"
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
    return cluster.create_role_and_database(name)


def schema_of(cluster: RunningCluster, url: Secret) -> list[str]:
    """Return the statements that would create the database, in an order that does not depend on its history."""
    options = ["--schema-only", "--no-owner", "--no-privileges", "--exclude-table=alembic_version"]
    dump = subprocess.run(
        [str(cluster.cluster.programs / "pg_dump"), *options, url.reveal()], check=True, capture_output=True, text=True
    ).stdout
    # The dump begins and ends with a random word.
    return [line for line in dump.splitlines() if line and not line.startswith(("--", "\\restrict", "\\unrestrict"))]


@pytest.mark.parametrize("component", COMPONENTS)
def test_replaying_all_migrations_makes_the_reviewed_schema(
    cluster: RunningCluster, empty: Secret, component: str
) -> None:
    assert migrate(empty, f"soundmark.{component}")[-1] == newest_revision(f"soundmark.{component}")
    migrated = schema_of(cluster, empty)
    url = new_database(cluster)
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute(files("soundmark.kit.postgres").joinpath("jobs_schema_3_10_0.sql").read_bytes())
        connection.execute(files(f"soundmark.{component}").joinpath("schema.sql").read_bytes())
    reviewed = schema_of(cluster, url)
    assert len(migrated) > 100
    assert migrated == reviewed


@pytest.mark.parametrize("component", COMPONENTS)
def test_migrating_again_changes_nothing(empty: Secret, component: str) -> None:
    package = f"soundmark.{component}"
    assert migrate(empty, package)
    assert migrate(empty, package) == []


def test_several_at_once_apply_each_revision_once(empty: Secret) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(lambda _: migrate(empty, "soundmark.core"), range(4)))
    assert sorted(map(len, applied))[:3] == [0, 0, 0]
    assert max(applied, key=len)[-1] == newest_revision("soundmark.core")


def test_a_migration_that_never_ends_is_given_up(empty: Secret, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT_S", 0.05)
    with psycopg.connect(empty.reveal(), autocommit=True) as rival:
        rival.execute("SELECT pg_advisory_lock(%s)", [migrations._LOCK_KEY])
        with pytest.raises(MigrationFailed, match="another migration"):
            migrate(empty, "soundmark.core")


def test_a_migration_does_not_wait_for_a_table_in_use(empty: Secret) -> None:
    """Its other users, resolution among them, would otherwise queue behind the migration."""
    migrate(empty, "soundmark.core", until="0007")
    with psycopg.connect(empty.reveal()) as backup:
        backup.execute("SELECT FROM codes")
        with pytest.raises(MigrationFailed, match="in use"):
            migrate(empty, "soundmark.core")
    assert migrate(empty, "soundmark.core") == [
        "0008",
        "0009",
        "0010",
        "0011",
        "0012",
        "0013",
        "0014",
        "0015",
        "0016",
        "0017",
        "0018",
        "0019",
        "0020",
        "0021",
    ]


def test_an_index_that_was_not_finished_is_built_anew(empty: Secret) -> None:
    migrate(empty, "soundmark.core", until="0008")
    with psycopg.connect(empty.reveal(), autocommit=True) as interrupted:
        interrupted.execute("CREATE INDEX codes_broadcast_token_of_organization ON codes (issuer)")
    assert migrate(empty, "soundmark.core") == [
        "0009",
        "0010",
        "0011",
        "0012",
        "0013",
        "0014",
        "0015",
        "0016",
        "0017",
        "0018",
        "0019",
        "0020",
        "0021",
    ]
    with psycopg.connect(empty.reveal()) as connection:
        found = connection.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'codes_broadcast_token_key'"
        ).fetchone()
    assert found == ("UNIQUE (organization_id, broadcast_token)",)


def test_the_prices_of_card_offers_are_known_where_currency_and_amount_are(empty: Secret) -> None:
    migrate(empty, "soundmark.core", until="0015")
    with psycopg.connect(empty.reveal(), autocommit=True) as connection:
        connection.execute("""
            INSERT INTO offers (id, plan_id, provider, active, price_reference, country, currency, amount_minor,
                                entitlement_months, updated_at)
            VALUES ('offer_asked', 'plan_codes_starter', 'card', true, 'price_1', NULL, 'EUR', 0, NULL, now()),
                   ('offer_local', 'plan_codes_starter', 'local', true, NULL, 'TN', 'TND', 1, 1, now()),
                   ('offer_new', 'plan_codes_starter', 'card', true, 'price_2', NULL, NULL, NULL, NULL, now()),
                   ('offer_tiers', 'plan_codes_starter', 'card', false, 'price_3', NULL, 'EUR', NULL, NULL, now())
        """)
        migrate(empty, "soundmark.core")
        found = connection.execute("SELECT id, price_status FROM offers ORDER BY id").fetchall()
    assert found == [
        ("offer_asked", "known"),
        ("offer_local", None),
        ("offer_new", "unknown"),
        ("offer_tiers", "unknown"),
    ]


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_database_in_another_encoding_is_refused_in_one_line(cluster: RunningCluster, component: str) -> None:
    name = "in_ascii"
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0".encode())
    with pytest.raises(MigrationFailed, match="encoded in SQL_ASCII and must be in UTF8"):
        migrate(cluster.superuser_url_of(name), f"soundmark.{component}")


def test_an_unreachable_database_is_reported_without_its_password(empty: Secret) -> None:
    password = psycopg.conninfo.conninfo_to_dict(empty.reveal())["password"]
    with pytest.raises(MigrationFailed, match="cannot be reached") as failed:
        migrate(Secret(empty.reveal().replace("//migrations_under_test:", "//nobody:")), "soundmark.core")
    assert str(password) not in str(failed.value)


def test_a_database_from_the_future_is_left_alone(empty: Secret) -> None:
    migrate(empty, "soundmark.core")
    with psycopg.connect(empty.reveal(), autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(MigrationFailed, match="9999"):
        migrate(empty, "soundmark.core")


async def test_a_serving_process_knows_whether_its_schema_is_there(empty: Secret) -> None:
    async with await psycopg.AsyncConnection.connect(empty.reveal(), autocommit=True) as connection:
        tx = Tx(connection)
        assert (await current_revision(tx), await is_current(tx, "soundmark.core")) == (None, False)
        migrate(empty, "soundmark.core")
        newest = newest_revision("soundmark.core")
        assert (await current_revision(tx), await is_current(tx, "soundmark.core")) == (newest, True)
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
        # A newer release is being rolled out; everything that the old one needs is still there.
        assert await is_current(tx, "soundmark.core")

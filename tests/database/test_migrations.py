"""Migrations: their result, several at once, and the refusal of what they must not do."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest

from soundmark.embedded.postgres import ClusterFailed, RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres import migrations
from soundmark.kit.postgres.migrations import MigrationFailed, migrate
from soundmark.kit.postgres.schema_version import current_revision, is_current, newest_revision
from soundmark.kit.postgres.transaction import Tx

COMPONENTS = ["core", "audience"]
NAME = "migrations_under_test"
TWO_REVISIONS = "database.two_revisions"
ROWS = Path(__file__).with_name("rows")
CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def list_revisions(package: str) -> list[str]:
    """Return the revisions of a component, oldest first."""
    return sorted(
        each.name[:4] for each in files(package).joinpath("migrations", "versions").iterdir() if each.name[0] == "0"
    )


UPGRADES = [
    (package, revision)
    for package in ("soundmark.core", "soundmark.audience", TWO_REVISIONS)
    for revision in list_revisions(package)[:-1]
]


@pytest.fixture
def empty(cluster: RunningCluster) -> Secret:
    """A database without tables."""
    return new_database(cluster)


def new_database(cluster: RunningCluster) -> Secret:
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {NAME}".encode())
    return cluster.create_role_and_database(NAME)


def read_schema(cluster: RunningCluster) -> list[str]:
    """Return the statements that would create the database with its rows, in an order that ignores its history."""
    # The row of proof_transition is the time of the migration.
    without = ["--exclude-table=alembic_version", "--exclude-table-data=proof_transition"]
    options = ["--inserts", "--no-owner", "--no-privileges", *without]
    dump = subprocess.run(
        [str(cluster.cluster.programs / "pg_dump"), *options, cluster.superuser_url_of(NAME).reveal()],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    # The dump begins and ends with a random word.
    return [line for line in dump.splitlines() if line and not line.startswith(("--", "\\restrict", "\\unrestrict"))]


def read_rows(url: Secret) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of all tables, each with the name of its table."""
    with psycopg.connect(url.reveal()) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return [
            (name, row)
            for (name,) in names
            if name != "alembic_version"
            for (row,) in connection.execute(f'SELECT to_jsonb(t) FROM "{name}" t'.encode()).fetchall()
        ]


def find_lost_rows(cluster: RunningCluster, package: str, revision: str, rows: str) -> list[tuple[str, dict[str, Any]]]:
    """Upgrade a database from `revision`, with the rows of a script; return the rows of before that changed or went.

    What a row has in columns that the upgrade adds or drops does not count.
    """
    url = new_database(cluster)
    superuser_url = cluster.superuser_url_of(NAME)
    migrate(url, package, until=revision)
    with psycopg.connect(superuser_url.reveal()) as connection:
        connection.execute(rows.encode())
    before = read_rows(superuser_url)
    migrate(url, package)
    after = read_rows(superuser_url)
    return [
        (name, row)
        for name, row in before
        if not any(name == other and all(row[key] == kept[key] for key in row.keys() & kept) for other, kept in after)
    ]


def test_a_time_limit_of_the_role_does_not_end_a_migration(empty: Secret, cluster: RunningCluster) -> None:
    """Such as the one that its sessions need behind a pooler: building an index may take longer."""
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as superuser:
        superuser.execute(f"ALTER ROLE {NAME} SET statement_timeout = '1ms'".encode())
        try:
            assert migrate(empty, "soundmark.audience")
        finally:
            superuser.execute(f"ALTER ROLE {NAME} RESET statement_timeout".encode())


@pytest.mark.parametrize("component", COMPONENTS)
def test_replaying_all_migrations_makes_the_reviewed_schema(
    cluster: RunningCluster, empty: Secret, component: str
) -> None:
    assert migrate(empty, f"soundmark.{component}")[-1] == newest_revision(f"soundmark.{component}")
    migrated = read_schema(cluster)
    url = new_database(cluster)
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute(files("soundmark.kit.postgres").joinpath("jobs_schema_3_10_0.sql").read_bytes())
        connection.execute(files(f"soundmark.{component}").joinpath("schema.sql").read_bytes())
    reviewed = read_schema(cluster)
    assert len(migrated) > 100
    assert migrated == reviewed


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_released_baseline_runs_a_copy(component: str) -> None:
    """`schema.sql` goes on changing; the revision that a released database had does not."""
    is_released = re.search(r"^## \[\d.*\] - \d", CHANGELOG.read_text(encoding="utf-8"), re.MULTILINE) is not None
    versions = files(f"soundmark.{component}").joinpath("migrations", "versions")
    is_copied = versions.joinpath("0100_baseline.sql").is_file()
    assert is_copied == is_released, "docs/contributing/releasing.md"
    assert is_copied != ('"schema.sql"' in versions.joinpath("0100_baseline.py").read_text(encoding="utf-8"))


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
    migrate(empty, TWO_REVISIONS, until="0100")
    with psycopg.connect(empty.reveal()) as backup:
        backup.execute("SELECT FROM notes")
        with pytest.raises(MigrationFailed, match="in use"):
            migrate(empty, TWO_REVISIONS)
    assert migrate(empty, TWO_REVISIONS) == ["0101"]


@pytest.mark.parametrize(("package", "revision"), UPGRADES)
def test_an_upgrade_keeps_every_row(cluster: RunningCluster, package: str, revision: str) -> None:
    """`rows/<component>/<revision>.sql` holds rows as the release with that revision wrote them."""
    rows = (ROWS / package.rpartition(".")[2] / f"{revision}.sql").read_text(encoding="utf-8")
    assert find_lost_rows(cluster, package, revision, rows) == []


def test_a_row_that_an_upgrade_loses_is_noticed(cluster: RunningCluster) -> None:
    rows = "INSERT INTO notes (id, body) VALUES (1, ''), (2, 'Kept.')"
    assert find_lost_rows(cluster, TWO_REVISIONS, "0100", rows) == [("notes", {"id": 1, "body": ""})]


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
        migrate(Secret(empty.reveal().replace(f"//{NAME}:", "//nobody:")), "soundmark.core")
    assert str(password) not in str(failed.value)


def test_a_full_disk_is_reported_in_one_line(cluster: RunningCluster, empty: Secret) -> None:
    """Also for the statements of the library, which has errors of its own."""
    with psycopg.connect(cluster.superuser_url_of(NAME).reveal(), autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION fill() RETURNS event_trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
        )
        connection.execute("CREATE EVENT TRIGGER full_disk ON ddl_command_start EXECUTE FUNCTION fill()")
    with pytest.raises(MigrationFailed, match=r"^the database failed: no space left$"):
        migrate(empty, "soundmark.core")
    with pytest.raises(ClusterFailed, match=f"^PostgreSQL cannot prepare the database {NAME}: "):
        cluster.cluster.ensure_database(1, NAME, SystemEntropy())


def test_a_database_from_the_future_is_left_alone(empty: Secret) -> None:
    migrate(empty, "soundmark.core")
    with psycopg.connect(empty.reveal(), autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(MigrationFailed, match=r"'9999'.*a newer release made it, run that one"):
        migrate(empty, "soundmark.core")


@pytest.mark.parametrize(("component", "revision"), [("core", "0021"), ("audience", "0003")])
async def test_a_database_of_a_checkout_from_before_the_first_release_is_refused(
    empty: Secret, component: str, revision: str
) -> None:
    """These were the last revisions. A process does not serve such a database, and it cannot be upgraded."""
    package = f"soundmark.{component}"
    migrate(empty, package)
    async with await psycopg.AsyncConnection.connect(empty.reveal(), autocommit=True) as connection:
        await connection.execute("UPDATE alembic_version SET version_num = %s", [revision])
        assert not await is_current(Tx(connection), package)
    with pytest.raises(MigrationFailed, match=rf"'{revision}'.*before 0\.1\.0 did, start with a new database$"):
        migrate(empty, package)


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

"""`soundmark platform reseal` on real databases, with settings from the environment and from a data dir."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.api.core_settings import MASTER_KEY

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate
from soundmark.operating_system.files import write_private
from soundmark.supervision.plan import audience_master_key

from .conftest import Done, run

Settings = dict[str, str]
NEW_KEY, OTHER_KEY = "A" * 43, "B" * 42 + "A"


@pytest.fixture
def settings(spare_database_url: Secret) -> Settings:
    """The settings of the commands under test."""
    return {"CORE_DATABASE_URL": spare_database_url.reveal(), "MASTER_KEY": MASTER_KEY}


@pytest.fixture
def connection(spare_database_url: Secret) -> Iterator[psycopg.Connection[Any]]:
    """A connection that commits each statement."""
    with psycopg.connect(spare_database_url.reveal(), autocommit=True) as opened:
        yield opened


@pytest.fixture
def new_key_file(tmp_path: Path) -> Path:
    """A file with the next master key."""
    file = tmp_path / "new.key"
    file.write_text(NEW_KEY + "\n", encoding="ascii")
    return file


@pytest.fixture
def data_dir(tmp_path: Path, settings: Settings) -> Path:
    """The files of a running `soundmark up`."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_private(folder / "up.json", json.dumps({"core_database_url": settings["CORE_DATABASE_URL"]}))
    write_private(folder / "master.key", MASTER_KEY + "\n")
    return folder


def reseal(file: Path, *more: str, settings: Settings | None = None) -> Done:
    done = run("platform", "reseal", "--new-master-key-file", str(file), *more, settings=settings)
    assert not any(key in done.out + done.err for key in (MASTER_KEY, NEW_KEY, OTHER_KEY)), "no key is ever shown"
    return done


def make_secret(connection: psycopg.Connection[Any], master_key: str = MASTER_KEY, name: str = "smtp_password") -> None:
    sealer = Sealer(parse_master_key(master_key), SystemEntropy())
    sealed = sealer.seal(b"secret", table="platform_secrets", column="sealed", row=name)
    connection.execute("INSERT INTO platform_secrets VALUES (%s, %s, now())", (name, sealed))


def opens_under(connection: psycopg.Connection[Any], master_key: str) -> bool:
    sealer = Sealer(parse_master_key(master_key), SystemEntropy())
    rows = connection.execute("SELECT name, sealed FROM platform_secrets").fetchall()
    header = sealer.seal(b"", table="", column="", row="")[:9]
    return bool(rows) and all(sealed.startswith(header) for _, sealed in rows)


def test_everything_moves_and_the_old_key_opens_nothing(
    settings: Settings, connection: psycopg.Connection[Any], new_key_file: Path
) -> None:
    assert run("keys", "stage", settings=settings).status == 0
    make_secret(connection)
    done = reseal(new_key_file, settings=settings)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "5 values moved to the new master key; 0 already had it",
        "now restart every process of Core with the new key, then run this command once more",
    ]
    assert opens_under(connection, NEW_KEY)
    assert "another master key" in run("keys", "stage", settings=settings).refusal
    assert run("keys", "stage", settings={**settings, "MASTER_KEY": NEW_KEY}).status == 0

    again = reseal(new_key_file, settings=settings)
    assert again.out == "0 values moved to the new master key; 5 already had it\n"


def test_the_wrong_old_key_is_refused(
    settings: Settings, connection: psycopg.Connection[Any], new_key_file: Path
) -> None:
    make_secret(connection)
    done = reseal(new_key_file, settings={**settings, "MASTER_KEY": OTHER_KEY})
    assert done.refusal == (
        "nothing was changed: platform_secrets.sealed of smtp_password opens neither under the old key nor the new one"
    )
    assert opens_under(connection, MASTER_KEY)


@pytest.mark.parametrize("text", ["", "A" * 44, NEW_KEY + "\nmore"])
def test_a_malformed_key_is_refused(settings: Settings, tmp_path: Path, text: str) -> None:
    file = tmp_path / "new.key"
    file.write_text(text, encoding="utf-8")
    expected = f"{file} must contain 32 bytes in base64url without padding (43 characters)"
    assert reseal(file, settings=settings).refusal == expected


def test_a_missing_file_is_refused(settings: Settings, tmp_path: Path) -> None:
    refusal = reseal(tmp_path / "none.key", settings=settings).refusal
    assert refusal == f"{tmp_path / 'none.key'} cannot be read: No such file or directory"


def test_an_unavailable_database_is_refused(settings: Settings, new_key_file: Path) -> None:
    settings["CORE_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:9/none"
    assert reseal(new_key_file, settings=settings).refusal == "Core's database does not answer"


def test_a_data_dir_gets_the_new_key_and_keeps_the_old_one(
    connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    make_secret(connection)
    done = reseal(new_key_file, "--data-dir", str(data_dir))
    assert (done.status, done.err) == (0, "")
    assert f"the new key is in {data_dir / 'master.key'}" in done.out
    assert opens_under(connection, NEW_KEY)
    for name, key in (("master.key", NEW_KEY), ("master.key.old", MASTER_KEY)):
        assert (data_dir / name).read_text("ascii") == key + "\n"
        assert (data_dir / name).stat().st_mode & 0o777 == 0o600

    make_secret(connection, name="support_api_key")  # By a process that has the old key until its restart.
    assert reseal(new_key_file, "--data-dir", str(data_dir)).out.startswith(
        "1 value moved to the new master key; 1 already had it"
    )
    assert opens_under(connection, NEW_KEY)
    assert (data_dir / "master.key.old").read_text("ascii") == MASTER_KEY + "\n"


def test_after_dying_before_the_data_dir_got_the_key_it_is_continued(
    settings: Settings, connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    """Everything is committed under the new key, and the data dir still has the old one."""
    make_secret(connection)
    assert reseal(new_key_file, settings=settings).status == 0
    done = reseal(new_key_file, "--data-dir", str(data_dir))
    assert done.out.startswith("0 values moved to the new master key; 1 already had it\n")
    assert (data_dir / "master.key").read_text("ascii") == NEW_KEY + "\n"
    assert (data_dir / "master.key.old").read_text("ascii") == MASTER_KEY + "\n"


def test_two_sources_of_the_old_key_are_refused(
    connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    """The command would overwrite a key that it was not asked to change."""
    make_secret(connection)
    done = reseal(new_key_file, "--data-dir", str(data_dir), settings={"MASTER_KEY": OTHER_KEY})
    assert done.refusal == f"SOUNDMARK_MASTER_KEY is not the key in {data_dir / 'master.key'}; unset it"
    assert opens_under(connection, MASTER_KEY)


def test_a_data_dir_whose_key_comes_from_outside_gets_none(
    connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    """`up` got its key from the environment, and stored it nowhere."""
    make_secret(connection)
    (data_dir / "master.key").unlink()
    done = reseal(new_key_file, "--data-dir", str(data_dir), settings={"MASTER_KEY": MASTER_KEY})
    assert done.status == 0
    assert sorted(path.name for path in data_dir.iterdir()) == ["up.json"]


AUDIENCE = "audience_of_platform"


@pytest.fixture
def audience_url(cluster: RunningCluster) -> Secret:
    """Audience's database, with values sealed under the master key that `up` derives for it."""
    url = cluster.create_role_and_database(AUDIENCE)
    migrate(url, "soundmark.audience")
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute("TRUNCATE instance_secrets, integrations CASCADE")
    return url


def derived(master_key: str) -> str:
    return audience_master_key(Secret(master_key)).reveal()


def make_in_audience(url: Secret, master_key: str, name: str = "token_digests") -> None:
    sealer = Sealer(parse_master_key(master_key), SystemEntropy())
    sealed = sealer.seal(b"secret", table="instance_secrets", column="sealed", row=name)
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute("INSERT INTO instance_secrets VALUES (%s, %s, now())", (name, sealed))


def opens_in_audience(url: Secret, master_key: str) -> bool:
    sealer = Sealer(parse_master_key(master_key), SystemEntropy())
    with psycopg.connect(url.reveal()) as connection:
        rows = connection.execute("SELECT name, sealed FROM instance_secrets").fetchall()
    try:
        opened = [sealer.unseal(sealed, table="instance_secrets", column="sealed", row=name) for name, sealed in rows]
    except SealBroken:
        return False
    return bool(opened)


@pytest.fixture
def whole_data_dir(data_dir: Path, settings: Settings, audience_url: Secret) -> Path:
    """The files of a running `up`, which name both databases."""
    up = {"core_database_url": settings["CORE_DATABASE_URL"], "audience_database_url": audience_url.reveal()}
    write_private(data_dir / "up.json", json.dumps(up))
    return data_dir


def test_audience_is_moved_by_its_own_environment(audience_url: Secret, new_key_file: Path) -> None:
    make_in_audience(audience_url, MASTER_KEY)
    environ = {"AUDIENCE_DATABASE_URL": audience_url.reveal(), "MASTER_KEY": MASTER_KEY}

    done = reseal(new_key_file, "--component", "audience", settings=environ)

    assert done.out.splitlines() == [
        "1 value moved to the new master key; 0 already had it",
        "now restart every process of Audience with the new key, then run this command once more",
    ]
    assert opens_in_audience(audience_url, NEW_KEY)
    again = reseal(new_key_file, "--component", "audience", settings=environ)
    assert again.out == "0 values moved to the new master key; 1 already had it\n"


def test_the_missing_settings_of_audience_are_named(new_key_file: Path, settings: Settings) -> None:
    refusal = reseal(new_key_file, "--component", "audience", settings=settings).refusal
    assert refusal == "SOUNDMARK_AUDIENCE_DATABASE_URL: is not set"
    environ = {"AUDIENCE_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none", "MASTER_KEY": MASTER_KEY}
    refusal = reseal(new_key_file, "--component", "audience", settings=environ).refusal
    assert refusal == "Audience's database does not answer"


def test_of_a_data_dir_both_move_each_under_its_own_key(
    connection: psycopg.Connection[Any], whole_data_dir: Path, audience_url: Secret, new_key_file: Path
) -> None:
    make_secret(connection)
    make_in_audience(audience_url, derived(MASTER_KEY))

    done = reseal(new_key_file, "--data-dir", str(whole_data_dir))

    assert done.out.splitlines() == [
        "2 values moved to the new master key; 0 already had it",
        f"the new key is in {whole_data_dir / 'master.key'}",
        "now restart every process of Core and Audience with the new key, then run this command once more",
    ]
    assert opens_under(connection, NEW_KEY)
    assert opens_in_audience(audience_url, derived(NEW_KEY))
    assert not opens_in_audience(audience_url, NEW_KEY)

    make_in_audience(audience_url, derived(MASTER_KEY), "made_before_the_restart")
    again = reseal(new_key_file, "--data-dir", str(whole_data_dir))
    assert again.out.startswith("1 value moved to the new master key; 2 already had it\n")
    assert opens_in_audience(audience_url, derived(NEW_KEY))


def test_where_audience_does_not_open_core_does_not_move(
    connection: psycopg.Connection[Any], whole_data_dir: Path, audience_url: Secret, new_key_file: Path
) -> None:
    make_secret(connection)
    make_in_audience(audience_url, OTHER_KEY)

    assert "nothing was changed" in reseal(new_key_file, "--data-dir", str(whole_data_dir)).refusal

    assert opens_under(connection, MASTER_KEY)
    assert (whole_data_dir / "master.key").read_text("ascii") == MASTER_KEY + "\n"


def test_after_dying_between_the_two_it_is_continued(
    settings: Settings,
    connection: psycopg.Connection[Any],
    whole_data_dir: Path,
    audience_url: Secret,
    new_key_file: Path,
) -> None:
    """Core's values are committed under the new key; Audience and the data dir still have the old one."""
    make_secret(connection)
    make_in_audience(audience_url, derived(MASTER_KEY))
    assert reseal(new_key_file, settings=settings).status == 0

    done = reseal(new_key_file, "--data-dir", str(whole_data_dir))

    assert done.out.startswith("1 value moved to the new master key; 1 already had it\n")
    assert opens_in_audience(audience_url, derived(NEW_KEY))
    assert (whole_data_dir / "master.key").read_text("ascii") == NEW_KEY + "\n"


def test_of_a_data_dir_no_component_is_moved_alone(whole_data_dir: Path, new_key_file: Path) -> None:
    """One key is derived from the other, so the next start could open only half."""
    done = reseal(new_key_file, "--data-dir", str(whole_data_dir), "--component", "audience")
    assert "leave out --component" in done.refusal

"""`soundmark platform reseal` on a real database, by the environment and by a data dir."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from core_app import MASTER_KEY

from soundmark.kit.entropy import SystemEntropy
from soundmark.kit.sealing import Sealer, parse_master_key
from soundmark.kit.secret import Secret

from .conftest import Done, run

Settings = dict[str, str]
NEW_KEY, OTHER_KEY = "A" * 43, "B" * 42 + "A"


@pytest.fixture
def settings(spare_database_url: Secret) -> Settings:
    return {"CORE_DATABASE_URL": spare_database_url.reveal(), "MASTER_KEY": MASTER_KEY}


@pytest.fixture
def connection(spare_database_url: Secret) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(spare_database_url.reveal(), autocommit=True) as opened:
        yield opened


@pytest.fixture
def new_key_file(tmp_path: Path) -> Path:
    file = tmp_path / "new.key"
    file.write_text(NEW_KEY + "\n", encoding="ascii")
    return file


@pytest.fixture
def data_dir(tmp_path: Path, settings: Settings) -> Path:
    """What a running `soundmark up` has there."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "up.json").write_text(json.dumps({"core_database_url": settings["CORE_DATABASE_URL"]}), encoding="utf-8")
    (folder / "master.key").write_text(MASTER_KEY + "\n", encoding="ascii")
    return folder


def reseal(file: Path, *more: str, settings: Settings | None = None) -> Done:
    done = run("platform", "reseal", "--new-master-key-file", str(file), *more, settings=settings)
    assert not any(key in done.out + done.err for key in (MASTER_KEY, NEW_KEY, OTHER_KEY)), "no key is ever shown"
    return done


def given_secret(
    connection: psycopg.Connection[Any], master_key: str = MASTER_KEY, name: str = "smtp_password"
) -> None:
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
    given_secret(connection)
    done = reseal(new_key_file, settings=settings)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "5 values moved to the new master key; 0 had it already",
        "now restart every process of Core with the new key, then run this command once more",
    ]
    assert opens_under(connection, NEW_KEY)
    assert "another master key" in run("keys", "stage", settings=settings).refusal
    assert run("keys", "rotate", "--no-wait", settings={**settings, "MASTER_KEY": NEW_KEY}).status == 0

    again = reseal(new_key_file, settings=settings)
    assert again.out == "0 values moved to the new master key; 5 had it already\n"


def test_the_same_key_changes_nothing(settings: Settings, connection: psycopg.Connection[Any], tmp_path: Path) -> None:
    given_secret(connection)
    before = connection.execute("SELECT sealed FROM platform_secrets").fetchall()
    same = tmp_path / "same.key"
    same.write_text(MASTER_KEY, encoding="ascii")
    done = reseal(same, settings=settings)
    assert (done.status, done.out) == (0, "0 values moved to the new master key; 1 had it already\n")
    assert connection.execute("SELECT sealed FROM platform_secrets").fetchall() == before


def test_the_wrong_old_key_is_refused(
    settings: Settings, connection: psycopg.Connection[Any], new_key_file: Path
) -> None:
    given_secret(connection)
    done = reseal(new_key_file, settings={**settings, "MASTER_KEY": OTHER_KEY})
    assert done.refusal == (
        "nothing was changed: platform_secrets.sealed of smtp_password opens neither under the old key nor the new one"
    )
    assert opens_under(connection, MASTER_KEY)


@pytest.mark.parametrize("text", ["", "short", "A" * 42, "A" * 44, "A" * 42 + "B", "A" * 42 + "ü", NEW_KEY + "\nmore"])
def test_what_is_no_key_is_refused(settings: Settings, tmp_path: Path, text: str) -> None:
    file = tmp_path / "new.key"
    file.write_text(text, encoding="utf-8")
    expected = f"{file} must hold 32 bytes in base64url without padding (43 characters)"
    assert reseal(file, settings=settings).refusal == expected


def test_a_file_that_is_not_there_is_refused(settings: Settings, tmp_path: Path) -> None:
    refusal = reseal(tmp_path / "none.key", settings=settings).refusal
    assert refusal == f"{tmp_path / 'none.key'} cannot be read: No such file or directory"


def test_the_file_must_be_named(settings: Settings) -> None:
    assert run("platform", "reseal", settings=settings).status == 2


def test_a_database_that_is_away_is_refused(settings: Settings, new_key_file: Path) -> None:
    settings["CORE_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:9/none"
    assert reseal(new_key_file, settings=settings).refusal == "Core's database does not answer"


def test_a_data_dir_gets_the_new_key_and_keeps_the_old_one(
    connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    given_secret(connection)
    done = reseal(new_key_file, "--data-dir", str(data_dir))
    assert (done.status, done.err) == (0, "")
    assert f"the new key is in {data_dir / 'master.key'}" in done.out
    assert opens_under(connection, NEW_KEY)
    for name, key in (("master.key", NEW_KEY), ("master.key.old", MASTER_KEY)):
        assert (data_dir / name).read_text("ascii") == key + "\n"
        assert (data_dir / name).stat().st_mode & 0o777 == 0o600

    given_secret(connection, name="support_api_key")  # By a process that has the old key until its restart.
    assert reseal(new_key_file, "--data-dir", str(data_dir)).out.startswith(
        "1 value moved to the new master key; 1 had"
    )
    assert opens_under(connection, NEW_KEY)
    assert (data_dir / "master.key.old").read_text("ascii") == MASTER_KEY + "\n"


def test_after_dying_before_the_data_dir_got_the_key_it_is_continued(
    settings: Settings, connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    """Everything is committed under the new key and the data dir still has the old one."""
    given_secret(connection)
    assert reseal(new_key_file, settings=settings).status == 0
    done = reseal(new_key_file, "--data-dir", str(data_dir))
    assert done.out.startswith("0 values moved to the new master key; 1 had it already\n")
    assert (data_dir / "master.key").read_text("ascii") == NEW_KEY + "\n"
    assert (data_dir / "master.key.old").read_text("ascii") == MASTER_KEY + "\n"


def test_a_refusal_leaves_the_data_dir_alone(
    connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    given_secret(connection, OTHER_KEY)
    assert "nothing was changed" in reseal(new_key_file, "--data-dir", str(data_dir)).refusal
    assert (data_dir / "master.key").read_text("ascii") == MASTER_KEY + "\n"
    assert not (data_dir / "master.key.old").exists()


def test_two_words_about_the_old_key_are_refused(
    connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    """We would put the new key in the place of one that we were not told to change."""
    given_secret(connection)
    done = reseal(new_key_file, "--data-dir", str(data_dir), settings={"MASTER_KEY": OTHER_KEY})
    assert done.refusal == f"SOUNDMARK_MASTER_KEY is not the key in {data_dir / 'master.key'}; unset it"
    assert opens_under(connection, MASTER_KEY)


def test_a_data_dir_whose_key_comes_from_outside_gets_none(
    connection: psycopg.Connection[Any], data_dir: Path, new_key_file: Path
) -> None:
    """`up` was given its key by the environment, and wrote it nowhere."""
    given_secret(connection)
    (data_dir / "master.key").unlink()
    done = reseal(new_key_file, "--data-dir", str(data_dir), settings={"MASTER_KEY": MASTER_KEY})
    assert done.status == 0
    assert sorted(path.name for path in data_dir.iterdir()) == ["up.json"]

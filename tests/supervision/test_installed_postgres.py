"""An installed PostgreSQL in place of the bundled one: SOUNDMARK_POSTGRES_BIN.

The wheel holds a second PostgreSQL, 16, so there is always one to test; every installed one is tested too.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.processes.up_process import passable_folder, refused_up, running_up, write_note

from soundmark.embedded import installation
from soundmark.embedded.installation import NoPostgres, find_chosen_programs, version_of
from soundmark.embedded.postgres import Cluster, ClusterFailed
from soundmark.embedded.throwaway import throwaway_cluster
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.postgres.releases import find_warning, is_supported, major_of, write_version
from soundmark.operating_system.os_user import OsUser, can_run, unprivileged_user
from soundmark.supervision.plan import name_databases

SECOND = "of the wheel"
# Debian's and Ubuntu's place, and that of the project's own packages for Fedora and its relatives.
INSTALLED = {
    str(path): path for pattern in ("lib/postgresql/*/bin", "pgsql-*/bin") for path in Path("/usr").glob(pattern)
}


@pytest.fixture(scope="module")
def user() -> OsUser | None:
    """An ordinary user of this machine."""
    return unprivileged_user()


@pytest.fixture(scope="module")
def second(user: OsUser | None) -> Iterator[Path]:
    """The folder of the wheel's other PostgreSQL, at a place that its user can reach."""
    shipped = installation._find_shipped().with_name("pginstall")
    if can_run(user, [str(shipped / "bin" / "postgres"), "--version"]):
        yield shipped / "bin"
        return
    with passable_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation, "SYSTEM_DIRECTORY", folder)
        installation._copy(shipped, folder / "second")
        yield folder / "second" / shipped.parent.name / shipped.name / "bin"


def programs_that_say(folder: Path, version: str, *, initdb_version: str | None = None) -> Path:
    """Make a folder of programs that print their version and do nothing else."""
    for name, output in {"postgres": version, "initdb": initdb_version or version}.items():
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {output}'\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_folder_without_the_programs_is_named(tmp_path: Path) -> None:
    output = (
        f"SOUNDMARK_POSTGRES_BIN: there is no postgres and no initdb in {tmp_path}; "
        "name the folder that contains both, such as /usr/lib/postgresql/18/bin"
    )
    assert refused_up(tmp_path / "data", environ={"SOUNDMARK_POSTGRES_BIN": str(tmp_path)}) == f"soundmark: {output}"
    programs_that_say(tmp_path, "18.7")
    (tmp_path / "initdb").unlink()
    with pytest.raises(NoPostgres, match=f"there is no initdb in {tmp_path}"):
        find_chosen_programs(tmp_path, None)


@pytest.mark.parametrize(("version", "written"), [("14.23 (Debian 14.23-1)", "14.23"), ("19beta1", "19.0")])
def test_a_release_that_soundmark_does_not_run_on_is_named(tmp_path: Path, version: str, written: str) -> None:
    programs_that_say(tmp_path, version)
    with pytest.raises(NoPostgres) as refusal:
        find_chosen_programs(tmp_path, None)
    assert str(refusal.value) == (
        f"SOUNDMARK_POSTGRES_BIN: {tmp_path} contains PostgreSQL {written}, but Soundmark supports 15 to 18"
    )


def test_both_programs_must_have_the_same_version(tmp_path: Path) -> None:
    assert version_of(programs_that_say(tmp_path, "17.13 (Debian 17.13-1.pgdg12+1)"), None) == 170013
    assert version_of(programs_that_say(tmp_path, "18rc1"), None) == 180000
    with pytest.raises(NoPostgres, match="or are not of one release"):
        version_of(programs_that_say(tmp_path, "17.13", initdb_version="17.12"), None)
    with pytest.raises(NoPostgres, match=f"the PostgreSQL programs in {tmp_path} cannot be run"):
        version_of(programs_that_say(tmp_path, "of nobody's making"), None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has somebody else run PostgreSQL")
def test_programs_out_of_the_users_reach_are_reported(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    user = unprivileged_user()
    assert user is not None
    with pytest.raises(NoPostgres, match=f"in {closed} cannot be run by the user {user.name}"):
        find_chosen_programs(programs_that_say(closed, "18.7"), user)


def test_a_cluster_of_another_major_is_named(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, None, Path("/usr/lib/postgresql/15/bin"))
    cluster.require_major(150021)
    cluster.data.mkdir()
    (cluster.data / "PG_VERSION").write_text("18\n")
    cluster.require_major(180007)
    with pytest.raises(ClusterFailed) as refusal:
        cluster.require_major(150021)
    assert str(refusal.value) == (
        f"the database in {tmp_path} was created by PostgreSQL 18, but /usr/lib/postgresql/15/bin contains 15.21; "
        "set SOUNDMARK_POSTGRES_BIN to the folder of an installed PostgreSQL 18 (or unset it for the bundled one), "
        "or use another data dir"
    )


@pytest.mark.parametrize("name", [SECOND, *INSTALLED])
def test_both_components_have_their_tables_on_every_release(name: str, second: Path, user: OsUser | None) -> None:
    folder = INSTALLED.get(name, second)
    if not is_supported(version_of(folder, user)):
        with pytest.raises(NoPostgres, match="but Soundmark supports"):
            find_chosen_programs(folder, user)
        return
    with throwaway_cluster(folder=find_chosen_programs(folder, user)) as running:
        for component in ("core", "audience"):
            url = running.create_role_and_database(f"{component}_on_another")
            migrate(url, f"soundmark.{component}")
            with psycopg.connect(url.reveal()) as connection:
                assert connection.info.server_version == version_of(folder, user)


@pytest.mark.xdist_group("up")
def test_up_runs_on_the_named_postgres_and_on_no_other_afterwards(second: Path, user: OsUser | None) -> None:
    usable = [folder for folder in (second, *INSTALLED.values()) if is_supported(version_of(folder, user))]
    folder = min(usable, key=lambda one: version_of(one, user))
    version = version_of(folder, user)
    chosen = {"SOUNDMARK_POSTGRES_BIN": str(folder)}
    with passable_folder() as directory:
        data_dir = directory / "data"
        with running_up(data_dir, environ=chosen) as up:
            write_note(up.until_ready(), "on another")
            with psycopg.connect(up.where["core_database_url"]) as connection:
                assert connection.info.server_version == version
            warnings = [line.split(maxsplit=1)[1] for line in up.printed.splitlines() if "  Warning " in line]
            assert warnings == [warning for warning in [find_warning(version)] if warning]
            assert all("SOUNDMARK_POSTGRES_BIN" not in child.environ() for child in up.children().values())
            assert up.stop(signal.SIGTERM) == 0
        bundled = write_version(version_of(installation.find_programs(user), user))
        line = refused_up(data_dir, "--port", "0")
        assert f"was created by PostgreSQL {major_of(version)}, but " in line
        advice = f"set SOUNDMARK_POSTGRES_BIN to the folder of an installed PostgreSQL {major_of(version)} "
        assert f" contains {bundled}; {advice}" in line
        again = Cluster(data_dir / "postgresql", user, folder).start()
        try:
            with psycopg.connect(again.superuser_url_of(name_databases()["core"]).reveal()) as connection:
                assert connection.execute("SELECT text FROM remembered").fetchall() == [("on another",)]
        finally:
            again.stop()

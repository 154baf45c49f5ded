"""A running `soundmark up`: its processes, its secrets, and its reaction when a part of it dies."""

import socket
import stat
import subprocess
from pathlib import Path

import httpx2
import psutil
import psycopg
import pytest
from support.processes.command_server import find_forked_soundmark
from support.processes.up_process import (
    PROCESSES,
    READY_S,
    Up,
    clean_environ,
    each_still_there,
    read_notes,
    refused_up,
    status_of,
    until,
    write_note,
)

from soundmark.embedded.postgres import choose_shared_buffers_mib
from soundmark.kit.postgres.releases import KNOWN_GOOD, major_of, write_version
from soundmark.operating_system.memory import find_memory_bytes

pytestmark = pytest.mark.xdist_group("up")

DATABASES = ["core_database_url", "audience_database_url"]
POSTGRES = "postgres"


def test_each_part_is_a_process_of_its_own_that_answers(up: Up) -> None:
    assert set(up.children()) == set(PROCESSES)
    assert all(up.answers(component) for component in ("base", "audience", "audio", "console"))
    assert [status_of(url) for url in up.where["metrics_urls"].values()] == [200, 200, 200, 200]


def test_up_json_holds_exactly_what_is_documented_for_the_owner_alone(up: Up) -> None:
    assert set(up.where) == {
        "metrics_urls",
        "base_url",
        "audience_url",
        "audio_url",
        "console_url",
        "operator_token",
        "core_database_url",
        "audience_database_url",
        "cells",
        "pid",
    }
    cell = {name: up.where[name] for name in ("audience_url", "audience_database_url")}
    assert up.where["cells"] == [{"name": "main", **cell}]
    assert set(up.where["metrics_urls"]) == {"core", "audience", "audio", "console"}
    assert up.where["pid"] == up.process.pid
    for name in ("up.json", "master.key", "lock"):
        assert stat.S_IMODE((up.data_dir / name).stat().st_mode) == 0o600


def test_no_secret_is_printed_or_passed_on_a_command_line(up: Up) -> None:
    """Every user of a machine may list processes, and terminals are shared and recorded."""
    until(lambda: str(up.up_file) in up.printed, 20)
    seen = up.printed + "".join(each_still_there(up.everything(), lambda process: " ".join(process.cmdline())))
    assert str(up.up_file) in seen
    secrets = [up.where["operator_token"], (up.data_dir / "master.key").read_text().strip()]
    secrets += [psycopg.conninfo.conninfo_to_dict(up.where[name])["password"] for name in DATABASES]
    assert not [secret for secret in secrets if secret in seen]


def test_each_component_gets_its_own_settings_and_no_other_secret(up: Up) -> None:
    environs = {name: set(process.environ()) for name, process in up.children().items()}
    core = up.children()["serve core"].environ()
    assert (core["SOUNDMARK_LOG_LEVEL"], core["SOUNDMARK_RESOLVE_RATE_LIMIT"]) == ("warning", "1000")
    secrets_of_core = {"SOUNDMARK_OPERATOR_TOKEN", "SOUNDMARK_MASTER_KEY", "SOUNDMARK_CORE_DATABASE_URL"}
    assert secrets_of_core <= environs["serve core"]
    assert not secrets_of_core & (environs["serve audio"] | environs["work audience"])
    assert secrets_of_core & environs["serve console"] == {"SOUNDMARK_OPERATOR_TOKEN"}
    assert secrets_of_core & environs["serve audience"] == {"SOUNDMARK_MASTER_KEY"}
    audiences = up.children()["serve audience"].environ()["SOUNDMARK_MASTER_KEY"]
    assert audiences not in core.values(), "it is one of its own"
    assert (
        "SOUNDMARK_AUDIENCE_DATABASE_URL"
        not in environs["serve core"] | environs["serve audio"] | environs["serve console"] | environs["work core"]
    )
    assert {name for name in environs["work core"] if name.startswith("SOUNDMARK_")} == {
        "SOUNDMARK_AUDIENCE_CREDENTIAL",
        "SOUNDMARK_AUDIENCE_URL",
        "SOUNDMARK_BASE_URL",
        "SOUNDMARK_CONSOLE_URL",
        "SOUNDMARK_CORE_DATABASE_URL",
        "SOUNDMARK_LOG_LEVEL",
        "SOUNDMARK_MASTER_KEY",
        "SOUNDMARK_WEBHOOK_ALLOW_LOOPBACK",
    }
    assert not [name for name in environs[POSTGRES] if name.startswith("SOUNDMARK_")]


def test_only_loopback_is_listened_on(up: Up) -> None:
    listening = [
        connection.laddr.ip
        for connections in each_still_there(up.everything(), lambda process: process.net_connections("inet"))
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) == 9  # Four components, their metrics, and PostgreSQL.
    assert set(listening) == {"127.0.0.1"}


def test_postgres_runs_with_safe_settings(up: Up) -> None:
    details = psycopg.conninfo.conninfo_to_dict(up.where["core_database_url"])
    details["password"] = (up.data_dir / "postgresql" / "superuser.password").read_text()
    expected = {
        **dict.fromkeys(("fsync", "full_page_writes", "synchronous_commit", "data_checksums"), "on"),
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "ssl": "off",
        "password_encryption": "scram-sha-256",
        "server_encoding": "UTF8",
        "shared_buffers": str(choose_shared_buffers_mib(find_memory_bytes()) * 128),  # Pages of 8 KiB.
    }
    with psycopg.connect(**{**details, "user": "postgres"}) as connection:
        rows = connection.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(expected)])
        assert dict(rows.fetchall()) == expected
        collation = connection.execute("SELECT datcollate FROM pg_database WHERE datname = current_database()")
        assert collation.fetchone() == ("C",)


def test_the_included_postgres_is_named_once_and_calmly_as_one_for_trying(up: Up) -> None:
    """It is as new as its wheel, which follows PostgreSQL's security releases late."""
    with psycopg.connect(up.where["core_database_url"]) as connection:
        version = connection.info.server_version
    good = KNOWN_GOOD[major_of(version)]
    lacks = f", without the security fixes of {write_version(good)}" if version < good else ""
    named = [line.strip() for line in up.printed.splitlines() if "PostgreSQL" in line and "Runs as" not in line]
    assert named == [f"PostgreSQL      {write_version(version)}, included for trying only{lacks}"]
    assert "Warning" not in up.printed
    for component in ("base_url", "audience_url"):
        answer = httpx2.get(f"{up.where[component]}/readyz", trust_env=False)
        assert (answer.status_code, answer.json()["status"]) == (200, "ready")


@pytest.mark.parametrize("own", DATABASES)
def test_a_role_can_connect_to_its_own_database_only(up: Up, own: str) -> None:
    (foreign,) = set(DATABASES) - {own}
    for database in (up.where[foreign].rpartition("/")[2], "postgres", "template1"):
        url = up.where[own].rpartition("/")[0] + "/" + database
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(url)


@pytest.mark.parametrize("own", DATABASES)
def test_a_role_has_no_privilege_beyond_its_database(up: Up, own: str) -> None:
    with psycopg.connect(up.where[own]) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
            "  FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
    assert row == (False,) * 5


def test_nobody_connects_without_the_password(up: Up) -> None:
    details = psycopg.conninfo.conninfo_to_dict(up.where["core_database_url"])
    for role in ("soundmark_core", "postgres"):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(**{**details, "user": role, "password": "guessed"})


def test_a_second_up_on_the_same_data_dir_is_refused(up: Up) -> None:
    line = refused_up(up.data_dir, "--port", "0")
    assert line == f"soundmark: already running on {up.data_dir} (pid {up.process.pid})"
    assert up.answers("base")


def test_a_port_that_another_program_uses_is_refused(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert refused_up(folder / "data", "--port", str(port)) == (
            f"soundmark: 127.0.0.1:{port} is in use by another program; "
            "choose another port with --port (make up PORT=8181)"
        )


def test_the_port_of_another_deployment_is_refused(up: Up, folder: Path) -> None:
    """Both belong to us, and a kernel that spreads connections would give each half of them."""
    port = up.where["base_url"].rpartition(":")[2]
    assert "is in use by another program" in refused_up(folder / "data", "--port", port)


def test_the_data_dir_serves_as_configuration_of_other_commands(up: Up) -> None:
    done = subprocess.run(
        [find_forked_soundmark(), "migrate", "core", "--data-dir", str(up.data_dir)],
        check=True,
        capture_output=True,
        env=clean_environ(),
    )
    assert done.stderr == b"core: already current\n"


@pytest.mark.parametrize("name", PROCESSES)
def test_a_killed_process_is_restarted_and_nothing_is_lost(up: Up, name: str) -> None:
    write_note(up, name)
    before = up.where
    killed = up.children()[name]
    killed.kill()
    until(lambda: up.children().get(name, killed).pid != killed.pid, READY_S)
    until(lambda: all(up.answers(component) for component in ("base", "audience", "audio", "console")), READY_S)
    until(lambda: set(up.children()) == set(PROCESSES), READY_S)
    # Readiness is checked once a second: right after PostgreSQL's death it may still be the previous result.
    until(lambda: is_open(up), READY_S)
    assert name in read_notes(up)
    assert up.where == before


def is_open(up: Up) -> bool:
    try:
        psycopg.connect(up.where["core_database_url"]).close()
    except psycopg.OperationalError:
        return False
    return True


def test_the_superuser_password_is_for_its_owner_alone(up: Up) -> None:
    password = up.data_dir / "postgresql" / "superuser.password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert stat.S_IMODE(password.parent.stat().st_mode) == 0o700

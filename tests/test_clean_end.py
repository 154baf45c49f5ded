"""Tests leave nothing behind, also those that fail: no lent connection, no command, no temporary file."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest
from support.database.connections import borrow, borrow_async
from support.processes.command_server import run_command, running_command_server
from support.processes.leftovers import clean_temporary_folder

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port

_BACKENDS = "SELECT pid FROM pg_stat_activity WHERE pid = %s"


@pytest.fixture
def url(cluster: RunningCluster) -> Secret:
    """The URL of the superuser's database."""
    return cluster.superuser_url_of("postgres")


def test_a_connection_is_lent_again(url: Secret) -> None:
    with borrow(url) as one:
        pass
    with borrow(url) as other:
        assert other is one


@pytest.mark.parametrize("statement", ["BEGIN", "BEGIN; SELECT 1 / 0", "SELECT 1 / 0"])
async def test_a_connection_that_comes_back_unusable_is_closed(url: Secret, statement: str) -> None:
    """In a transaction, in a failed one, or from a test that failed."""
    with pytest.raises((AssertionError, psycopg.errors.DivisionByZero)), borrow(url) as one:
        one.execute(statement.encode())
    with pytest.raises((AssertionError, psycopg.errors.DivisionByZero)):
        async with borrow_async(url) as two:
            await two.execute(statement.encode())
    assert one.closed
    assert two.closed


def test_a_connection_that_the_server_ended_is_not_lent(url: Secret) -> None:
    with borrow(url) as one:
        pid = one.info.backend_pid
    with psycopg.connect(url.reveal(), autocommit=True) as killer:
        killer.execute("SELECT pg_terminate_backend(%s)", [pid])
        while killer.execute(_BACKENDS, [pid]).fetchone() is not None:
            pass
    with borrow(url) as other:
        assert other is not one
        assert other.execute("SELECT 1").fetchone() == (1,)


def test_a_command_ends_when_its_test_hangs_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"SOUNDMARK_AUDIO_CREDENTIAL": "a-credential-of-audio"}
    with running_command_server(["soundmark.audio.app", "soundmark.cli.serve"]) as server:
        monkeypatch.chdir(tmp_path)  # After the start of the server, which is to stay elsewhere.
        with reserve_port("127.0.0.1", 0) as reserved:
            command = ["serve", "audio", "--beside-others", "--port", str(reserved.getsockname()[1])]
            with pytest.raises(TimeoutError):
                run_command(server, command, environ, timeout_s=2)
        while any(is_in(child, tmp_path) for child in psutil.process_iter() if child.pid != os.getpid()):
            pass


def is_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return Path(process.cwd()) == folder
    except (psutil.Error, OSError):
        return False


def test_a_file_that_is_left_behind_is_found() -> None:
    with pytest.raises(AssertionError, match="soundmark-left"), clean_temporary_folder() as folder:
        (folder / "soundmark-left").touch()
    assert not folder.exists()


def test_a_process_that_is_left_behind_is_found() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as known:
        left: list[subprocess.Popen[bytes]] = []
        with pytest.raises(AssertionError, match="print") as raised, clean_temporary_folder():
            left.append(subprocess.Popen([sys.executable, "-c", "print(input())"], stdin=subprocess.PIPE))
        for process in (known, *left):
            process.communicate(b"end\n")
        assert "-c input()" not in str(raised.value)

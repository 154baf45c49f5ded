"""Start and end of `soundmark up`: orderly and by `kill -9`, as root and as an ordinary user, and its refusals."""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.console.links import printed_link, redeem_as_owner, refused_link, tickets_of
from support.processes.guide_blocks import ROOT
from support.processes.ordinary_user import OrdinaryUser
from support.processes.up_process import (
    END_S,
    READY_S,
    Up,
    clean_environ,
    each_still_there,
    has_ended,
    read_notes,
    refused_up,
    running_up,
    until,
    write_note,
)

from soundmark.embedded.installation import SYSTEM_DIRECTORY

from .conftest import FirstRun

pytestmark = pytest.mark.xdist_group("up")

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has somebody else run PostgreSQL")


def test_make_up_shows_the_main_job_serves_on_and_stops_in_order_on_ctrl_c(first_run: FirstRun) -> None:
    """The output of the first of the two commands that a newcomer runs."""
    printed, data_dir = first_run.printed, first_run.data_dir
    assert printed.index("Soundmark is ready") < printed.index("1. organisation created")
    assert (data_dir / "demo.wav").stat().st_size > 100_000
    assert (data_dir / "demo.png").read_bytes().startswith(b"\x89PNG")
    demo = printed[printed.index("1. organisation created") : printed.index("The verified intent")]
    assert [line.partition(".")[0] for line in demo.splitlines()] == ["1", "2", "3", "4", "5", "6", "7"]
    assert first_run.answering == ["base", "audience", "audio", "console"]

    assert (first_run.status, first_run.left) == (0, [])
    assert not (data_dir / "up.json").exists()
    assert "process_killed" not in printed
    assert "not properly shut down" not in _postgres_log(data_dir)
    assert printed.splitlines()[-1] == "Stopping, after finishing the open requests."
    assert printed.count("Stopping") == 1


def test_readme_shows_what_make_up_prints(first_run: FirstRun) -> None:
    """Addresses, times and ids differ; the lines, their order and their words do not."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme[readme.index("Soundmark is ready.") :].partition("```")[0]
    begun = first_run.printed.index("Soundmark is ready.")
    printed = first_run.printed[begun : first_run.printed.index("The verified intent")]
    assert _words_of(printed) == _words_of(shown.partition("The verified intent")[0])


def _words_of(printed: str) -> list[str]:
    """Return the beginning of each line; root has its services run as somebody else, and says so."""
    lines = [line for line in printed.splitlines() if not line.startswith(("  Runs as", "  Database"))]
    return [re.split(r" {2,}|\d+\.\d| at http", line.strip())[0] for line in lines]


def test_a_signal_during_the_start_stops_what_has_started(seeded: Path) -> None:
    with running_up(seeded) as up:
        until(lambda: "postgres" in up.children(), 30)
        everything = up.everything()
        assert up.stop() == 0
        assert all(has_ended(process) for process in everything)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("event", "argument"), [("import", "soundmark.supervision.up"), ("os.mkdir", "{data_dir}")])
def test_a_signal_before_the_start_ends_it_in_order(
    tmp_path: Path, event: str, argument: str, signum: signal.Signals
) -> None:
    """While it still loads its modules, and before its event loop takes the signals."""
    data_dir = tmp_path / "data"
    at = (event, argument.format(data_dir=data_dir))
    code = (
        "import signal, sys; from soundmark.cli import main\n"
        f"sys.addaudithook(lambda event, of: (event, str(of[:1] and of[0])) == {at!r}"
        f" and signal.raise_signal({signum.value}))\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "up", "--data-dir", str(data_dir)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=clean_environ(), timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "is ready" not in done.stdout
    assert not data_dir.exists()


def test_an_ordinary_user_can_run_it_alone_and_loses_nothing_by_a_kill(ordinary: OrdinaryUser, folder: Path) -> None:
    """The next `up` need not wait: it starts while the children of the killed one still finish, on the same port.

    It forgets the sign-in links of earlier runs.
    """
    home = folder / "home"
    home.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(home, ordinary.uid, ordinary.gid)
    data_dir = home / "data"

    def start(port: str = "0") -> contextlib.AbstractContextManager[Up]:
        options = {"command": ordinary.command, "environ": ordinary.environ, **ordinary.options()}
        return running_up(data_dir, arguments=("--port", port), **options)

    with start() as up:
        write_note(up.until_ready(), "before the supervisor was killed")
        assert up.owners() == {ordinary.uid}
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
        ticket = printed_link(up)[2]
        port = up.where["base_url"].rpartition(":")[2]
        everything = up.everything()
        up.process.kill()
        up.process.wait()
        assert up.up_file.exists()
        with start(port) as again:
            assert read_notes(again.until_ready()) == ["before the supervisor was killed"]
            assert again.where["base_url"].endswith(f":{port}")
            until(lambda: all(has_ended(process) for process in everything), END_S)
            assert len(list(tickets_of(again).iterdir())) == 1
            assert not redeem_as_owner(tickets_of(again), ticket)

            write_note(again, "before everything was killed")
            everything = again.everything()
            assert len(everything) > 8
            each_still_there(everything, psutil.Process.suspend)
            each_still_there(everything, psutil.Process.kill)
            again.process.wait()
            refusal = refused_link(data_dir, ordinary.command, ordinary.environ)
            assert refusal == (
                f"{data_dir}/up.json is from a `soundmark up` that was killed: none is running there; start it again"
            )
    with start() as last:
        assert read_notes(last.until_ready()) == ["before everything was killed", "before the supervisor was killed"]
        assert last.stop(signal.SIGINT) == 0


@pytest.fixture
def unreachable(tmp_path: Path) -> Iterator[Path]:
    """A data dir below a folder that belongs to root alone, without leftovers elsewhere afterwards."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    existed = SYSTEM_DIRECTORY.exists()
    yield closed / "data"
    cluster = (closed / "data" / "postgresql.location").read_text().strip()
    shutil.rmtree(cluster)
    for name in ("sign-in-tickets", "console-state"):
        shutil.rmtree(f"{cluster}-{name}")
    if not existed:
        with contextlib.suppress(OSError):  # Another user put something there meanwhile.
            SYSTEM_DIRECTORY.rmdir()


@only_root
def test_a_cluster_that_cannot_be_reached_in_the_data_dir_lives_elsewhere_and_stays_there(unreachable: Path) -> None:
    with running_up(unreachable) as up:
        up.until_ready()
        (line,) = [line for line in up.printed.splitlines() if str(SYSTEM_DIRECTORY) in line]
        assert up.stop() == 0
    assert "cannot reach the data dir" in line
    assert stat.S_IMODE(unreachable.parent.stat().st_mode) == 0o700
    assert not (unreachable / "postgresql").exists()
    # Even if the data dir can be reached later: the cluster stays where it is.
    unreachable.parent.chmod(0o711)
    place = (unreachable / "postgresql.location").read_text().strip()
    with running_up(unreachable) as again:
        until(lambda: "postgres" in again.children(), READY_S)
        assert f"{place}/data" in again.children()["postgres"].cmdline()
        assert again.stop() == 0


def test_a_missing_master_key_is_never_replaced(seeded: Path) -> None:
    key = seeded / "master.key"
    kept = key.rename(seeded / "master.key.kept")
    try:
        assert "is missing, and without it the sealed values in the database cannot be opened" in refused_up(seeded)
        assert not key.exists()
    finally:
        kept.rename(key)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SOUNDMARK_RESOLVE_RATE_LIMITS", "120", "SOUNDMARK_RESOLVE_RATE_LIMITS: no such setting"),
        ("SOUNDMARK_RESOLVE_RATE_LIMIT", "none", "SOUNDMARK_RESOLVE_RATE_LIMIT: "),
        ("SOUNDMARK_CORE_DATABASE_URL", "postgresql://a@b/c", "`up` runs its own PostgreSQL"),
        ("SOUNDMARK_AUDIO_URL", "http://127.0.0.1:1", "`up` runs Audio itself"),
        ("SOUNDMARK_MASTER_KEY", "A" * 43, "is not the key in"),
        ("SOUNDMARK_OPERATOR_TOKEN", "short", "SOUNDMARK_OPERATOR_TOKEN: must be xop_ followed by 43"),
    ],
)
def test_an_invalid_setting_is_refused_before_anything_runs(seeded: Path, name: str, value: str, message: str) -> None:
    line = refused_up(seeded, "--port", "0", environ={name: value})
    assert message in line
    assert value not in line.removeprefix(f"soundmark: {name}")


def _postgres_log(data_dir: Path) -> str:
    return "".join(file.read_text() for file in (data_dir / "postgresql" / "data" / "log").iterdir())

"""docs/operating/point-in-time.md with real programs: a restore has what there was at its time, and nothing later.

Run by `make test-deploy`; as root, because PostgreSQL runs as another user. It needs Debian's PostgreSQL 15.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.processes.up_process import until

ROOT: Final = Path(__file__).parents[2]
GUIDE: Final = (ROOT / "docs" / "operating" / "point-in-time.md").read_text("utf-8")
BLOCKS: Final = re.findall(r"^```(?:sh|ini)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
PROGRAMS: Final = Path("/usr/lib/postgresql/15/bin")


def block_with(text: str) -> str:
    (found,) = [block for block in BLOCKS if text in block]
    return str(found)


class Server:
    """A PostgreSQL in `home` that archives as the guide says."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        text = (ROOT / "deploy" / "pgbackrest" / "pgbackrest.conf").read_text("utf-8")
        text = re.sub(r"(?<=repo1-path=).*", str(home / "repository"), text)
        text = re.sub(r"(?<=pg1-path=).*", f"{self.data}\npg1-port=6543\npg1-socket-path={home}", text)
        own = f"repo1-cipher-pass=of-this-test\nlock-path={home}\nspool-path={home}\n"
        (home / "pgbackrest.conf").write_text(text.replace("[global]\n", f"[global]\n{own}"), "utf-8")
        self.run(f"{PROGRAMS}/initdb --pgdata={self.data} --auth=trust --encoding=UTF8 --locale=C.UTF-8")
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(self.here(block_with("archive_command")))
            settings.write(f"port = 6543\nlisten_addresses = ''\nunix_socket_directories = '{home}'\n")

    def here(self, commands: str) -> str:
        return re.sub(r"\bpgbackrest(?= --stanza)", f"pgbackrest --config={self.home}/pgbackrest.conf", commands)

    def run(self, commands: str) -> str:
        program = ["runuser", "-u", "postgres", "--", "sh", "-eu", "-c", self.here(commands)]
        done = subprocess.run(program, check=False, capture_output=True, text=True, cwd=self.home, timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def start(self) -> None:
        self.run(f"{PROGRAMS}/pg_ctl --pgdata={self.data} --log={self.home}/log --wait start")

    def stop(self) -> None:
        self.run(f"{PROGRAMS}/pg_ctl --pgdata={self.data} --mode=fast --wait stop")

    def ask(self, statement: str) -> str:
        return self.run(f'{PROGRAMS}/psql -XAtq -h {self.home} -p 6543 -c "{statement}"')


@pytest.fixture
def server() -> Iterator[Server]:
    assert os.geteuid() == 0, "run `make test-deploy` as root"
    home = Path(tempfile.mkdtemp(prefix="soundmark-"))
    shutil.chown(home, "postgres", "postgres")
    made = Server(home)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(home)


def test_a_restore_has_what_there_was_at_its_time_and_nothing_later(server: Server) -> None:
    server.run(block_with("stanza-create"))
    server.ask("CREATE TABLE codes (name text)")
    server.ask("INSERT INTO codes VALUES ('before')")
    moment = server.ask("SELECT clock_timestamp()")
    server.ask("INSERT INTO codes VALUES ('after')")
    server.ask("SELECT pg_switch_wal()")
    server.stop()
    restore = block_with("--type=time")
    assert "--target='2026-11-26 12:00:00+00'" in restore
    server.run(restore.replace("2026-11-26 12:00:00+00", moment))
    server.start()
    until(lambda: server.ask("SELECT pg_is_in_recovery()") == "f", 60)
    assert server.ask("SELECT name FROM codes") == "before"
    assert server.ask("SHOW archive_mode") == "on"

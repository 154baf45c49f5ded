"""A real PgBouncer in front of a database."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import psycopg

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port

# Few, so that in transaction mode the sessions of the server really change hands.
_SERVERS = {"transaction": 4, "session": 60}


@contextlib.contextmanager
def running_pgbouncer(url: Secret, mode: Literal["transaction", "session"]) -> Iterator[Secret]:
    """Run a pooler in front of the database at `url` until the block ends, and yield the URL through it.

    It refuses startup options, as it does unless it is told to ignore them.
    """
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    assert program, "pgbouncer is needed: `make test-tools` installs it"
    parts = urlsplit(url.reveal())
    with tempfile.TemporaryDirectory() as folder, reserve_port("127.0.0.1", 0) as reserved:
        port = reserved.getsockname()[1]
        file = Path(folder, "pgbouncer.ini")
        file.write_text(
            "[databases]\n"
            f"{parts.path[1:]} = host={parts.hostname} port={parts.port} user={parts.username}"
            f" password={parts.password}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\npool_mode = {mode}\n"
            f"default_pool_size = {_SERVERS[mode]}\nmax_client_conn = 200\nso_reuseport = 1\n",
            encoding="utf-8",
        )
        Path(folder).chmod(0o755)
        # It refuses to run as root.
        as_user: dict[str, Any] = (
            {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        )
        with subprocess.Popen([program, "-q", str(file)], stderr=subprocess.DEVNULL, **as_user) as process:
            try:
                pooled = Secret(f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}")
                _wait_for(pooled, process)
                yield pooled
            finally:
                process.kill()


def _wait_for(url: Secret, process: subprocess.Popen[bytes]) -> None:
    while True:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(url.reveal()).close()
            return
        assert process.poll() is None, "pgbouncer must start"
        time.sleep(0.02)

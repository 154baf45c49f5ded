"""`up --reload` as a contributor runs it, and a component in a debugger beside it."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.up_process import READY_S, Up, clean_environ, running_up, status_of, until

from soundmark.kit.http.server.sockets import reserve_port

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

SOURCE = Path(__file__).parents[2] / "src" / "soundmark"


@pytest.fixture
def developing(seeded: Path) -> Iterator[Up]:
    """An `up --reload` that is ready."""
    with running_up(seeded, arguments=("--port", "0", "--reload")) as running:
        yield running.until_ready()


def test_a_change_restarts_its_component_and_a_debugger_runs_beside_the_others(developing: Up) -> None:
    before = developing.children()
    until((developing.data_dir / "core.env").exists, READY_S)

    def has_restarted() -> bool:
        return developing.children().get("serve audio") not in {None, before["serve audio"]}

    for _ in range(10):  # The watch begins some time after everything is ready.
        (SOURCE / "audio" / "app.py").touch()
        with contextlib.suppress(AssertionError):
            until(has_restarted, 5)
            break
    assert has_restarted()
    assert developing.children()["serve core"] == before["serve core"]

    with reserve_port("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        shell = (
            f"set -a; . {developing.data_dir}/core.env; set +a\nexec {sys.executable} -m pdb -c continue -m soundmark"
        )
        command = ["sh", "-c", f"{shell} serve core --port {port}"]
        with subprocess.Popen(command, env=clean_environ(), stdin=subprocess.DEVNULL) as process:
            try:
                until(lambda: status_of(f"http://127.0.0.1:{port}/readyz") == 200, READY_S)
                assert developing.answers("base")
            finally:
                process.terminate()

"""docs/guides/measuring.md: every command and program runs in the page's order, and prints the output on the page."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from PIL import Image
from soundmark_sdk import DeliveryReason
from soundmark_sdk.failures import RETRYABLE_DELIVERY_REASONS
from soundmark_sdk.measuring import RECEIVER_CLASSES, Obstacle
from soundmark_sdk.publisher import configuration
from support.processes.secret_leaks import remember_secret
from support.processes.up_process import Up, clean_environ, status_of, until

from soundmark.kit.http.server.sockets import shared_socket

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

PAGE: Final = (Path(__file__).parents[2] / "docs" / "guides" / "measuring.md").read_text(encoding="utf-8")
SERVICE: Final = "http://127.0.0.1:8080"
BACKEND: Final = "127.0.0.1:8090"
PORT_OPTION: Final = "--port 8090"
# A program or some commands, and the block right below with the output.
STEPS: Final = re.findall(r"^```(sh|python)\n(.*?)^```(?:\n\n```text\n(.*?)^```)?$", PAGE, re.MULTILINE | re.DOTALL)


class Reader:
    """A reader who follows the page in a checkout, and opens another terminal where it says so."""

    def __init__(self, checkout: Path, service: str, port: int) -> None:
        self.checkout, self.service, self.port = checkout, service, port
        self.backend: subprocess.Popen[bytes] | None = None

    def follow(self, language: str, text: str) -> str:
        written = (
            text.replace(SERVICE, self.service)
            .replace(BACKEND, f"127.0.0.1:{self.port}")
            .replace(PORT_OPTION, f"--port {self.port}")
        )
        script = self.checkout / f"program.{language}"
        script.write_text(written, encoding="utf-8")
        command = ["bash", "-eu"] if language == "sh" else [sys.executable, "-W", "error"]
        if "uvicorn" in written:
            self._open_a_terminal([*command, str(script)])
            return ""
        done = subprocess.run(
            [*command, str(script)],
            check=False,
            capture_output=True,
            text=True,
            timeout=90,
            cwd=self.checkout,
            env=clean_environ({"XDG_CONFIG_HOME": str(self.checkout / "config"), **self.settings()}),
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def _open_a_terminal(self, command: list[str]) -> None:
        with (self.checkout / "backend.txt").open("wb") as output:
            self.backend = subprocess.Popen(
                command, cwd=self.checkout, env=clean_environ(), stdout=output, stderr=output, start_new_session=True
            )
        until(lambda: status_of(f"http://127.0.0.1:{self.port}/healthz") == 200, 60)

    def settings(self) -> dict[str, str]:
        """Return the environment variables of the terminal, once there are any."""
        file = self.checkout / ".soundmark" / "publisher.env"
        lines = file.read_text().splitlines() if file.exists() else []
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def reader(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader in a checkout where `make up` is running."""
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / ".soundmark").symlink_to(up.data_dir)
    (checkout / ".venv").symlink_to(sys.prefix)
    # Nobody listens on it any more, and it is not reassigned so soon.
    with shared_socket("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
    reader = Reader(checkout, up.where["base_url"], port)
    try:
        yield reader
    finally:
        if reader.backend is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(reader.backend.pid, signal.SIGTERM)
            reader.backend.wait(20)


def test_the_page_leads_from_a_code_to_a_picture(reader: Reader) -> None:
    for language, text, printed in STEPS:
        if text == "make up\n":
            continue
        out = reader.follow(language, text)
        if printed:
            pattern = re.escape(printed).replace("…", ".+")
            assert re.fullmatch(pattern, out), (text, out)
        if "audience report" in text:
            assert "Events" in out

    with Image.open(reader.checkout / ".soundmark" / "report.png") as picture:
        picture.load()
        assert picture.format == "PNG"
    for name in ("publisher.env", "publisher.secret", "radio.key", "reporting-token", "device-secret"):
        assert (reader.checkout / ".soundmark" / name).stat().st_mode & 0o077 == 0
    recorded = (reader.checkout / "backend.txt").read_text()
    settings = reader.settings()
    for secret in (settings["PUBLISHER_HMAC_SECRET"], settings["PUBLISHER_REPORTING_KEY"]):
        remember_secret(secret)
        assert secret not in recorded
    assert "evt_" not in recorded


def test_no_step_is_left_out() -> None:
    assert len(STEPS) == PAGE.count("```python") + PAGE.count("```sh")
    assert [text for _, text, _ in STEPS if "--plot" in text]


def rows(pattern: str) -> list[Any]:
    return re.findall(pattern, PAGE, re.MULTILINE)


def test_the_tables_of_outcomes_are_the_closed_sets() -> None:
    deliveries = rows(r"^\| `(\w+)` \| (yes|no) \| \S.*\|$")
    reasons = get_args(DeliveryReason)
    assert deliveries == [(reason, "yes" if reason in RETRYABLE_DELIVERY_REASONS else "no") for reason in reasons]
    table = PAGE[PAGE.index("| `obstacle` |") : PAGE.index("A receiver class that does not exist")]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)[1:] == list(get_args(Obstacle))


def test_the_tables_of_names_are_whole() -> None:
    (classes,) = rows(r"^\| `receiver_class` \| (.*) \|$")
    assert set(re.findall(r"`(\w+)`", classes)) == RECEIVER_CLASSES
    needed = {configuration.URL, configuration.INTEGRATION_ID, configuration.HMAC_SECRET, configuration.REPORTING_KEY}
    settings = {*needed, configuration.WEB_ORIGINS}
    assert set(rows(r"^\| `(PUBLISHER_\w+)` \|")) == settings
    assert set(re.findall(r"\bPUBLISHER_\w+", PAGE)) == settings

"""examples/station-playout: one Code and one file for each show, however often the script runs and is killed."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from soundmark_sdk import hear
from support.processes.faulty_proxy import FaultyProxy

from .conftest import Tenant, environ

EXAMPLES: Final = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path: Path, tenant: Tenant) -> Path:
    """A folder with the station's key."""
    key = tmp_path / "playout.key"
    key.touch(mode=0o600)
    key.write_text(tenant.key)
    return tmp_path


def run(folder: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script for a show that ends after this moment, whenever the test runs."""
    now = datetime.now(UTC)
    options = ["--service", url, "--key-file", str(folder / "playout.key"), "--issuer", "Radio Nordlicht"]
    options += ["--url", "https://example.org/tonight", "--show", f"{now:%Y-%m-%d}", "--hours", "48", *arguments]
    return subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            str(EXAMPLES / "station-playout" / "tonight.py"),
            *options,
            str(folder / "out"),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
        env=environ({}),
    )


def test_the_folder_gets_the_sound_of_one_code(tenant: Tenant, folder: Path) -> None:
    first, second = (run(folder, tenant.service.url) for _ in range(2))
    (code,) = tenant.answer("/v1/codes", project_id=tenant.project_id)["data"]
    sound = folder / "out" / f"soundmark-{datetime.now(UTC):%Y-%m-%d}.wav"
    assert (first.returncode, first.stderr) == (0, "")
    assert re.fullmatch(rf"{code['xr_id']} is valid until .* UTC\n{sound} is ready\n", first.stdout)
    assert (second.returncode, second.stdout) == (0, f"{sound} is there already\n")
    assert [frame.text for frame in hear(sound)] == [code["broadcast_frame"]]
    assert [path.name for path in (folder / "out").iterdir() if path.name[0] != "."] == [sound.name]


def test_after_a_lost_answer_the_next_run_gets_the_same_code(tenant: Tenant, folder: Path) -> None:
    with FaultyProxy(tenant.service.url, *["answer lost"] * 20, where="/v1/codes") as proxy:  # type: ignore[arg-type]  # a list of texts, each a fault
        failed = run(folder, proxy.url)
        assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (1, "", 1)
        proxy.faults.clear()
        assert run(folder, proxy.url).returncode == 0
    assert len(tenant.answer("/v1/codes", project_id=tenant.project_id)["data"]) == 1


def test_a_failure_is_one_line_that_says_what_to_change(tenant: Tenant, folder: Path) -> None:
    day = datetime.now(UTC) - timedelta(days=9)
    refused = run(folder, tenant.service.url, "--show", f"{day:%Y-%m-%d}")
    reason = "validation_failed (422): The request is invalid; body /expires_at: must be in the future\n"
    assert (refused.returncode, refused.stderr) == (1, reason)
    (folder / "playout.key").unlink()
    without_key = run(folder, tenant.service.url)
    assert (without_key.returncode, without_key.stderr.count("\n")) == (1, 1)
    assert "playout.key" in without_key.stderr

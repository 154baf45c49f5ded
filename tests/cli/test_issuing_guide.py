"""docs/guides/issuing.md: every block on the page runs as printed, in order, also over a connection that breaks."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.command_server import share_command_server
from support.processes.faulty_proxy import Fault, FaultyProxy

from .conftest import Service, environ

PAGE: Final = (Path(__file__).parents[2] / "docs" / "guides" / "issuing.md").read_text(encoding="utf-8")
SERVICE: Final = "http://127.0.0.1:8080"
# The language, a block, and the block below it with its output.
BLOCKS: Final = re.findall(r"^```(python|sh)\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a running `make up`, the command on the path, and its own `python3`."""
    (tmp_path / ".soundmark").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "soundmark").symlink_to(share_command_server().parent / "bin" / "soundmark")
    script = tmp_path / "bin" / "python3"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return tmp_path


def run(language: str, block: str, checkout: Path, url: str) -> str:
    """Return the output of a block, which must succeed without warnings."""
    program = block.replace(SERVICE, url)
    command = [sys.executable, "-W", "error", "-c", program] if language == "python" else ["sh", "-eu", "-c", program]
    given = environ({"BASE_URL": url})
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=checkout,
        env={**given, "PATH": f"{checkout / 'bin'}:{given['PATH']}"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


@contextmanager
def connection(service: Service, fault: Fault) -> Iterator[str]:
    """Proxy the service; after each request about Codes that gets through, the next one is lost."""
    if fault == "none":
        yield service.url
    else:
        with FaultyProxy(service.url, *([fault, "none"] * 50), where="/v1/codes") as proxy:  # type: ignore[arg-type]  # a list of texts, each a fault
            yield proxy.url


@pytest.mark.parametrize("fault", ["none", "answer lost", "half an answer"])
def test_every_block_prints_the_output_on_the_page(service: Service, checkout: Path, fault: Fault) -> None:
    with connection(service, fault) as url:
        up = {"base_url": url, "operator_token": OPERATOR_TOKEN}
        (checkout / ".soundmark" / "up.json").touch(mode=0o600)
        (checkout / ".soundmark" / "up.json").write_text(json.dumps(up))
        for language, block, printed in BLOCKS:
            pattern = re.escape(printed).replace("…", ".+")
            assert re.fullmatch(pattern, run(language, block, checkout, url)), block

    (organization,) = service.client.get("/v1/organizations").json()["data"]
    usage = service.client.get("/v1/usage", params={"organization_id": organization["id"]}).json()
    assert usage["codes"]["issued"] == 13, "each was issued once"


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.count("```python") + PAGE.count("```sh") > 5

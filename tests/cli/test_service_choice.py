"""Which service a command calls, and with what: option, then environment, then data dir."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from socket import create_server

import httpx2
import pytest
from support.api.core_settings import OPERATOR_TOKEN

from soundmark.cli.first_contact import FirstContact
from soundmark.supervision.data_dir import take_turn

from .conftest import COMMAND, Done, Service, Tenant, answered, environ, run

LISTING = ("organizations", "list", "--json")
INTENT = '{"type": "t", "action": "a", "resource": {}}'
NO_KEY = "no credential was given: set SOUNDMARK_API_KEY, or give --key-file or --data-dir"


def make_up(folder: Path, url: str, mode: int = 0o600) -> Path:
    """Write the files that a running `up` leaves."""
    folder.mkdir(exist_ok=True)
    file = folder / "up.json"
    file.write_text(json.dumps({"base_url": url, "operator_token": OPERATOR_TOKEN}))
    file.chmod(mode)
    return folder


@pytest.fixture
def nobody() -> str:
    """An address of this machine where nothing listens."""
    with closing(create_server(("127.0.0.1", 0))) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def key_file(tenant: Tenant, tmp_path: Path) -> Iterator[Path]:
    """A file with an API key."""
    file = tmp_path / "key"
    file.write_text(f"{tenant.key}\n")
    file.chmod(0o600)
    yield file
    file.unlink()


def test_the_option_wins_over_the_environment_and_that_over_the_data_dir(
    service: Service, nobody: str, tmp_path: Path
) -> None:
    data_dir = ("--data-dir", str(make_up(tmp_path / "data", nobody)))
    assert answered(run(*LISTING, *data_dir, "--base-url", service.url, settings={"BASE_URL": nobody}))
    assert answered(run(*LISTING, *data_dir, settings={"BASE_URL": service.url}))
    assert f"Nothing answers at {nobody}" in run(*LISTING, *data_dir).refusal


def test_an_up_in_this_folder_is_found(service: Service, nowhere: Path) -> None:
    make_up(nowhere / ".soundmark", service.url)
    assert answered(run(*LISTING)) == {"data": [], "next_cursor": None}


def test_its_operator_token_goes_nowhere_else(service: Service, nobody: str, nowhere: Path) -> None:
    make_up(nowhere / ".soundmark", nobody)
    assert run(*LISTING, "--base-url", service.url).refusal == NO_KEY
    assert run(*LISTING, settings={"BASE_URL": service.url}).refusal == NO_KEY


def test_what_a_killed_up_left_is_not_believed(service: Service, nowhere: Path) -> None:
    """Another user's program may have its port by now, and would get the operator token."""
    folder = make_up(nowhere / ".soundmark", service.url)
    with take_turn(folder):
        assert answered(run(*LISTING)) == answered(run(*LISTING, "--data-dir", str(folder)))
    assert run(*LISTING).refusal == NO_KEY
    assert run(*LISTING, "--base-url", service.url).refusal == NO_KEY
    refusal = f"{folder}/up.json is from a `soundmark up` that was killed: none is running there; start it again"
    for command in (LISTING, ("console", "link"), ("keys", "list"), ("backup", str(nowhere / "new"))):
        assert run(*command, "--data-dir", str(folder)).refusal == refusal
    assert run("demo", "--up-file", str(folder / "up.json")).refusal == refusal


def test_files_that_others_could_have_written_are_not_trusted(service: Service, nowhere: Path) -> None:
    """A downloaded folder must not decide where a key is sent."""
    make_up(nowhere / ".soundmark", service.url, mode=0o644)
    assert run(*LISTING).refusal == NO_KEY


def test_a_key_file_that_others_read_is_refused(tenant: Tenant, key_file: Path) -> None:
    listing = ("codes", "list", "--json", "--key-file", str(key_file), "--base-url", tenant.service.url)
    assert answered(run(*listing))["data"] == []
    for mode in (0o644, 0o640, 0o604, 0o660):
        key_file.chmod(mode)
        done = run(*listing)
        assert done.refusal == f"other users have access to {key_file}; run: chmod 600 {key_file}"
        assert tenant.key not in done.err


def test_a_key_may_come_through_a_pipe(tenant: Tenant) -> None:
    """For example from a password manager: `--key-file <(…)`."""
    ours, theirs = os.pipe()
    os.write(theirs, tenant.key.encode())
    os.close(theirs)
    done = subprocess.run(
        [*COMMAND, "codes", "list", "--json", "--key-file", f"/dev/fd/{ours}", "--base-url", tenant.service.url],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        pass_fds=[ours],
        env=environ({}),
    )
    os.close(ours)
    assert answered(Done(done.returncode, done.stdout, done.stderr))["data"] == []


@pytest.mark.parametrize(
    "command",
    [
        ("codes", "issue", "--issuer", "R", "--expires-in", "1h", "--intent", INTENT),
        ("campaigns", "stop", "cmp_1"),
        ("use", "org_1"),
    ],
    ids=" ".join,
)
def test_a_missing_service_is_named_at_once(nobody: str, command: tuple[str, ...]) -> None:
    done = run(*command, settings={"BASE_URL": nobody, "API_KEY": "xak_" + "k" * 43})
    assert done.refusal == (
        f"Nothing answers at {nobody} (connection refused). Start it, or name another with --base-url or --data-dir."
    )
    assert done.out == ""


class Flaky(httpx2.AsyncBaseTransport):
    """A service that answers once and then is gone."""

    def __init__(self) -> None:
        self.count = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.count += 1
        if self.count > 1:
            raise httpx2.ConnectError("All connection attempts failed", request=request)
        return httpx2.Response(200)


async def test_a_service_that_was_reached_may_be_away_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the client waits and retries, as over any connection that breaks."""
    transport = FirstContact("http://127.0.0.1:8080")
    monkeypatch.setattr(transport, "_inner", Flaky())
    request = httpx2.Request("GET", "http://127.0.0.1:8080/v1/caller")
    assert (await transport.handle_async_request(request)).status_code == 200
    with pytest.raises(httpx2.ConnectError):
        await transport.handle_async_request(request)
    await transport.aclose()

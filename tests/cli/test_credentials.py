"""The service and the key that a command uses, and its errors without them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.api.core_settings import OPERATOR_TOKEN

from .conftest import Done, Tenant, answered, run


@pytest.fixture
def data_dir(tenant: Tenant, tmp_path: Path) -> Path:
    """The files that a running `up` leaves in its data dir."""
    up = {"base_url": tenant.service.url, "operator_token": OPERATOR_TOKEN}
    (tmp_path / "up.json").write_text(json.dumps(up))
    return tmp_path


def test_a_running_up_is_called_as_the_operator(tenant: Tenant, data_dir: Path) -> None:
    done = run("codes", "list", "--organization", tenant.organization_id, "--data-dir", str(data_dir), "--json")
    assert answered(done) == {"data": [], "next_cursor": None}


def test_a_key_file_comes_before_the_environment_and_that_before_the_data_dir(
    tenant: Tenant, data_dir: Path, tmp_path: Path
) -> None:
    wrong = "xak_" + "w" * 43
    file = tmp_path / "key"
    file.write_text(f"{tenant.key}\n")
    file.chmod(0o600)
    listing = ["codes", "list", "--organization", tenant.organization_id, "--json"]
    given = {"API_KEY": wrong}
    assert answered(run(*listing, "--key-file", str(file), "--base-url", tenant.service.url, settings=given))
    by_environment = run(*listing, "--data-dir", str(data_dir), settings=given)
    assert by_environment.refusal.startswith("unauthenticated (401)")
    assert wrong not in by_environment.err


def test_a_key_may_be_kept_as_a_line_of_an_environment_file(tenant: Tenant, tmp_path: Path) -> None:
    """In a file and in the environment, where `docker run --env-file` leaves the quotes."""
    file = tmp_path / "key"
    file.write_text(f'SOUNDMARK_API_KEY="{tenant.key}"\n')
    file.chmod(0o600)
    listing = ["codes", "list", "--organization", tenant.organization_id, "--base-url", tenant.service.url, "--json"]
    assert answered(run(*listing, "--key-file", str(file)))
    assert answered(run(*listing, settings={"API_KEY": f"'{tenant.key}'"}))


def test_a_file_with_something_else_is_named_and_its_content_is_not(tenant: Tenant, tmp_path: Path) -> None:
    file = tmp_path / "settings.env"
    file.write_text(f"SOUNDMARK_BASE_URL=https://core.example\nSOUNDMARK_API_KEY={tenant.key}\n")
    file.chmod(0o600)
    done = run("codes", "list", "--organization", tenant.organization_id, "--key-file", str(file))
    assert done.refusal == (
        f"{file} must contain only one API key or access token, optionally after NAME= and in quotes"
    )


def test_without_a_key_there_is_no_request(tenant: Tenant) -> None:
    done = run("codes", "list", "--organization", tenant.organization_id)
    assert done.refusal == "no credential was given: set SOUNDMARK_API_KEY, or give --key-file or --data-dir"


def failures(tenant: Tenant, tmp_path: Path) -> Iterator[tuple[Done, str]]:
    """Yield each failure to reach the service, and how its line ends."""
    listing = ["codes", "list", "--organization", tenant.organization_id]
    settings = {"API_KEY": tenant.key}
    yield (
        run(*listing, "--base-url", "http://127.0.0.1:9", settings=settings),
        "(connection refused). Start it, or name another with --base-url or --data-dir.",
    )
    yield run(*listing, "--base-url", "http://example.org", settings=settings), "loopback addresses only."
    yield (
        run(*listing, "--base-url", "https://user:two words@core.test", settings=settings),
        "the base URL must have no credentials",
    )
    yield run(*listing, "--base-url", "https://127.0.0.1:99999", settings=settings), "from 1 to 65535, or none."
    yield (
        run(*listing, settings={**settings, "BASE_URL": "ftp://x"}),
        "SOUNDMARK_BASE_URL: must be an http or https URL",
    )
    yield run(*listing, settings={"API_KEY": "two words"}), "optionally after NAME= and in quotes"
    yield run(*listing, "--key-file", str(tmp_path / "none")), "cannot be read: No such file or directory"
    yield run(*listing, "--data-dir", str(tmp_path / "none")), "no `soundmark up` is running there"
    for name in ("broken", "spaced"):
        (tmp_path / name).touch(mode=0o600)
    (tmp_path / "broken").write_bytes(b"\xff\xfe")
    yield run(*listing, "--key-file", str(tmp_path / "broken")), "optionally after NAME= and in quotes"
    (tmp_path / "spaced").write_text("two words")
    yield run(*listing, "--key-file", str(tmp_path / "spaced")), "optionally after NAME= and in quotes"


def test_every_failure_to_call_is_one_line_without_the_key(tenant: Tenant, tmp_path: Path) -> None:
    for done, message in failures(tenant, tmp_path):
        assert done.refusal.endswith(message)
        assert tenant.key not in done.err
        assert "two words" not in done.err


def test_a_key_is_not_taken_from_the_command_line() -> None:
    """Every process on the machine can read the arguments of others."""
    for group in ("codes", "campaigns"):
        assert "--key " not in run(group, "list", "--help").out
    assert not [name for name in os.environ if name == "SOUNDMARK_API_KEY"]

"""The contract printed by the command line is the one that Core serves, without a database."""

from pathlib import Path

import pytest
from support.api.core_client import Api
from support.api.core_settings import BASE_URL

from .conftest import run

SETTINGS = {"BASE_URL": BASE_URL}
NAMES = {
    *("xr-code-v1", "xr-code-issued-v1", "xr-code-detail-v1", "xr-resolution-v1", "audience-event-v1"),
    *("svc-project-archive-v1", "svc-organization-archive-v1", "deletion-certificate-v1", "log-entry-v1"),
    *("decode-certificate-v1", "svc-offline-pack-v1"),
}


async def test_the_openapi_document_is_what_core_serves(api: Api, tmp_path: Path) -> None:
    served = (await api.get("/openapi.json")).body

    written = run("openapi", "--out", str(tmp_path / "openapi.json"), settings=SETTINGS)

    assert (written.status, written.out) == (0, "")
    assert (tmp_path / "openapi.json").read_bytes() == served
    assert run("openapi", settings=SETTINGS).out.encode() == served


async def test_the_schemas_are_what_core_serves(api: Api, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "schemas"

    assert run("schemas", "--out", str(folder), settings=SETTINGS).status == 0

    assert {path.stem for path in folder.iterdir()} == NAMES
    for path in folder.iterdir():
        assert path.read_bytes() == (await api.get(f"/schemas/{path.name}")).body


def test_without_a_base_url_the_addresses_are_those_of_this_machine() -> None:
    assert '"url": "http://127.0.0.1:8080"' in run("openapi").out


@pytest.mark.parametrize("command", [("openapi", "--out"), ("schemas", "--out")], ids=lambda command: command[0])
def test_a_path_that_cannot_be_written_is_one_line(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    assert "file" in run(*command, str(tmp_path / "file" / "inside")).refusal


@pytest.mark.parametrize("command", ["openapi", "schemas"])
def test_an_earlier_file_is_replaced_only_by_a_whole_one(command: str, tmp_path: Path) -> None:
    """A program that has the earlier one open goes on reading that."""
    out = tmp_path / "openapi.json" if command == "openapi" else tmp_path
    written = out if command == "openapi" else tmp_path / f"{min(NAMES)}.json"
    written.write_text("earlier")
    (tmp_path / "same").hardlink_to(written)

    assert run(command, "--out", str(out)).status == 0

    assert (tmp_path / "same").read_text() == "earlier" != written.read_text()


def test_a_malformed_base_url_is_one_line() -> None:
    assert "SOUNDMARK_BASE_URL" in run("openapi", settings={"BASE_URL": "ftp://example.org"}).refusal


def test_schemas_need_a_folder() -> None:
    assert run("schemas").status == 2

"""docs/guides/issuing.md: every block on the page runs as printed, in order, over a connection that breaks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.faulty_proxy import Fault, FaultyProxy
from support.processes.guide_blocks import Reader, read_page

from .conftest import Service

PAGE, BLOCKS = read_page("docs/guides/issuing.md")


@contextmanager
def connection(service: Service, fault: Fault) -> Iterator[str]:
    """Proxy the service; after each request about Codes that gets through, the next one is lost."""
    with FaultyProxy(service.url, *([fault, "none"] * 50), where="/v1/codes") as proxy:  # type: ignore[arg-type]  # a list of texts, each a fault
        yield proxy.url


@pytest.mark.parametrize("fault", ["answer lost", "half an answer"])
def test_every_block_prints_the_output_on_the_page(service: Service, tmp_path: Path, fault: Fault) -> None:
    (tmp_path / ".soundmark").mkdir()
    with connection(service, fault) as url:
        up = {"base_url": url, "operator_token": OPERATOR_TOKEN}
        (tmp_path / ".soundmark" / "up.json").touch(mode=0o600)
        (tmp_path / ".soundmark" / "up.json").write_text(json.dumps(up))
        reader = Reader(tmp_path, url)
        for language, block, printed in BLOCKS:
            reader.follow(language, block, printed)

    (organization,) = service.client.get("/v1/organizations").json()["data"]
    usage = service.client.get("/v1/usage", params={"organization_id": organization["id"]}).json()
    assert usage["codes"]["issued"] == 13, "each was issued once"

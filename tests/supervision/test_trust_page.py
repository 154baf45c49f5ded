"""docs/trust.md: every block on the page runs as printed, in order, on a whole deployment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import psycopg
import pytest
from support.processes.fake_clock import FakeClock
from support.processes.guide_blocks import Reader, read_page
from support.processes.running_apps import make_worker
from support.processes.up_process import Up, until

from soundmark.core.features.tenancy.audit_log.heads import log_heads
from soundmark.kit.crypto.secret import Secret

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

PAGE, BLOCKS = read_page("docs/trust.md")


@pytest.fixture
def checkout(up: Up, tmp_path: Path) -> Path:
    """A folder with a running `make up`, whose commands are on the path."""
    (tmp_path / ".soundmark").symlink_to(up.data_dir)
    return tmp_path


@pytest.fixture
def operator(up: Up) -> Iterator[httpx2.Client]:
    """A client with the operator's token."""
    headers = {"authorization": f"Bearer {up.where['operator_token']}"}
    with httpx2.Client(base_url=up.where["base_url"], headers=headers, trust_env=False) as client:
        yield client


class Waiting:
    """What a reader waits for: what was done is in the log."""

    def __init__(self, up: Up, operator: httpx2.Client) -> None:
        self._database: Final = Secret(up.where["core_database_url"])
        self._operator: Final = operator

    def for_entries(self) -> None:
        """Wait until the worker has added everything."""
        with psycopg.connect(self._database.reveal(), autocommit=True) as connection:
            until(lambda: connection.execute("SELECT 1 FROM log_queue LIMIT 1").fetchone() is None, 60)

    async def for_head(self, organization_id: str) -> None:
        """Wait until the log has the head of a whole audit log; do at once what the worker does once a minute."""
        until(lambda: self._verify(organization_id)["unsealed"] == 0, 60)
        clock = FakeClock()
        clock.advance(minutes=1)  # The worker may have entered a head in this one.
        async with make_worker(self._database, clock) as ctx:
            await log_heads(ctx)
        self.for_entries()

    def _verify(self, organization_id: str) -> Any:
        query = {"organization_id": organization_id}
        return self._operator.get("/v1/audit-log/verification", params=query).raise_for_status().json()


async def test_every_block_prints_the_output_on_the_page(up: Up, checkout: Path, operator: httpx2.Client) -> None:
    reader, waiting = Reader(checkout, up.where["base_url"]), Waiting(up, operator)
    for language, block, printed in BLOCKS:
        waiting.for_entries()
        if "audit_log.download" in block:
            await waiting.for_head((checkout / ".soundmark" / "trust" / "organization").read_text().strip())
        reader.follow(language, block, printed)


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.count("```python") + PAGE.count("```sh") > 8

"""The cells of a Core under test: the Audience of the shared Core, and a second one on a database of its own."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.api.core_client import Api
from support.audience.client import CREDENTIAL
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

AWAY = "http://127.0.0.1:9"


@dataclass
class CellsFile:
    """The file of the cells `main` and `east`, which a test changes."""

    path: Path
    urls: dict[str, str]
    clock: FakeClock
    takes_new: dict[str, bool] = field(default_factory=lambda: {"main": True, "east": True})

    def __post_init__(self) -> None:
        self.write()

    def cells(self, **urls: str) -> list[dict[str, Any]]:
        """Return the content of the file, with other URLs for some cells."""
        return [
            {"name": name, "url": url, "credential": CREDENTIAL, "takes_new": self.takes_new[name]}
            for name, url in {**self.urls, **urls}.items()
        ]

    def write(self, content: Any = None, **urls: str) -> None:
        """Replace the file by `content`, or by the cells with other URLs for some; processes look at it again now."""
        text = content if isinstance(content, str) else json.dumps(self.cells(**urls) if content is None else content)
        beside = self.path.with_suffix(".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.path)
        self.look_again()

    def look_again(self) -> None:
        """Let the time pass after which processes look at the file again."""
        self.clock.advance(seconds=2)


@dataclass(frozen=True)
class Divided:
    """A Core with two cells, and the databases of both."""

    api: Api
    file: CellsFile
    databases: dict[str, Rival]

    async def counts(self, table: str) -> dict[str, int]:
        """Return the number of rows of a table in each cell."""
        found = {}
        for name, rival in self.databases.items():
            ((found[name],),) = await rival.rows(f"SELECT count(*) FROM {table}")
        return found

"""What the tests of exports share."""

import tempfile
from typing import IO, Any

import pytest


@pytest.fixture
def archive_files(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """The temporary files of all archives."""
    made: list[IO[bytes]] = []
    make = tempfile.TemporaryFile

    def open_and_remember(**options: Any) -> IO[bytes]:
        made.append(make(**options))
        return made[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", open_and_remember)
    return made

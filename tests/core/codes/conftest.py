"""What the tests of Codes share."""

import tempfile
from typing import IO, Any

import pytest


@pytest.fixture
def bundle_files(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """The temporary files of all bundles."""
    made: list[IO[bytes]] = []
    make = tempfile.SpooledTemporaryFile

    def open_and_remember(*args: Any, **options: Any) -> IO[bytes]:
        made.append(make(*args, **options))
        return made[-1]

    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", open_and_remember)
    return made

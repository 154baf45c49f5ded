"""Responses that are files: complete, and closed however the sending ends."""

import io
from functools import partial
from typing import Any

import pytest

from soundmark.kit.http.responses.download import Download

CHUNK_BYTES = 64 * 1024


def written(content: bytes) -> io.BytesIO:
    file = io.BytesIO()
    file.write(content)
    return file


async def nothing() -> dict[str, Any]:
    raise AssertionError("a download reads nothing")


async def append(sent: list[Any], message: Any) -> None:
    sent.append(message)


async def test_a_download_is_the_whole_file_in_chunks(subtests: pytest.Subtests) -> None:
    for size_bytes in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES]:
        with subtests.test(size_bytes=size_bytes):
            content = bytes(range(256)) * (size_bytes // 256 + 1)
            file = written(content[:size_bytes])
            sent: list[Any] = []
            download = Download(file, "application/zip", name="a.zip", headers={"vary": "Accept"})
            await download({}, nothing, partial(append, sent))
            start, *bodies = sent
            assert start["status"] == 200
            assert dict(start["headers"]) == {
                b"vary": b"Accept",
                b"content-disposition": b'attachment; filename="a.zip"',
                b"content-length": str(size_bytes).encode(),
                b"content-type": b"application/zip",
            }
            assert b"".join(body["body"] for body in bodies) == content[:size_bytes]
            assert max(len(body["body"]) for body in bodies) <= CHUNK_BYTES
            assert [body.get("more_body", False) for body in bodies] == [True] * (len(bodies) - 1) + [False]
            assert file.closed


@pytest.mark.parametrize("after_count", [0, 1, 2])
async def test_the_file_is_closed_when_its_reader_leaves(after_count: int) -> None:
    file, sent_count, was_closed = written(bytes(3 * CHUNK_BYTES)), 0, list[bool]()

    async def send(_: Any) -> None:
        nonlocal sent_count
        if sent_count == after_count:
            raise OSError("gone")
        sent_count += 1

    with pytest.raises(OSError, match="gone"):
        await Download(
            file, "application/zip", name="a.zip", headers={}, on_closed=lambda: was_closed.append(file.closed)
        )({}, nothing, send)
    assert was_closed == [True], "it is told once"

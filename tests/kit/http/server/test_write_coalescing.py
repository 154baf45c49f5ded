"""Writes in one turn of the event loop are sent together, and nothing is lost, reordered or held back."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from soundmark.kit.http.server.write_coalescing import GatheringTransport


class Sent(asyncio.Transport):
    """A socket's transport that records its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.calls.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.calls.append(list(list_of_data))

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def is_closing(self) -> bool:
        return "close" in self.calls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 1)}.get(name, default)


@pytest.fixture
async def sent() -> Sent:
    """What reached the socket."""
    return Sent()


@pytest.fixture
async def transport(sent: Sent) -> GatheringTransport:
    """The transport under test."""
    return GatheringTransport(sent, asyncio.get_running_loop())


async def test_the_writes_of_one_turn_are_sent_in_one_piece_when_it_ends(
    sent: Sent, transport: GatheringTransport
) -> None:
    transport.write(b"head ")
    transport.writelines([bytearray(b"bo"), memoryview(b"dy")])
    assert sent.calls == []
    await asyncio.sleep(0)
    assert sent.calls == [b"head body"]


async def test_two_turns_are_two_pieces(sent: Sent, transport: GatheringTransport) -> None:
    for part in (b"one", b"two"):
        transport.write(part)
        await asyncio.sleep(0)
    assert sent.calls == [b"one", b"two"]


async def test_a_long_write_does_not_wait(sent: Sent, transport: GatheringTransport) -> None:
    """Otherwise a stream that never yields would pile up without any back pressure."""
    transport.write(b"h")
    transport.write(b"x" * 64 * 1024)
    assert sent.calls == [[b"h", b"x" * 64 * 1024]]
    transport.write(b"rest")
    await asyncio.sleep(0)
    assert sent.calls[1:] == [b"rest"]


async def test_a_large_body_is_not_copied(sent: Sent, transport: GatheringTransport) -> None:
    """Otherwise each peer that leaves a published document unread would hold a copy of it."""
    document = b"x" * 1024 * 1024
    transport.write(b"head")
    transport.write(document)
    assert sent.calls[0][1] is document


async def test_closing_sends_first(sent: Sent, transport: GatheringTransport) -> None:
    transport.write(b"last")
    transport.close()
    assert (sent.calls, transport.is_closing()) == ([b"last", "close"], True)
    await asyncio.sleep(0)
    assert sent.calls == [b"last", "close"]


async def test_writes_in_the_turn_in_which_the_peer_hangs_up_are_dropped(
    sent: Sent, transport: GatheringTransport
) -> None:
    """Otherwise the loop would log one of our exceptions for each receiver that hangs up at that moment."""
    transport.write(b"an answer")
    sent.close()
    await asyncio.sleep(0)
    assert sent.calls == ["close"]


async def test_aborting_drops(sent: Sent, transport: GatheringTransport) -> None:
    transport.write(b"last")
    transport.abort()
    await asyncio.sleep(0)
    assert sent.calls == ["abort"]


@pytest.mark.parametrize(
    ("act", "seen"),
    [(GatheringTransport.pause_reading, "pause"), (GatheringTransport.resume_reading, "resume")],
    ids=["pause", "resume"],
)
async def test_reading_is_left_to_the_socket(
    sent: Sent, transport: GatheringTransport, act: Callable[[GatheringTransport], None], seen: str
) -> None:
    act(transport)
    assert sent.calls == [seen]
    assert transport.get_extra_info("peername") == ("127.0.0.1", 1)
    assert transport.get_extra_info("socket", "none") == "none"

"""A sound card that is missing, plays, is unplugged and comes back; PortAudio is stood in for."""

import asyncio
import importlib
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.processes.fake_clock import FakeClock

from soundmark.kit.clock import SystemClock
from soundmark.studio.play import outputs
from soundmark.studio.play.loudspeaker import Loudspeaker
from soundmark.studio.play.outputs import OutputEnded, OutputLost

BLOCK = bytes(9600)


class PortAudioError(Exception):
    """The error of the library."""


class Card:
    """One output device, with what it was given."""

    def __init__(self) -> None:
        self.is_plugged_in = True
        self.played: list[bytes] = []
        self.opened: list[dict[str, Any]] = []
        self.scans = 0
        self.open_count = 0
        self.has_room = threading.Event()
        self.has_room.set()
        self.is_writing = threading.Event()
        self.was_freed_in_use = False

    def stream(self, **given: Any) -> "Stream":
        self.opened.append(given)
        self.check()
        return Stream(self)

    def check(self) -> None:
        if not self.is_plugged_in:
            raise PortAudioError("Error opening RawOutputStream: Device unavailable [PaErrorCode -9985]\nmore")

    def scan(self) -> None:
        self.scans += 1


class Stream:
    """An open stream of the card."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def start(self) -> None:
        self.card.check()
        self.card.open_count += 1

    def write(self, block: bytes) -> None:
        self.card.check()
        self.card.is_writing.set()
        assert self.card.has_room.wait(10)
        self.card.played.append(block)
        self.card.is_writing.clear()

    def abort(self) -> None:
        self.card.check()

    def close(self) -> None:
        self.card.was_freed_in_use |= self.card.is_writing.is_set()
        self.card.open_count -= 1


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    """A sound card behind a stand-in of `sounddevice`."""
    card = Card()
    module: Any = ModuleType("sounddevice")
    module.PortAudioError = PortAudioError
    module.RawOutputStream = card.stream
    module._terminate = lambda: None
    module._initialize = card.scan
    monkeypatch.setitem(sys.modules, "sounddevice", module)
    return card


async def test_it_plays_mono_samples_of_16_bits(card: Card) -> None:
    speaker = Loudspeaker("USB", SystemClock())
    await speaker.open()
    await speaker.write(BLOCK)
    speaker.close()
    speaker.close()
    (opened,) = card.opened
    assert (opened["samplerate"], opened["device"], opened["channels"], opened["dtype"]) == (48_000, "USB", 1, "int16")
    assert (card.played, card.open_count, card.scans) == ([BLOCK], 0, 0)


async def test_a_device_that_plays_nothing_gets_no_more_than_one_that_does(
    card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses_s: list[float] = []

    async def sleep(duration_s: float) -> None:
        pauses_s.append(duration_s)

    monkeypatch.setattr(outputs, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))  # Nobody else's.
    speaker = Loudspeaker(None, FakeClock())
    await speaker.open()
    for _ in range(8):
        await speaker.write(BLOCK)
    assert len(card.played) == 8
    assert pauses_s[-1] > 0.3


async def test_a_missing_device_is_one_line(card: Card) -> None:
    card.is_plugged_in = False
    with pytest.raises(OutputLost) as lost:
        await Loudspeaker(None, SystemClock()).open()
    assert str(lost.value) == (
        "the sound card cannot be opened: Error opening RawOutputStream: Device unavailable [PaErrorCode -9985];"
        " `python -m sounddevice` lists those that can"
    )


async def test_a_closed_device_takes_nothing_until_it_is_opened_again(card: Card) -> None:
    speaker = Loudspeaker(None, SystemClock())
    for _ in range(2):
        with pytest.raises(OutputLost, match="the sound card is closed"):
            await speaker.write(BLOCK)
        await speaker.open()
        await speaker.write(BLOCK)
        speaker.close()
    assert (card.played, card.open_count) == ([BLOCK] * 2, 0)


async def test_a_device_that_was_unplugged_is_found_again(card: Card) -> None:
    speaker = Loudspeaker(None, SystemClock())
    await speaker.open()
    card.is_plugged_in = False
    with pytest.raises(OutputLost, match="the sound card stopped"):
        await speaker.write(BLOCK)
    with pytest.raises(OutputLost):
        await speaker.open()
    card.is_plugged_in = True
    await speaker.open()
    await speaker.write(BLOCK)
    assert card.played == [BLOCK]
    assert card.scans == 2


@pytest.mark.parametrize(
    ("error", "advice"),
    [(ImportError("no module"), r"soundmark\[play\]"), (OSError("PortAudio library not found"), "libportaudio2")],
)
def test_what_is_missing_is_named(error: Exception, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise error

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(OutputEnded, match=rf"{advice}.*--out"):
        Loudspeaker(None, SystemClock())


async def test_a_stream_is_not_freed_while_a_block_is_written(card: Card) -> None:
    """A write cannot be cancelled in its thread, and PortAudio's memory must not go away under it."""
    speaker = Loudspeaker(None, SystemClock())
    await speaker.open()
    card.has_room.clear()
    writing = asyncio.create_task(speaker.write(BLOCK))
    assert await asyncio.to_thread(card.is_writing.wait, 10)
    writing.cancel()
    await asyncio.wait([writing])
    closing = asyncio.create_task(asyncio.to_thread(speaker.close))
    await asyncio.wait([closing], timeout=0.1)
    card.has_room.set()
    await closing
    assert (card.was_freed_in_use, card.open_count, card.played) == (False, 0, [BLOCK])

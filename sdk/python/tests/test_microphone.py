import sys
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest
from soundmark_sdk import MicrophoneUnavailable, listen
from soundmark_sdk import microphone as microphone_module

from .sound import RATE_HZ, TOKENS, Sound, frame, play, resample


class Tape:
    """A source that plays a sound in blocks and records whether it is open."""

    def __init__(self, sound: Sound, sample_rate: int = RATE_HZ, block: int = 2400) -> None:
        self.sample_rate = sample_rate
        self.blocks = [sound[start : start + block] for start in range(0, len(sound), block)]
        self.open = False

    def __enter__(self) -> Self:
        self.open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.open = False

    def read(self) -> Sound | None:
        assert self.open
        return self.blocks.pop(0) if self.blocks else None


class FakePortAudio:
    """The part of `sounddevice` that a microphone uses, playing a tape."""

    class PortAudioError(Exception):
        pass

    def __init__(self, sound: Sound, own_rate: float = 48_000.0, *, broken: str = "") -> None:
        self.sound, self.own_rate, self.broken = sound, own_rate, broken
        self.opened: dict[str, Any] = {}
        self.closed = 0

    def query_devices(self, device: object, kind: str) -> dict[str, Any]:
        assert (device, kind) == ("built-in", "input")
        return {"default_samplerate": self.own_rate}

    def InputStream(self, **settings: Any) -> SimpleNamespace:  # noqa: N802 - sounddevice's name
        self._break("open")
        self.opened = settings
        return SimpleNamespace(start=lambda: self._break("start"), close=self.close, read=self.read)

    def _break(self, what: str) -> None:
        if self.broken == what:
            raise self.PortAudioError("device text")

    def close(self) -> None:
        self.closed += 1

    def read(self, count: int) -> tuple[np.ndarray, bool]:
        if not len(self.sound):
            raise self.PortAudioError("device text")
        block, self.sound = self.sound[:count], self.sound[count:]
        return block.astype(np.float32)[:, np.newaxis], False


@pytest.mark.parametrize("rate_hz", [44_100, 48_000, 96_000])
def test_each_new_frame_is_yielded_while_the_sound_goes_on(rate_hz: int) -> None:
    one, two = (resample(play(frame(token)), rate_hz) for token in TOKENS[:2])
    tape = Tape(np.concatenate([one, one, two, one, one, one]), rate_hz, rate_hz // 20)
    listening = listen(tape)
    assert not tape.open
    assert next(listening).token == TOKENS[0]
    assert next(listening).token == TOKENS[1]
    assert tape.blocks
    assert list(listening) == []
    assert not tape.open


def test_a_source_may_change_its_rate_between_two_blocks() -> None:
    """A device that joins or leaves makes some systems record at another rate."""

    class ChangingTape(Tape):
        def read(self) -> Sound | None:
            if len(self.blocks) == len(second):
                self.sample_rate = 44_100
            return super().read()

    second = Tape(resample(play(frame(TOKENS[1])), 44_100), block=2205).blocks
    tape = ChangingTape(play(frame(TOKENS[0])))
    tape.blocks += second
    assert [each.token for each in listen(tape)] == [*TOKENS[:2]]


def test_a_rate_that_carries_no_frame_ends_the_listening_with_a_reason() -> None:
    class FallingTape(Tape):
        def read(self) -> Sound | None:
            self.sample_rate = 48_000 if len(self.blocks) > 2 else 16_000
            return super().read()

    tape = FallingTape(np.zeros(RATE_HZ))
    with pytest.raises(ValueError, match="44000"):
        list(listen(tape))
    assert not tape.open


def test_a_frame_at_the_very_end_is_heard() -> None:
    assert [each.token for each in listen(Tape(play(frame(TOKENS[0]))[:-4321]))] == [TOKENS[0]]


def test_closing_the_iterator_closes_the_source() -> None:
    tape = Tape(play(frame(TOKENS[0])))
    listening = listen(tape)
    next(listening)
    listening.close()
    assert not tape.open


@pytest.mark.parametrize(("own_rate", "rate_hz"), [(44_100.0, 44_100), (48_000.0, 48_000), (16_000.0, 48_000)])
def test_a_microphone_is_recorded_at_its_own_rate_if_that_carries_a_frame(
    monkeypatch: pytest.MonkeyPatch, own_rate: float, rate_hz: int
) -> None:
    fake = FakePortAudio(resample(play(frame(TOKENS[0])), rate_hz), own_rate)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    listening = listen(device="built-in")
    assert next(listening).token == TOKENS[0]
    listening.close()
    assert fake.opened == {"samplerate": rate_hz, "device": "built-in", "channels": 1, "dtype": "float32"}
    assert fake.closed == 1


def test_a_microphone_that_disappears_is_reported_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePortAudio(np.zeros(RATE_HZ))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    with pytest.raises(MicrophoneUnavailable, match="stopped"):
        list(listen(device="built-in"))
    assert fake.closed == 1


@pytest.mark.parametrize(("broken", "closed"), [("open", 0), ("start", 1)])
def test_a_microphone_that_cannot_be_opened_is_reported_and_closed(
    monkeypatch: pytest.MonkeyPatch, broken: str, closed: int
) -> None:
    fake = FakePortAudio(np.zeros(0), broken=broken)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    with pytest.raises(MicrophoneUnavailable, match="cannot be opened"):
        next(listen(device="built-in"))
    assert fake.closed == closed


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("No module named 'sounddevice'"), r"soundmark-sdk\[microphone\]"),
        (OSError("PortAudio library not found"), "libportaudio2"),
    ],
)
def test_the_error_names_what_is_not_installed(monkeypatch: pytest.MonkeyPatch, error: Exception, words: str) -> None:
    def fail(_: str) -> None:
        raise error

    monkeypatch.setattr(microphone_module.importlib, "import_module", fail)
    with pytest.raises(MicrophoneUnavailable, match=words):
        next(listen())


def test_the_period_of_a_repetition_is_the_listeners() -> None:
    with pytest.raises(ValueError, match="1 to 60 seconds"):
        next(listen(Tape(np.zeros(4800)), period_s=0.5))

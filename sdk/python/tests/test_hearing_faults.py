"""What the decoder makes of damaged, foreign and hostile sound."""

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from soundmark_sdk import Listener, hear_samples
from soundmark_sdk.hearing import ordered_statistics, power_sums, reading

from .sound import PROTOCOLS, RATE_HZ, TOKENS, Sound, add_white_noise, frame, play

TOKEN = TOKENS[0]
_MARKER = 16 * 1024
_LEAD = 1234


def hear_tokens(sound: Sound) -> list[str]:
    return [each.token for each in hear_samples(sound, RATE_HZ)]


def add_floor(sound: Sound, seed: int = 1) -> Sound:
    return sound + np.random.default_rng(seed).normal(0, 1e-4, len(sound))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_interrupted_frame_does_not_hide_the_next(protocol: int) -> None:
    """A receiver that waits for an end marker is deaf for half a minute: field report, finding 1."""
    first, second = play(frame(TOKENS[1]), protocol), play(frame(TOKEN), protocol)
    marker_alone = first[: _LEAD + _MARKER]
    for interrupted, gap_s in ((first[: len(first) // 2], 0.1), (marker_alone, 2.0)):
        sound = np.concatenate([interrupted, np.zeros(round(gap_s * RATE_HZ)), second])
        assert hear_tokens(add_floor(sound)) == [TOKEN]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_is_heard_without_its_markers(protocol: int) -> None:
    """And without 0.15 s at either end: field report, findings 1 and 6."""
    sound = play(frame(TOKEN), protocol)
    data = sound[_LEAD + _MARKER : len(sound) - 4321 - _MARKER]
    cut = round(0.15 * RATE_HZ)
    for part in (data, sound[: len(sound) - 4321 - _MARKER - cut], data[: -cut // 2]):
        assert hear_tokens(add_floor(part)) == [TOKEN]


@pytest.mark.parametrize("hertz", [15_625, 15_734, 17_400, 19_000])
def test_a_steady_tone_louder_than_the_frame_does_not_hide_it(hertz: float) -> None:
    """Television sets sound so: field report, finding 5. The tone is 10 dB above the frame."""
    for protocol in PROTOCOLS:
        sound = play(frame(TOKEN), protocol)
        level = np.sqrt(2 * 10 * np.mean(np.square(sound)))
        tone = level * np.sin(2 * np.pi * hertz * np.arange(len(sound)) / RATE_HZ)
        assert hear_tokens(add_floor(0.4 * (sound + tone))) == [TOKEN], protocol


@pytest.mark.parametrize("clock", [0.995, 1.005])
def test_a_clock_may_be_half_a_percent_off(clock: float) -> None:
    sound = play(frame(TOKEN))
    length = len(sound)
    fine = np.fft.irfft(np.fft.rfft(sound), 8 * length) * 8
    moved = np.interp(np.arange(0, length - 2, clock) * 8, np.arange(8 * length), fine)
    assert hear_tokens(add_white_noise(moved, -12, seed=2)) == [TOKEN]


@pytest.mark.parametrize("cut_hz", [18_000, 18_400])
def test_a_frame_is_heard_behind_a_filter_that_removes_every_third_byte(cut_hz: float) -> None:
    sound = play(frame(TOKEN))
    spectrum = np.fft.rfft(sound)
    spectrum[np.fft.rfftfreq(len(sound), 1 / RATE_HZ) > cut_hz] = 0
    assert hear_tokens(add_floor(np.fft.irfft(spectrum, len(sound)))) == [TOKEN]


def test_both_of_two_frames_that_overlap_by_half_are_heard() -> None:
    one, two = play(frame(TOKENS[0])), play(frame(TOKENS[1]))
    sound = np.zeros(2 * len(one))
    sound[: len(one)] += one
    sound[len(one) // 2 : len(one) // 2 + len(two)] += two
    assert sorted(hear_tokens(add_floor(sound))) == sorted(TOKENS[:2])


def test_repetitions_that_are_each_too_noisy_are_heard_together() -> None:
    """None of the four alone: the evidence of failed frames is added up."""
    sounds = [add_white_noise(play(frame(TOKEN)), -22, seed) for seed in range(10, 16)]
    assert [hear_tokens(each) for each in sounds].count([TOKEN]) <= 2
    assert hear_tokens(np.concatenate(sounds)) == [TOKEN]


def make_hostile_sounds() -> dict[str, Sound]:
    """Return sounds of four seconds that hold no frame."""
    chance = np.random.default_rng(3)
    count = 4 * RATE_HZ
    whole = play(frame(TOKEN), 5)
    begin = _LEAD + _MARKER
    prefix = whole[begin : begin + 4 * 3 * 1024]
    jumps = chance.normal(0, 1, count) * np.repeat(10.0 ** chance.integers(-8, 1, 100), count // 100)
    return {
        "silence": np.zeros(count),
        "constant": np.full(count, 0.7),
        "full scale": np.ones(count),
        "not numbers": np.full(count, np.nan),
        "infinities": np.tile([np.inf, -np.inf], count // 2),
        "level jumps": jumps,
        "clicks": (np.arange(count) % 4800 == 0).astype(float),
        "prefixes": np.resize(prefix, count),
        "markers": np.resize(whole[_LEAD : _LEAD + _MARKER], count),
        "square wave": np.sign(np.sin(2 * np.pi * 16_000 * np.arange(count) / RATE_HZ)),
    }


def test_hostile_sound_holds_no_frame_and_does_not_hide_the_next() -> None:
    for name, sound in make_hostile_sounds().items():
        with Listener() as listener:
            assert listener.feed(sound) == [], name
            after = listener.feed(add_floor(play(frame(TOKEN), 5))) + listener.finish()
            assert [each.token for each in after] == [TOKEN], name


def test_a_frame_with_its_payload_destroyed_is_not_another_frame() -> None:
    """`python -m bench.false_tokens` tries thousands."""
    chance = np.random.default_rng(4)
    for number in range(2):
        other = play(frame("brd_" + "".join(chance.choice(list("abcdefgh01234567"), 16))), 5)
        sound = play(frame(TOKEN), 5)
        group = 3 * 1024
        # From the fifth group on, each group is that of another frame, or of another place.
        for index in range(4, 13):
            source = (index + chance.integers(0, 9) - 4) % 9 + 4
            at, taken = (_LEAD + _MARKER + each * group for each in (index, source))
            sound[at : at + group] = (other if chance.random() < 0.5 else play(frame(TOKEN), 5))[taken : taken + group]
        assert hear_tokens(add_floor(sound, number)) == []


def test_memory_does_not_grow_with_the_stream() -> None:
    block = np.random.default_rng(5).normal(0, 0.1, RATE_HZ).astype(np.float32)
    with Listener() as listener:
        for _ in range(6):
            listener.feed(block)
        tracemalloc.start()
        for _ in range(12):
            listener.feed(block)
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert grown < 3_000_000


def hear_after(gone: int) -> tuple[list[str], float]:
    """Return the tokens in a frame, and where the last one begins, after `gone` samples of a stream, about."""
    with Listener() as listener:
        decoder = listener._decoder
        assert decoder is not None
        first = gone // 8 // 192 * 192  # Of the band: a multiple of every hop, and of a column.
        decoder._band.first = first
        for search in decoder._searches:
            search._gone = first // search._grid.hop
        decoder._power_sums._gone = first // 32
        frames = [*listener.feed(add_floor(play(frame(TOKEN)))), *listener.finish()]
        return [each.token for each in frames], decoder._heard[-1].start - first


@pytest.mark.parametrize("gone", [10**9, 10**13])
def test_a_frame_is_heard_in_its_place_after_very_many_samples(gone: int) -> None:
    """Six hours and six years of sound are too long for a test, so the positions begin there."""
    tokens, start = hear_after(gone)
    assert tokens == [TOKEN]
    assert start == hear_after(0)[1] == pytest.approx((_LEAD + _MARKER) / 8, abs=384)  # Half a group.


@pytest.fixture
def sets_tried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sets that each decoding tried."""
    tried: list[int] = []

    def count_sets(*arguments: Any, **options: Any) -> Any:
        answer = ordered_statistics.decode(*arguments, **options)
        tried.append(answer[1])
        return answer

    monkeypatch.setattr(reading, "decode", count_sets)
    return tried


@pytest.fixture
def sums_read(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Where the second reading read."""
    starts: list[float] = []
    read = power_sums.PowerSums.read

    def note_start(sums: power_sums.PowerSums, protocol: int, start: float) -> str | None:
        starts.append(start)
        return read(sums, protocol, start)

    monkeypatch.setattr(power_sums.PowerSums, "read", note_start)
    return starts


def test_permanent_prefixes_cost_a_bounded_number_of_decodings(sets_tried: list[int], sums_read: list[float]) -> None:
    prefixes = make_hostile_sounds()["prefixes"]
    with Listener() as listener:
        for _ in range(5):
            listener.feed(add_floor(prefixes))
    # Eight seconds' worth are there at the beginning.
    assert sum(sets_tried) <= (20 + 8) * 4
    assert 20 < len(sums_read) <= (20 + 8) * 4


def test_codes_in_a_row_are_heard_for_less_than_each_second_brings(
    sets_tried: list[int], subtests: pytest.Subtests
) -> None:
    """One protocol's search finds beginnings in another's frame, which once left no time for the third or tenth."""
    rows = (((5, 4, 5), 0.0, 3), ((3, 4, 5), 2.0, 3), ((5, 4, 5), 0.05, 12), ((4,), 0.0, 6), ((5, 3), 0.5, 6))
    for protocols, gap_s, count in rows:
        with subtests.test(protocols=protocols, gap_s=gap_s, count=count):
            tokens = TOKENS if count == 3 else [f"brd_{number:016}" for number in range(count)]
            gap = np.zeros(round(gap_s * RATE_HZ))
            plays = zip(tokens, itertools.cycle(protocols), strict=False)
            sound = np.concatenate([part for token, protocol in plays for part in (play(frame(token), protocol), gap)])
            sets_tried.clear()
            assert hear_tokens(sound) == list(tokens)
            assert sum(sets_tried) <= 4 * len(sound) / RATE_HZ

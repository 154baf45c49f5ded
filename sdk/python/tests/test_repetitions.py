"""Repetitions with a stated period, and clocks that change within a frame."""

import tracemalloc

import numpy as np
import pytest
from soundmark_sdk import Listener, hear_samples
from soundmark_sdk.hearing import reading
from soundmark_sdk.hearing.decoder import Decoder
from soundmark_sdk.hearing.repetitions import list_counts

from .sound import RATE_HZ, TOKENS, Sound, add_white_noise, frame, play

TOKEN = TOKENS[0]
_PERIOD_S = 2.5


def repeat(sounds: list[Sound], period_s: float, snr_db: float, seed: int) -> Sound:
    """Return sounds that begin a period apart, in noise."""
    period = round(period_s * RATE_HZ)
    together = np.zeros(period * len(sounds) + RATE_HZ)
    for number, sound in enumerate(sounds):
        together[number * period :][: len(sound)] += sound
    power = np.mean(np.square(sounds[0][np.flatnonzero(sounds[0])]))
    deviation = np.sqrt(power / 10 ** (snr_db / 10))
    return together + np.random.default_rng(seed).normal(0, deviation, len(together))


def change_clock(sound: Sound, clock: Sound) -> Sound:
    """Return a sound whose clock is fast by as much as each sample says."""
    fine = np.fft.irfft(np.fft.rfft(sound), 8 * len(sound)) * 8
    places = np.cumsum(1 + clock)
    return np.interp(places[places < len(sound) - 2] * 8, np.arange(len(fine)), fine)


def hear_tokens(sound: Sound, period_s: float | None = None) -> list[str]:
    return [each.token for each in hear_samples(sound, RATE_HZ, period_s=period_s)]


def test_four_repetitions_of_which_none_begins_clearly_are_heard_by_their_period() -> None:
    sound = repeat([play(frame(TOKEN), 5)] * 4, _PERIOD_S, -21.5, seed=2)
    assert hear_tokens(sound) == []
    assert hear_tokens(sound, _PERIOD_S) == [TOKEN]


def test_the_period_is_counted_by_the_clock_of_the_sender() -> None:
    """Which is here 0.3 % fast, so the fourth repetition comes 23 ms early: the fifth part of a group."""
    fast = change_clock(play(frame(TOKEN), 5), np.full(len(play(frame(TOKEN), 5)), 0.003))
    assert hear_tokens(repeat([fast] * 4, _PERIOD_S / 1.003, -20.0, seed=3), _PERIOD_S) == [TOKEN]


def test_codes_that_take_turns_are_not_mixed() -> None:
    one, two = (play(frame(token), 5) for token in TOKENS[:2])
    sound = repeat([one, two, one, two], _PERIOD_S, -14, seed=1)
    assert sorted(hear_tokens(sound, _PERIOD_S)) == sorted(TOKENS[:2])


def test_a_period_is_one_to_sixty_seconds() -> None:
    for period_s in (0.99, 60.1, 0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="1 to 60 seconds"):
            Listener(period_s=period_s)
    for period_s, counts in ((1, (2, 4, 8)), (8.5, (2, 4, 8)), (8.6, (2, 4)), (20, (2, 4)), (20.1, (2,)), (60, (2,))):
        assert list_counts(period_s) == counts, period_s


def test_with_a_period_memory_does_not_grow_beyond_the_repetitions() -> None:
    decoder = Decoder((5,), period_s=1.0)
    block = np.random.default_rng(5).normal(0, 0.1, 2 * RATE_HZ).astype(np.float32)
    for _ in range(7):
        decoder.feed(block)
    tracemalloc.start()
    for _ in range(3):
        decoder.feed(block)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # What is kept is 12 s of the band, and of the scores; it is made anew in each piece.
    assert grown < 2_500_000


def test_a_frame_is_heard_while_its_listener_begins_to_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 0 to 1.4 m/s within half a second, in the middle of the data."""
    sound = play(frame(TOKEN), 5)
    seconds = np.arange(len(sound)) / RATE_HZ
    walking = add_white_noise(change_clock(sound, 0.0041 * np.clip((seconds - 0.7) / 0.5, 0, 1)), 6, seed=1)
    assert hear_tokens(walking) == [TOKEN]
    monkeypatch.setattr(reading, "follow", lambda _start, clock, _band, _grid: np.full(13, clock))
    assert hear_tokens(walking) == []


def test_a_frame_without_its_beginning_or_end_is_heard_as_far_as_its_bytes_allow() -> None:
    """Ten bytes of the code may be lost: four groups at the beginning (nine of them), or three at the end."""
    sound = play(frame(TOKEN), 5)
    begin, group = 1234 + 16 * 1024, 3 * 1024
    data_end = begin + 13 * group
    parts = {
        **{f"without its first {count}": (sound[begin + count * group :], count <= 4) for count in (1, 3, 4, 5)},
        **{f"without its last {count}": (sound[: data_end - count * group], count <= 3) for count in (1, 3, 4)},
    }
    for name, (part, is_heard) in parts.items():
        quiet = np.concatenate([np.zeros(RATE_HZ // 8), part])
        tokens = hear_tokens(quiet + np.random.default_rng(1).normal(0, 1e-4, len(quiet)))
        assert tokens == ([TOKEN] if is_heard else []), name

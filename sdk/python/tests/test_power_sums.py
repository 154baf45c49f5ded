"""The second reading alone, and what it adds to the first."""

import numpy as np
import pytest
from soundmark_sdk import hear_samples
from soundmark_sdk.hearing import reading
from soundmark_sdk.hearing.baseband import Baseband
from soundmark_sdk.hearing.frame_code import find_check_bytes
from soundmark_sdk.hearing.power_sums import PowerSums
from soundmark_sdk.hearing.prefix_search import Candidate
from soundmark_sdk.hearing.reed_solomon import correct

from .sound import PROTOCOLS, RATE_HZ, TOKENS, Sound, frame, play

TOKEN = TOKENS[0]
_LEAD = 1234
_MARKER = 16 * 1024
_GROUP = {3: 9 * 1024, 4: 6 * 1024, 5: 3 * 1024}
_PER_BAND_SAMPLE = 8


def feed(sound: Sound) -> tuple[PowerSums, list[Candidate]]:
    """Return sums that were fed in pieces, and the candidates that they found."""
    sums, baseband = PowerSums(), Baseband()
    padded = np.concatenate([sound, np.zeros(RATE_HZ // 4)]).astype(np.float32)
    pieces = np.array_split(padded, 7)
    return sums, [candidate for piece in pieces for candidate in sums.feed(baseband.feed(piece))]


def test_errors_and_erasures_are_corrected_up_to_the_number_of_check_bytes() -> None:
    chance = np.random.default_rng(6)
    data = frame(TOKEN).encode()
    codeword = data + find_check_bytes(data, 10).tobytes()
    for erasure_count in range(11):
        for error_count in range((10 - erasure_count) // 2 + 1):
            places = chance.permutation(len(codeword))[: erasure_count + error_count].tolist()
            received = bytearray(codeword)
            for place in places:
                received[place] ^= int(chance.integers(1, 256))
            erased = places[:erasure_count]
            assert correct(bytes(received), 10, erased) == codeword, (erasure_count, error_count)


def test_a_codeword_with_too_many_errors_is_not_corrected() -> None:
    chance = np.random.default_rng(7)
    for _ in range(50):
        assert correct(chance.bytes(35), 10) is None


def test_each_marker_gives_the_place_of_its_frame() -> None:
    begin = (_LEAD + _MARKER) / _PER_BAND_SAMPLE
    for protocol in PROTOCOLS:
        sums, candidates = feed(play(frame(TOKEN), protocol))
        near = [each for each in candidates if each.protocol == protocol and abs(each.start - begin) < 128]
        assert len(near) == 2, protocol
        for each in near:
            assert sums.read(protocol, each.start) == TOKEN.removeprefix("brd_"), protocol


def test_a_frame_is_read_across_a_gap_in_which_it_loses_nine_bytes() -> None:
    sound = play(frame(TOKEN), 5)
    at = _LEAD + _MARKER + 6 * _GROUP[5]
    sound[at : at + 3 * _GROUP[5]] = 0
    sums, _ = feed(sound + np.random.default_rng(1).normal(0, 1e-4, len(sound)))
    assert sums.read(5, (_LEAD + _MARKER) / _PER_BAND_SAMPLE) == TOKEN.removeprefix("brd_")


def test_check_bytes_lost_in_noise_do_not_make_another_frame() -> None:
    """One error that is corrected beside eight erased bytes fits one word in ten."""
    sound = play(frame(TOKEN), 5)
    begin = _LEAD + _MARKER + 8 * _GROUP[5]
    # The last letters are spoilt too, so nothing but chance can complete the frame.
    for seed in range(20):
        noisy = sound.copy()
        noisy[begin:] = np.random.default_rng(seed).normal(0, 0.1, len(sound) - begin)
        sums, _ = feed(noisy)
        assert sums.read(5, (_LEAD + _MARKER) / _PER_BAND_SAMPLE) is None, seed


def test_a_marker_that_does_not_end_costs_a_bounded_number_of_candidates() -> None:
    sound = np.resize(play(frame(TOKEN))[_LEAD : _LEAD + _MARKER], 4 * RATE_HZ)
    _, candidates = feed(sound)
    # One marker in eight windows of 5 ms.
    assert len(candidates) <= 3 * 4.3 * 188 / 8


def test_a_frame_that_the_first_reading_misses_is_heard_by_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = play(frame(TOKEN), 5)
    monkeypatch.setattr(reading.Reader, "_judge", lambda *_: None)
    assert [each.token for each in hear_samples(sound, RATE_HZ)] == [TOKEN]
    monkeypatch.setattr(reading, "_SUMS_PER_S", 0.0)
    assert hear_samples(sound, RATE_HZ) == []

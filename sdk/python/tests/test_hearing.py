import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk import Frame, Listener, hear_samples
from soundmark_sdk.hearing import listening

from .sound import PROTOCOLS, RATE_HZ, TOKENS, Sound, add_white_noise, drop_out, frame, play, play_16_bits, resample

TOKEN = TOKENS[0]


def hear_tokens(sound: Sound, rate_hz: int = RATE_HZ) -> list[str]:
    return [each.token for each in hear_samples(sound, rate_hz)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_is_heard(protocol: int) -> None:
    assert hear_samples(play(frame(TOKEN), protocol), RATE_HZ) == [Frame(text=f"XRC1:{TOKEN}", token=TOKEN)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_is_heard_in_noise_louder_than_itself(protocol: int) -> None:
    sound = play(frame(TOKEN), protocol)
    assert [hear_tokens(add_white_noise(sound, snr_db, seed=1)) for snr_db in (10, -10)] == [[TOKEN]] * 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_is_heard_after_resampling_to_compact_disc_rate(protocol: int) -> None:
    """Both ways: a recording at 44.1 kHz, and one that was converted back to 48 kHz."""
    at_44100 = resample(play(frame(TOKEN), protocol), 44_100)
    assert hear_tokens(at_44100, 44_100) == [TOKEN]
    back = np.interp(np.arange(0, len(at_44100) - 1, 44_100 / RATE_HZ), np.arange(len(at_44100)), at_44100)
    assert hear_tokens(back) == [TOKEN]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_frame_is_heard_at_a_hundredth_of_its_volume(protocol: int) -> None:
    assert hear_tokens(play(frame(TOKEN), protocol) / 100) == [TOKEN]


@pytest.mark.parametrize(("protocol", "at"), [(5, 0.05), (5, 0.25), (5, 0.5), (5, 0.75), (5, 0.9), (3, 0.5), (4, 0.5)])
def test_a_frame_is_heard_across_a_dropout_of_50_ms(protocol: int, at: float) -> None:
    """Anywhere in the data."""
    sound = play(frame(TOKEN), protocol)
    # The start marker is 16 of ggwave's 1024-sample frames.
    data_from_s, data_to_s = (1234 + 16 * 1024) / RATE_HZ, (len(sound) - 4321 - 16 * 1024) / RATE_HZ - 0.05
    assert hear_tokens(drop_out(sound, data_from_s + at * (data_to_s - data_from_s), 0.05)) == [TOKEN]


@pytest.mark.parametrize(
    "rate_hz", [44_000, 44_056, 44_100, 44_101, 47_999, 50_000, 88_200, 96_000, 176_400, 192_000, 768_000]
)
def test_a_frame_is_heard_at_every_rate_that_can_carry_it(rate_hz: int) -> None:
    noisy = add_white_noise(play(frame(TOKEN), 5), 0, seed=1)
    assert hear_tokens(resample(noisy, rate_hz), rate_hz) == [TOKEN]


@pytest.mark.parametrize("rate_hz", [0, -48_000, 8000, 24_000, 43_999, 768_001])
def test_rates_that_cannot_carry_a_frame_are_refused(rate_hz: int) -> None:
    with pytest.raises(ValueError, match="44000"):
        Listener(rate_hz)


def test_frames_that_follow_each_other_are_all_heard_each_once() -> None:
    one, two, three = (play(frame(token), protocol) for token, protocol in zip(TOKENS, (5, 4, 3), strict=True))
    assert hear_tokens(np.concatenate([one, two, one, two, three, one])) == list(TOKENS)


def test_a_frame_is_heard_up_to_the_last_sample_of_a_recording() -> None:
    assert hear_tokens(play(frame(TOKEN))[1234:-4321]) == [TOKEN]


def test_a_token_whose_rounding_looks_like_a_marker_is_heard() -> None:
    """Found among some thousand random tokens: without noise, ggwave takes their ends to come early."""
    for token, protocol in (("brd_nb6ThuIwevU5ApNH", 3), ("brd_nb6ThuIwevU5ApNH", 4), ("brd_qzXLeRcBsPcBRYUo", 3)):
        with Listener() as listener:
            assert [each.token for each in listener.feed(play_16_bits(frame(token), protocol))] == [token]


def test_half_a_frame_is_not_heard() -> None:
    sound = play(frame(TOKEN), 5)
    assert hear_tokens(sound[: len(sound) // 2]) == []
    assert hear_tokens(sound[len(sound) // 2 :]) == []


def test_sound_that_is_not_exactly_a_frame_is_ignored() -> None:
    texts = (
        *("hello", "XRC1:", "XRC1:brd_123456789012345", "XRC1:brd_12345678901234567", "XRC1:brd_1234567890123+56"),
        *("xrc1:brd_1234567890123456", "XRC2:brd_1234567890123456", " XRC1:brd_1234567890123456"),
        "XRC1:brd_1234567890123456\n",
        *("XRC1:brd_123456789012345é", "http://evil.example/?XRC1:brd_1234567890123456"),
    )
    assert hear_tokens(np.concatenate([play(text, 5) for text in (*texts, frame(TOKEN))])) == [TOKEN]


def test_noise_and_silence_hold_no_frame() -> None:
    assert hear_tokens(np.random.default_rng(1).normal(0, 0.2, 6 * RATE_HZ)) == []
    assert hear_tokens(np.zeros(2 * RATE_HZ)) == []
    assert hear_tokens(np.zeros(0)) == []


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(1, 9000), min_size=1, max_size=20), st.sampled_from([44_100, 48_000]))
def test_the_size_of_the_blocks_makes_no_difference(cuts: list[int], rate_hz: int) -> None:
    sound = resample(play(frame(TOKEN), 5), rate_hz)
    found = []
    with Listener(rate_hz) as listener:
        for turn in range(len(sound)):
            size = cuts[turn % len(cuts)] if turn < 300 else 9000
            found += listener.feed(sound[:size])
            sound = sound[size:]
            if not len(sound):
                break
        found += listener.finish()
    assert [each.token for each in found] == [TOKEN]


def test_a_listener_reports_a_frame_before_the_stream_ends() -> None:
    with Listener() as listener:
        assert [each.token for each in listener.feed(play(frame(TOKEN)))] == [TOKEN]
        assert listener.feed(play(frame(TOKEN))) == []


def test_a_listener_remembers_a_limited_number_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_REPORTED_MAX", 1)
    one, two = play(frame(TOKENS[0]), 5), play(frame(TOKENS[1]), 5)
    assert hear_tokens(np.concatenate([one, one, two, one])) == [TOKENS[0], TOKENS[1], TOKENS[0]]


@pytest.mark.parametrize("kind", ["int16", "int32", "float32", "float64"])
def test_samples_may_be_integers_or_floats(kind: str) -> None:
    sound = play(frame(TOKEN))
    scale = np.iinfo(kind).max if kind.startswith("int") else 1
    assert [each.token for each in hear_samples((sound * scale).astype(kind), RATE_HZ)] == [TOKEN]


def test_floats_beyond_full_scale_are_heard_as_they_are() -> None:
    """Noise 18 dB above the frame would hide it if it were clipped."""
    assert hear_tokens(40 * add_white_noise(play(frame(TOKEN)), -18, seed=1)) == [TOKEN]


def test_samples_that_are_nan_do_not_affect_later_ones() -> None:
    broken = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308] * 100)
    assert hear_tokens(np.concatenate([broken, np.zeros(RATE_HZ // 2), play(frame(TOKEN))])) == [TOKEN]


@pytest.mark.parametrize("samples", [np.zeros((4, 2)), np.zeros(4, complex), np.zeros(4, np.uint8), np.array(["a"])])
def test_other_samples_are_refused(samples: Sound) -> None:
    with pytest.raises(ValueError, match="Samples"):
        hear_samples(samples, RATE_HZ)


def test_a_list_of_samples_is_refused_because_it_does_not_say_what_full_scale_is() -> None:
    with pytest.raises(TypeError, match="NumPy array"):
        hear_samples([0, 1, 32_767], RATE_HZ)  # type: ignore[arg-type]  # callers without types may do it


def test_a_closed_listener_refuses_samples() -> None:
    with Listener() as listener:
        listener.feed(np.zeros(1024))
    listener.close()
    for call in (lambda: listener.feed(np.zeros(1024)), listener.finish):
        with pytest.raises(RuntimeError, match="closed"):
            call()


@pytest.mark.parametrize("groups_later", [3.5, 6.5])
def test_a_weaker_code_is_heard_over_another_one(groups_later: float) -> None:
    """Six decibels below it. More places look like its beginning than there is time to try in full."""
    louder, weaker = play(frame(TOKENS[0])), play(frame(TOKENS[1 if groups_later == 6.5 else 2])) / 2
    together = np.zeros(len(louder) + len(weaker))
    together[: len(louder)] += louder
    at = round(groups_later * 6144)
    together[at : at + len(weaker)] += weaker
    assert len(hear_tokens(together + np.random.default_rng(1).normal(0, 1e-4, len(together)))) == 2

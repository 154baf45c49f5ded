"""The trace of a request: read to the letter of W3C Trace Context, Levels 1 and 2, and passed on unchanged."""

import pytest

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.tracing.context import (
    TraceContext,
    add_trace_id,
    begin_trace,
    current,
    drop_sampling,
    find_trace_id,
    find_traceparent,
    outgoing_headers,
    read_trace,
    receive_trace,
)

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
VALID = f"00-{TRACE_ID}-{PARENT_ID}-01"
ENTROPY = SystemEntropy()


def received(*traceparents: str, states: tuple[str, ...] = ()) -> TraceContext | None:
    headers = [(b"traceparent", each.encode("latin-1")) for each in traceparents]
    return receive_trace([(b"accept", b"*/*"), *headers, *((b"tracestate", each.encode("latin-1")) for each in states)])


def test_a_wellformed_header_names_the_trace(subtests: pytest.Subtests) -> None:
    """Flags that no level defines are cleared; of a later version only what all versions have is read."""
    for traceparent, flags in (
        (VALID, 1),
        (f" \t{VALID}\t", 1),
        (VALID[:-2] + "00", 0),
        (VALID[:-2] + "02", 2),
        (VALID[:-2] + "ff", 3),
        (VALID[:-2] + "0c", 0),
        ("01" + VALID[2:], 1),
        ("cc" + VALID[2:-2] + "03", 1),
        ("fe" + VALID[2:] + "-what=ever", 1),
        ("01" + VALID[2:] + "-", 1),
    ):
        with subtests.test(traceparent=traceparent):
            assert received(traceparent) == TraceContext(TRACE_ID, PARENT_ID, flags)


def test_a_malformed_header_names_no_trace(subtests: pytest.Subtests) -> None:
    for traceparent in (
        "",
        "00",
        VALID[:-1],
        VALID + "0",
        VALID + "-",
        VALID + "-00",
        VALID.upper(),
        "ff" + VALID[2:],
        "0" + VALID[2:],
        "0x" + VALID[2:],
        "é0" + VALID[2:],
        "01" + VALID[2:-1],
        "01" + VALID[2:] + ".more",
        "01" + VALID[2:] + "0",
        VALID.replace("-", "_"),
        VALID.replace(TRACE_ID, "0" * 32),
        VALID.replace(TRACE_ID, "g" + TRACE_ID[1:]),
        VALID.replace(PARENT_ID, "0" * 16),
        VALID.replace(PARENT_ID, PARENT_ID[1:]),
        VALID[:-2] + "0G",
        f"{VALID},{VALID}",
        f"{VALID}\n",
    ):
        with subtests.test(traceparent=traceparent):
            assert received(traceparent) is None


def test_several_headers_name_no_trace() -> None:
    assert received(VALID, VALID) is None
    assert received() is None


def test_the_state_is_passed_on_unchanged_within_its_limits(subtests: pytest.Subtests) -> None:
    most = ",".join(f"k{number}=1" for number in range(32))
    for states, passed in (
        (("congo=t61rcWkgMzE",), "congo=t61rcWkgMzE"),
        (("a=1", "b=2 , c=3"), "a=1,b=2 , c=3"),
        (("", " ", "a=1,,b=2,\t", ""), ", ,a=1,,b=2,\t,"),
        (("1@tenant/*_-=x y!~",), "1@tenant/*_-=x y!~"),
        (("k" * 256 + "=" + "v" * 255,), "k" * 256 + "=" + "v" * 255),
        (("k=" + "v" * 256,), "k=" + "v" * 256),
        ((most,), most),
        ((" , ",), ""),
    ):
        with subtests.test(states=states):
            assert received(VALID, states=states) == TraceContext(TRACE_ID, PARENT_ID, 1, passed)


def test_a_malformed_state_is_dropped_and_the_trace_goes_on(subtests: pytest.Subtests) -> None:
    for state in (
        "novalue",
        "a=",
        "=1",
        "A=1",
        "a =1",
        "a= ",
        "a=1,a=2",
        "a=b=c",
        "a=é",
        "a=\x7f",
        "k" * 257 + "=1",
        "k=" + "v" * 257,
        "@a=1",
        ",".join(f"k{number}=1" for number in range(33)),
    ):
        with subtests.test(state=state):
            assert received(VALID, states=(state,)) == TraceContext(TRACE_ID, PARENT_ID, 1)


def test_the_state_of_a_malformed_parent_is_not_read() -> None:
    assert received(VALID[:-1], states=("a=1",)) is None


def test_a_long_state_loses_long_members_first_and_then_those_on_the_right() -> None:
    long, short = "long=" + "x" * 200, [f"k{number:02}=" + "y" * 60 for number in range(8)]
    trace = received(VALID, states=(",".join([short[0], long, *short[1:]]),))
    assert trace is not None
    assert trace.state == ",".join(short[:7])


def test_what_is_written_is_read_again() -> None:
    trace = begin_trace(ENTROPY)
    assert read_trace(trace.traceparent) == trace
    assert trace.traceparent.endswith("-02"), "random, and not sampled"
    assert read_trace(VALID, "a=1") == TraceContext(TRACE_ID, PARENT_ID, 1, "a=1")
    assert read_trace(None) is None


def test_a_caller_s_decision_is_dropped_with_a_new_parent() -> None:
    """The flag may only be changed together with the parent's id."""
    sampled, unsampled = read_trace(VALID), read_trace(VALID[:-2] + "02")
    assert sampled is not None
    assert unsampled is not None
    dropped = drop_sampling(sampled, ENTROPY)
    assert (dropped.trace_id, dropped.flags) == (TRACE_ID, 0)
    assert dropped.parent_id != PARENT_ID
    assert drop_sampling(unsampled, ENTROPY) is unsampled


def test_the_current_trace_is_in_headers_and_log_lines() -> None:
    assert outgoing_headers() == {}
    assert find_traceparent() is None
    assert add_trace_id(None, "info", {"event": "one"}) == {"event": "one"}
    headers = [(b"traceparent", VALID.encode())]
    assert find_trace_id(headers, ENTROPY) == TRACE_ID
    token = current.set(TraceContext("a" * 32, PARENT_ID, 0, "a=1"))
    try:
        assert outgoing_headers() == {"traceparent": f"00-{'a' * 32}-{PARENT_ID}-00", "tracestate": "a=1"}
        assert find_traceparent() == f"00-{'a' * 32}-{PARENT_ID}-00"
        assert add_trace_id(None, "info", {"event": "one"}) == {"event": "one", "trace_id": "a" * 32}
        assert find_trace_id(headers, ENTROPY) == "a" * 32
    finally:
        current.reset(token)

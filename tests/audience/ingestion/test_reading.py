"""The fast reader of usual events and the model of every event agree on any input."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soundmark.audience.hot import event as reading
from soundmark.audience.hot.event import Event, parse_body, read_event
from soundmark.kit.http.responses.problems import MalformedBody, ValidationFailed
from soundmark.kit.text.timestamps import parse_timestamp
from soundmark.wire.audience_event import COUNTRIES

ID_CHARS = "ABCXYZabcxyz0189_-"
EVENT = {
    "event_id": "evt_" + "e" * 22,
    "integration_id": "int_" + "i" * 22,
    "xr_id": "xr_" + "x" * 22,
    "occurred_at": "2026-11-20T10:00:00.000Z",
    "receiver_class": "phone",
    "measurement_token": "mt_" + "m" * 43,
    "country": "TN",
    "proof": {
        "proof_id": "prf_" + "p" * 22,
        "xr_id": "xr_" + "x" * 22,
        "integration_id": "int_" + "i" * 22,
        "campaign_id": None,
        "issued_at": "2026-11-20T10:00:00.000Z",
        "expires_at": "2026-11-20T10:05:00.000Z",
        "key_id": "sig_" + "k" * 22,
        "signature": "s" * 86,
    },
}


def ids(prefix: str, sizes: tuple[int, ...]) -> st.SearchStrategy[str]:
    return (
        st.sampled_from(sizes).flatmap(lambda size: st.text(ID_CHARS, min_size=size, max_size=size)).map(prefix.__add__)
    )


timestamps = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z"),
    st.from_regex(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{0,10})?([Zz]|[+-]\d\d:\d\d)?", fullmatch=True),
    st.sampled_from(
        ["2026-11-20T24:00:00.000Z", "2026-02-29T00:00:00.000Z", "0001-01-01T00:00:00+14:00", "2026-11-20"]
    ),
)
values: dict[str, st.SearchStrategy[Any]] = {
    "event_id": ids("evt_", (21, 22, 23)),
    "integration_id": ids("int_", (7, 8, 22)),
    "xr_id": ids("xr_", (15, 16, 22)),
    "occurred_at": timestamps,
    "receiver_class": st.sampled_from(["phone", "kiosk", "other", "fridge"]),
    "measurement_token": ids("mt_", (42, 43, 44)),
    "country": st.sampled_from([*sorted(COUNTRIES)[:5], "XX", "tn", "", None]),
}
proof_values: dict[str, st.SearchStrategy[Any]] = {
    "proof_id": st.one_of(ids("prf_", (15, 16, 22)), st.sampled_from([None, ""])),
    "xr_id": ids("xr_", (15, 16, 22)),
    "integration_id": ids("int_", (7, 8, 22)),
    "campaign_id": st.one_of(st.none(), ids("cmp_", (15, 16, 22)), st.just("")),
    "issued_at": timestamps,
    "expires_at": timestamps,
    "key_id": st.one_of(st.text(max_size=4), st.text("k", min_size=159, max_size=161)),
    "signature": st.text(ID_CHARS, min_size=42, max_size=90),
}
strange = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}))


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Generate bodies, mostly events, with something strange in one or two places."""
    event: dict[str, Any] = {**EVENT, "proof": dict(EVENT["proof"])}  # type: ignore[call-overload]  # it is an object
    for target, known in ((event, values), (event["proof"], proof_values)):
        for name in draw(st.sets(st.sampled_from(sorted(known)), max_size=2)):
            target[name] = draw(st.one_of(known[name], known[name], strange))
        if draw(st.integers(0, 9)) == 0:
            target.pop(draw(st.sampled_from(sorted(target))), None)
        if draw(st.integers(0, 9)) == 0:
            target[draw(st.text(max_size=8))] = draw(strange)
    if not isinstance(event.get("proof"), dict):
        event["proof"] = draw(strange)
    text = json.dumps(event, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    if draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from(["event_id", "country", "proof"]))
        text = text.rstrip()[:-1] + f',"{name}":{json.dumps(event.get(name))}}}'
    if draw(st.integers(0, 19)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(['"', "\\", "\x00", "\x1f", " ", "}", ","])) + text[at:]
    return text.encode("utf-8", "surrogatepass")


def _any(body: bytes) -> Event | ValidationFailed | None:
    try:
        return reading._read_any(reading._parse_any(body))
    except MalformedBody:
        return None


def _usual(body: bytes) -> Event | None:
    members = reading._parse_usual(body)
    return None if members is None else reading._read_usual(members)


def _id_of(body: bytes) -> str | None:
    """Return the integration that a body names, as any JSON reader finds it; the shape has no influence."""
    value = reading._parse_any(body)
    found = value.get("integration_id") if isinstance(value, dict) else None
    is_id = isinstance(found, str) and re.fullmatch("int_[A-Za-z0-9_-]{8,}", found) is not None
    return found if is_id else None


@settings(max_examples=500, deadline=None)
@given(bodies())
def test_the_fast_reader_never_contradicts_the_model(body: bytes) -> None:
    """What it accepts is the very same event; what it leaves undecided may be anything."""
    usual = _usual(body)

    assert usual is None or usual == _any(body)


@settings(max_examples=500, deadline=None)
@given(bodies())
def test_the_parser_before_the_signature_check_agrees_with_the_strict_one(body: bytes) -> None:
    """The fast parser accepts nothing that the strict one refuses, and finds the same integration."""
    try:
        expected = _id_of(body)
    except MalformedBody:
        with pytest.raises(MalformedBody):
            parse_body(body)
        return

    assert parse_body(body).integration_id == expected


@given(st.sampled_from(sorted(COUNTRIES)), st.booleans(), st.booleans(), st.booleans())
def test_a_usual_event_needs_only_the_fast_reader(
    country: str, has_proof_id: bool, has_campaign: bool, is_known: bool
) -> None:
    event: dict[str, Any] = {**EVENT, "country": country if is_known else None}
    proof = dict(EVENT["proof"])  # type: ignore[call-overload]  # it is an object
    if not has_proof_id:
        del proof["proof_id"]
    if has_campaign:
        proof["campaign_id"] = "cmp_" + "c" * 22
    body = json.dumps({**event, "proof": proof}).encode()

    usual = _usual(body)

    assert usual is not None
    assert usual == _any(body) == read_event(parse_body(body))
    assert usual.country == (country if is_known else None)


@given(st.binary(max_size=200))
def test_any_body_is_an_event_or_invalid_or_malformed(body: bytes) -> None:
    assert _usual(body) is None
    assert not isinstance(_any(body), Event)


def test_the_countries_are_those_of_the_standard() -> None:
    """249 are assigned (ISO 3166-1, newsletter of 2018 and later)."""
    assert len(COUNTRIES) == 249
    assert {"TN", "DE", "XK"} & COUNTRIES == {"TN", "DE"}


def test_a_key_id_has_1_to_160_characters(subtests: pytest.Subtests) -> None:
    for chars, is_event in [(0, False), (1, True), (160, True), (161, False)]:
        with subtests.test(chars=chars, is_event=is_event):
            body = json.dumps({**EVENT, "proof": {**EVENT["proof"], "key_id": "k" * chars}}).encode()  # type: ignore[dict-item]  # an object
            assert isinstance(read_event(parse_body(body)), Event) is is_event


def test_a_time_is_cut_to_milliseconds_however_it_is_written(subtests: pytest.Subtests) -> None:
    for fraction_and_zone in ["Z", ".1Z", ".123Z", ".123456Z", ".123456789Z", ".123z", ".123+00:00", ".123456-12:30"]:
        with subtests.test(fraction_and_zone=fraction_and_zone):
            text = f"2026-11-20T10:00:00{fraction_and_zone}"
            event = read_event(parse_body(json.dumps({**EVENT, "occurred_at": text}).encode()))
            assert isinstance(event, Event)
            assert event.occurred_at == parse_timestamp(text)

import json
from datetime import timedelta
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk import KeySet, ReceiverFailure, read_key_set, verify_answer
from soundmark_sdk.failures import KeyUnknown, Unverifiable
from soundmark_sdk.records import Intent, Policy

from .issuer import INTEGRATION_ID, INTENT, MEASURED, NOW, TOKEN, UNMEASURED, XR_ID, Issuer, Json, compact, digest

OTHER_INTENT = {**INTENT, "action": "buy"}


@pytest.fixture
def keys(issuer: Issuer) -> KeySet:
    """The published keys."""
    return read_key_set(issuer.key_set())


def expect_refusal(answer: Json | bytes, keys: KeySet, *, token: str = TOKEN) -> bool:
    body = answer if isinstance(answer, bytes) else compact(answer)
    try:
        verify_answer(body, token, keys, NOW)
    except ReceiverFailure as failure:
        return failure.reason == "unverifiable"
    return False


def test_a_genuine_answer_is_read_from_the_signed_payload(issuer: Issuer, keys: KeySet) -> None:
    resolution = verify_answer(compact(issuer.answer()), TOKEN, keys, NOW)
    assert resolution.xr_id == XR_ID
    assert resolution.intent == Intent("link", "open", INTENT["resource"])
    assert resolution.policy == Policy(audience_measurement=False, audience_integration_id=None)
    assert resolution.measurement_proof is None
    assert (resolution.issued_at, resolution.expires_at) == (NOW, NOW + timedelta(seconds=120))
    assert (resolution.key_id, resolution.verified_at) == (issuer.key_id, NOW)


def test_the_keys_are_no_part_of_what_was_verified(issuer: Issuer, keys: KeySet) -> None:
    """The same answer is the same resolution after a rotation, and a log that shows it shows no key set."""
    more = read_key_set(issuer.key_set(Issuer(bytes(32), "key-2026-12").jwk(status="next")))
    before, after = (verify_answer(compact(issuer.answer()), TOKEN, known, NOW) for known in (keys, more))
    assert before == after
    assert (before.verified_with, after.verified_with) == (keys, more)
    assert "KeySet" not in repr(before)


@pytest.mark.parametrize("changes", [{}, {"proof_id": ...}, {"campaign_id": "cmp_0123456789abcdefABCDEF"}], ids=str)
def test_a_genuine_measurement_proof_is_returned_unchanged(issuer: Issuer, keys: KeySet, changes: Json) -> None:
    """A publisher sends `document` to Audience, so it must be exactly the proof that Core signed."""
    answer = issuer.measured_answer(**changes)
    resolution = verify_answer(compact(answer), TOKEN, keys, NOW)
    assert resolution.policy.audience_integration_id == INTEGRATION_ID
    assert resolution.measurement_proof is not None
    assert resolution.measurement_proof.document() == answer["measurement_proof"]


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("pattern", [0x01, 0x20, 0x80, 0xFF])
def test_every_byte_flipped_once_yields_no_intent(issuer: Issuer, keys: KeySet, pattern: int, measured: bool) -> None:
    body = compact(issuer.measured_answer() if measured else issuer.answer())
    for place in range(len(body)):
        altered = bytearray(body)
        altered[place] ^= pattern
        assert expect_refusal(bytes(altered), keys), f"byte {place}: {altered[max(0, place - 20) : place + 20]!r}"


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_cut_or_stretched_body_yields_no_intent(data: st.DataObject) -> None:
    issuer = Issuer()
    body = compact(issuer.answer())
    start = data.draw(st.integers(0, len(body) - 1))
    end = data.draw(st.integers(start + 1, len(body)))
    stuffing = data.draw(st.binary(max_size=3).filter(lambda stuffing: stuffing.strip(b" \t\r\n")))
    altered = body[:start] + stuffing + body[end:]
    # Another spelling of the same outer answer (`\\/`, `-2.50`, a space) is the same answer.
    assert write_spelling(altered) == write_spelling(body) or expect_refusal(altered, read_key_set(issuer.key_set()))


def write_spelling(body: bytes) -> str | None:
    """Return one spelling for each JSON value, with numbers and booleans apart, or None for a text that is not JSON."""
    try:
        return json.dumps(json.loads(body), sort_keys=True)
    except ValueError:
        return None


@pytest.mark.parametrize("change", [(b"/", b"\\/"), (b"-2.5", b"-2.50"), (b",", b", ")], ids=str)
def test_the_outer_answer_may_have_another_spelling(issuer: Issuer, keys: KeySet, change: tuple[bytes, bytes]) -> None:
    altered = compact(issuer.answer()).replace(*change)
    assert altered != compact(issuer.answer())
    assert verify_answer(altered, TOKEN, keys, NOW).intent.resource == INTENT["resource"]


def test_an_outer_answer_that_differs_from_what_was_signed_is_refused(
    issuer: Issuer, keys: KeySet, subtests: pytest.Subtests
) -> None:
    for changes in [
        {"resolution_proof": ...},
        {"resolution_proof": None},
        {"signature_status": ...},
        {"signature_status": "unverified"},
        {"signature_status": True},
        {"xr_id": ...},
        {"xr_id": XR_ID + "x"},
        {"intent": OTHER_INTENT},
        {"intent": {**INTENT, "more": 1}},
        {"intent": {**INTENT, "resource": {**INTENT["resource"], "n": [1.0, -2.5, True, None]}}},
        {"intent": {**INTENT, "resource": {**INTENT["resource"], "n": [True, -2.5, True, None]}}},
        {"intent": {**INTENT, "resource": {**INTENT["resource"], "n": [1, -2.5, 1, None]}}},
        {"policy": MEASURED},
        {"policy": {**UNMEASURED, "audience_measurement": 0}},
        {"measurement_proof": None},
        {"more": 1},
    ]:
        with subtests.test(changes=changes):
            assert expect_refusal(issuer.answer_to(issuer.payload(), **changes), keys)


def test_an_altered_envelope_is_refused(issuer: Issuer, keys: KeySet, subtests: pytest.Subtests) -> None:
    for changes in [
        {"version": 2},
        {"version": True},
        {"version": 1.0},
        {"key_id": ""},
        {"key_id": "k" * 161},
        {"issued_at": "2026-11-20T10:00:30.501Z"},
        {"expires_at": "2026-11-20T10:02:30.501Z"},
        {"payload": ""},
        {"payload": None},
        {"signature": "A" * 86},
        {"signature": "A" * 85},
        {"signature": None},
        {"more": 1},
    ]:
        with subtests.test(changes=changes):
            payload = issuer.payload()
            answer = issuer.answer_to(payload, resolution_proof={**issuer.envelope(payload), **changes})
            assert expect_refusal(answer, keys)


def test_a_signed_payload_of_another_shape_is_refused(issuer: Issuer, keys: KeySet, subtests: pytest.Subtests) -> None:
    """Even with Core's own signature, a shape that the contract lacks is refused."""
    for changes in [
        {"version": 2},
        {"version": True},
        {"xr_id": "xr_short"},
        {"intent": {"type": "", "action": "open", "resource": {}}},
        {"intent": {"type": "t" * 161, "action": "open", "resource": {}}},
        {"intent": {"type": "link", "action": "open", "resource": []}},
        {"intent": {"type": "link", "action": "open"}},
        {"intent": {"type": "link", "action": "open", "resource": {"a": "x" * 16_384}}},
        {"policy": {"audience_measurement": False, "audience_integration_id": INTEGRATION_ID}},
        {"policy": {"audience_measurement": True, "audience_integration_id": None}},
        {"policy": MEASURED},
        {"policy": {**UNMEASURED, "more": 1}},
        {"token_digest": digest("brd_0000000000000000")},
        {"token_digest": ...},
        {"token_digest": None},
        {"expires_at": "2026-11-20T10:02:30Z"},
        {"lifetime_s": 0},
        {"lifetime_s": -1},
        {"lifetime_s": 120.001},
        {"more": 1},
    ]:
        with subtests.test(changes=changes):
            assert expect_refusal(issuer.answer(**changes), keys)


def test_a_payload_has_at_most_65536_characters(issuer: Issuer, keys: KeySet) -> None:
    """In base64url, which is 49152 bytes; only an id can be so long."""
    xr_id = "xr_" + "x" * (49_152 - len(rfc8785.dumps(issuer.payload(xr_id="xr_"))))
    longest = issuer.answer(xr_id=xr_id)
    assert len(longest["resolution_proof"]["payload"]) == 65_536
    assert verify_answer(compact(longest), TOKEN, keys, NOW).xr_id == xr_id
    assert expect_refusal(issuer.answer(xr_id=xr_id + "x"), keys)


def test_an_intent_beyond_32_levels_is_refused(issuer: Issuer, keys: KeySet) -> None:
    deepest: Json = {}
    for _ in range(30):
        deepest = {"a": deepest}
    intent = {"type": "link", "action": "open", "resource": deepest}
    assert verify_answer(compact(issuer.answer(intent=intent)), TOKEN, keys, NOW).intent.resource == deepest
    assert expect_refusal(issuer.answer(intent={**intent, "resource": {"a": deepest}}), keys)


def test_a_genuine_answer_to_another_token_is_refused(issuer: Issuer, keys: KeySet) -> None:
    assert expect_refusal(issuer.answer(), keys, token="brd_0000000000000000")


@pytest.mark.parametrize(
    "spell",
    [
        compact,
        lambda payload: rfc8785.dumps(payload) + b"\n",
        lambda payload: rfc8785.dumps(payload).replace(b'"n":[1,', b'"n":[1.0,'),
        lambda payload: rfc8785.dumps(payload).replace("é".encode(), b"\\u00e9"),
        lambda payload: rfc8785.dumps(payload).replace(b'"version":1', b'"version":1,"version":1'),
    ],
)
def test_a_payload_in_any_but_its_canonical_spelling_is_refused(issuer: Issuer, keys: KeySet, spell: Any) -> None:
    payload = issuer.payload()
    envelope = issuer.envelope(payload, payload_bytes=spell(payload))
    assert expect_refusal(issuer.answer_to(payload, resolution_proof=envelope), keys)


@pytest.mark.parametrize(
    ("issued_s_ago", "accepted"),
    [(239.9, True), (240, False), (100_000, False), (-120, True), (-120.001, False), (-100_000, False)],
)
def test_the_clocks_may_differ_by_two_minutes(
    issuer: Issuer, keys: KeySet, issued_s_ago: float, accepted: bool
) -> None:
    answer = issuer.answer(issued_at=NOW - timedelta(seconds=issued_s_ago))
    assert expect_refusal(answer, keys) is not accepted


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_distant_dates_are_refused_without_an_overflow(issuer: Issuer, keys: KeySet, year: str) -> None:
    times = {"issued_at": f"{year}-01-01T00:00:00.000Z", "expires_at": f"{year}-01-01T00:02:00.000Z"}
    payload = {**issuer.payload(), **times}
    assert expect_refusal(issuer.answer_to(payload), keys)


def test_an_unknown_key_has_its_own_failure_so_that_a_newer_set_can_be_fetched(issuer: Issuer) -> None:
    other = Issuer(bytes(32), "key-2026-12")
    with pytest.raises(KeyUnknown):
        verify_answer(compact(issuer.answer()), TOKEN, read_key_set(other.key_set()), NOW)


def test_the_signature_of_another_key_with_a_known_id_is_refused(issuer: Issuer, keys: KeySet) -> None:
    forger = Issuer(bytes(32), issuer.key_id)
    assert expect_refusal(forger.answer(), keys)
    assert expect_refusal(issuer.answer(policy=MEASURED, measurement_proof=forger.proof()), keys)


def test_the_measurement_proof_of_another_answer_is_refused(
    issuer: Issuer, keys: KeySet, subtests: pytest.Subtests
) -> None:
    for changes in [
        {"xr_id": "xr_AAAAAAAAAAAAAAAAAAAAAA"},
        {"integration_id": "int_AAAAAAAAAAAAAAAAAAAAAA"},
        {"proof_id": None},
        {"proof_id": "prf_short"},
        {"campaign_id": "cmp_short"},
        {"campaign_id": ...},
        {"lifetime_s": 300.001},
        {"lifetime_s": 0},
        {"issued_at": NOW + timedelta(seconds=120.001)},
        {"issued_at": NOW - timedelta(seconds=420)},
        {"key_id": "key-unknown"},
        {"more": 1},
    ]:
        with subtests.test(changes=changes):
            assert expect_refusal(issuer.measured_answer(**changes), keys)


def test_a_measurement_proof_without_a_valid_signature_of_its_own_is_refused(issuer: Issuer, keys: KeySet) -> None:
    proof = {**issuer.proof(), "signature": issuer.sign(b"something else")}
    assert expect_refusal(issuer.answer(policy=MEASURED, measurement_proof=proof), keys)


def test_a_measurement_proof_with_a_policy_that_does_not_measure_is_refused(issuer: Issuer, keys: KeySet) -> None:
    assert expect_refusal(issuer.answer(measurement_proof=issuer.proof()), keys)


def test_a_failure_holds_no_text_from_the_server(keys: KeySet) -> None:
    with pytest.raises(Unverifiable) as failure:
        verify_answer(b'{"detail":"<script>server text</script>', TOKEN, keys, NOW)
    assert "server text" not in f"{failure.value!r} {failure.value} {failure.value.explanation}"
    assert failure.value.retryable is False

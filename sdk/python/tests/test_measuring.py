"""`measure`: it requires consent and a valid proof, and an event identifies nobody."""

import base64
import hashlib
import hmac
import itertools
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
import soundmark_sdk.receiver
from hypothesis import given
from hypothesis import strategies as st
from soundmark_sdk import Consent, DeviceSecret, MeasurementRefused, Policy, measure, read_key_set, verify_answer

from .issuer import INTEGRATION_ID, MEASURED, NOW, TOKEN, XR_ID, Issuer, compact, timestamp
from .measurements import CONSENT, SECRET, make_measurement, make_resolution
from .stand_ins import FakeClock

OTHER_INTEGRATION = "int_ABCDEF0123456789abcdef"


def expect_refusal(issuer: Issuer, clock: FakeClock, **changes: Any) -> str:
    with pytest.raises(MeasurementRefused) as failure:
        make_measurement(issuer, clock, **changes)
    return failure.value.obstacle


def test_measure_is_exported_with_the_receiver() -> None:
    assert soundmark_sdk.receiver.measure is measure


def test_an_event_has_exactly_the_shape_of_the_contract(issuer: Issuer, clock: FakeClock) -> None:
    resolution = make_resolution(issuer)
    measurement = make_measurement(issuer, clock, resolution=resolution, country="TN")
    event = json.loads(measurement.body)
    assert re.fullmatch(r"evt_[A-Za-z0-9_-]{22}", event["event_id"])
    assert re.fullmatch(r"mt_[A-Za-z0-9_-]{43}", event["measurement_token"])
    assert resolution.measurement_proof is not None
    assert event == {
        "event_id": measurement.event_id,
        "integration_id": INTEGRATION_ID,
        "xr_id": XR_ID,
        "occurred_at": timestamp(NOW),
        "receiver_class": "phone",
        "measurement_token": SECRET.derive_measurement_token(INTEGRATION_ID, NOW.date()),
        "country": "TN",
        "proof": resolution.measurement_proof.document(),
    }


def test_a_proof_of_the_older_shape_is_measured_too(issuer: Issuer, clock: FakeClock) -> None:
    measurement = make_measurement(issuer, clock, resolution=make_resolution(issuer, proof_id=...))
    assert "proof_id" not in json.loads(measurement.body)["proof"]


def test_each_measurement_has_its_own_id(issuer: Issuer, clock: FakeClock) -> None:
    resolution = make_resolution(issuer)
    assert len({make_measurement(issuer, clock, resolution=resolution).event_id for _ in range(100)}) == 100


@pytest.mark.parametrize("consent", [None, True, "yes", INTEGRATION_ID])
def test_without_consent_nothing_is_measured(issuer: Issuer, clock: FakeClock, consent: Any) -> None:
    assert expect_refusal(issuer, clock, consent=consent) == "consent_missing"


def test_the_consent_must_be_passed() -> None:
    """A default could be forgotten."""
    with pytest.raises(TypeError, match="consent"):
        measure(make_resolution(Issuer()), device_secret=SECRET, receiver_class="phone")  # type: ignore[call-arg]  # that is what is refused


def test_a_consent_to_another_integration_does_not_count(issuer: Issuer, clock: FakeClock) -> None:
    assert expect_refusal(issuer, clock, consent=Consent(OTHER_INTEGRATION, NOW)) == "consent_missing"


def test_a_consent_in_the_future_does_not_count(issuer: Issuer, clock: FakeClock) -> None:
    later = Consent(INTEGRATION_ID, NOW + timedelta(minutes=2, seconds=1))
    assert expect_refusal(issuer, clock, consent=later) == "consent_missing"
    assert make_measurement(issuer, clock, consent=replace(later, given_at=NOW + timedelta(minutes=2)))


def test_a_consent_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Consent(INTEGRATION_ID, datetime(2026, 11, 20))  # noqa: DTZ001 - the point


def test_a_code_without_audience_is_not_measured(issuer: Issuer, clock: FakeClock) -> None:
    plain = verify_answer(compact(issuer.answer()), TOKEN, read_key_set(issuer.key_set()), NOW)
    assert expect_refusal(issuer, clock, resolution=plain) == "not_measured"


def test_an_altered_proof_is_refused(issuer: Issuer, clock: FakeClock, subtests: pytest.Subtests) -> None:
    """A program may have stored a resolution, changed it and built it again."""
    for altered in [
        {"proof_id": "prf_ABCDEF0123456789abcdef"},
        {"proof_id": None},
        {"xr_id": "xr_ABCDEF0123456789abcdef"},
        {"integration_id": OTHER_INTEGRATION},
        {"campaign_id": "cmp_0123456789abcdefABCDEF"},
        {"issued_at": NOW + timedelta(seconds=1)},
        {"expires_at": NOW + timedelta(seconds=299)},
        {"key_id": "key-2026-12"},
        {"signature": "A" * 86},
    ]:
        with subtests.test(next(iter(altered))):
            resolution = make_resolution(issuer)
            assert resolution.measurement_proof is not None
            spoilt = replace(resolution, measurement_proof=replace(resolution.measurement_proof, **altered))
            assert expect_refusal(issuer, clock, resolution=spoilt) == "unverifiable"


def test_a_genuine_proof_of_another_code_or_integration_is_refused(issuer: Issuer, clock: FakeClock) -> None:
    resolution = make_resolution(issuer)
    other_code = replace(resolution, xr_id="xr_ABCDEF0123456789abcdef")
    other_policy = replace(resolution, policy=Policy(True, OTHER_INTEGRATION))
    for spoilt in (other_code, other_policy):
        assert expect_refusal(issuer, clock, resolution=spoilt) == "unverifiable"


def test_a_key_that_did_not_sign_is_refused(issuer: Issuer, clock: FakeClock) -> None:
    stranger = Issuer(b"another-seed-of-exactly-32-bytes")
    keys = read_key_set(stranger.key_set())
    assert (
        expect_refusal(issuer, clock, resolution=replace(make_resolution(issuer), verified_with=keys)) == "unverifiable"
    )


def test_a_proof_is_accepted_until_two_minutes_after_its_end(issuer: Issuer, clock: FakeClock) -> None:
    resolution = make_resolution(issuer)
    clock.advance(300 + 119.999)
    assert make_measurement(issuer, clock, resolution=resolution)
    clock.advance(0.001)
    assert expect_refusal(issuer, clock, resolution=resolution) == "unverifiable"


@pytest.mark.parametrize("receiver_class", ["", "Phone", "iPhone 17", "desktop"])
def test_an_unknown_receiver_class_is_a_value_error(issuer: Issuer, clock: FakeClock, receiver_class: str) -> None:
    with pytest.raises(ValueError, match="receiver class"):
        make_measurement(issuer, clock, receiver_class=receiver_class)


@pytest.mark.parametrize("country", ["", "tn", "TUN", "36.8,10.2", "T1"])
def test_a_country_is_two_capital_letters(issuer: Issuer, clock: FakeClock, country: str) -> None:
    with pytest.raises(ValueError, match="country"):
        make_measurement(issuer, clock, country=country)


def test_a_token_is_the_hmac_of_integration_and_day() -> None:
    """A receiver in another language derives the same token from the same secret."""
    material = b"soundmark-measurement-token-v1\0" + INTEGRATION_ID.encode() + b"\x002026-11-20"
    made = base64.urlsafe_b64encode(hmac.new(bytes(range(32)), material, hashlib.sha256).digest()).decode().rstrip("=")
    assert SECRET.derive_measurement_token(INTEGRATION_ID, date(2026, 11, 20)) == f"mt_{made}"


def test_a_measurement_token_lasts_for_one_utc_day(issuer: Issuer) -> None:
    """In whatever time zone the receiver's clock is."""
    midnight = datetime(2026, 11, 21, tzinfo=UTC)
    zone = timezone(timedelta(hours=-11))
    tokens = []
    for at in (midnight - timedelta(milliseconds=1), midnight, midnight + timedelta(hours=23)):
        body = compact(issuer.answer(issued_at=at, policy=MEASURED, measurement_proof=issuer.proof(issued_at=at)))
        resolution = verify_answer(body, TOKEN, read_key_set(issuer.key_set()), at)
        clock = FakeClock(at.astimezone(zone))
        tokens.append(json.loads(make_measurement(issuer, clock, resolution=resolution).body)["measurement_token"])
    assert tokens[0] != tokens[1] == tokens[2]


@given(
    secret=st.binary(min_size=32, max_size=32),
    days=st.lists(st.dates(), min_size=2, max_size=8, unique=True),
    integrations=st.lists(
        st.from_regex(r"int_[A-Za-z0-9_-]{8,22}", fullmatch=True), min_size=2, max_size=4, unique=True
    ),
)
def test_no_two_days_or_integrations_share_a_token(secret: bytes, days: list[date], integrations: list[str]) -> None:
    device = DeviceSecret(secret)
    tokens = {device.derive_measurement_token(integration, day) for integration in integrations for day in days}
    assert len(tokens) == len(days) * len(integrations)


def test_tokens_of_other_days_look_unrelated() -> None:
    """Over many days, half of the bits differ on average, as between random values."""
    raw = [
        base64.urlsafe_b64decode(
            SECRET.derive_measurement_token(INTEGRATION_ID, date(2026, 1, 1) + timedelta(days=n))[3:] + "="
        )
        for n in range(400)
    ]
    differing = [(int.from_bytes(one) ^ int.from_bytes(other)).bit_count() for one, other in itertools.pairwise(raw)]
    assert 124 < sum(differing) / len(differing) < 132


def test_nothing_shows_the_secret_the_token_or_the_event(issuer: Issuer, clock: FakeClock) -> None:
    measurement = make_measurement(issuer, clock)
    event = json.loads(measurement.body)
    assert repr(SECRET) == "DeviceSecret(…)"
    for hidden in (event["event_id"], event["measurement_token"], event["proof"]["signature"]):
        assert hidden not in repr(measurement)
    assert CONSENT.integration_id in repr(measurement)


@pytest.mark.parametrize("secret", [b"", b"s" * 31, b"s" * 33])
def test_a_device_secret_is_32_bytes(secret: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes") as failure:
        DeviceSecret(secret)
    assert "sss" not in str(failure.value)


def test_new_secrets_differ() -> None:
    assert DeviceSecret.new().reveal() != DeviceSecret.new().reveal()

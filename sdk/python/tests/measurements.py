"""The resolution, consent and measurement of the Code that the tests use."""

from datetime import timedelta
from typing import Any, Final

from soundmark_sdk import Consent, DeviceSecret, Measurement, Resolution, measure, read_key_set, verify_answer

from .issuer import INTEGRATION_ID, NOW, TOKEN, Issuer, compact
from .stand_ins import FakeClock

SECRET: Final = DeviceSecret(bytes(range(32)))
CONSENT: Final = Consent(INTEGRATION_ID, NOW - timedelta(days=3))


def make_resolution(issuer: Issuer, **proof_changes: Any) -> Resolution:
    keys = read_key_set(issuer.key_set())
    return verify_answer(compact(issuer.measured_answer(**proof_changes)), TOKEN, keys, NOW)


def make_measurement(issuer: Issuer, clock: FakeClock, **changes: Any) -> Measurement:
    given: dict[str, Any] = {
        "consent": CONSENT,
        "device_secret": SECRET,
        "receiver_class": "phone",
        "clock": clock,
        **changes,
    }
    return measure(given.pop("resolution", None) or make_resolution(issuer), **given)

"""Measure a verified resolution with a person's consent: make the event for the publisher's backend."""

import json
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, get_args

from soundmark_sdk import base64url, timestamps
from soundmark_sdk.clock import Clock, SystemClock
from soundmark_sdk.device_secret import DeviceSecret
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.offline_pack import OfflineResolution
from soundmark_sdk.records import Resolution
from soundmark_sdk.verification import CLOCK_SKEW_MAX, verify_measurement_proof

ReceiverClass: TypeAlias = Literal[
    "phone", "tablet", "computer", "television", "speaker", "wearable", "vehicle", "kiosk", "other"
]
RECEIVER_CLASSES: Final = frozenset(get_args(ReceiverClass))
COUNTRY: Final = re.compile(r"[A-Z]{2}")

# 22 characters of base64url (API contract, section 1, "Ids").
_EVENT_ID_BYTES: Final = 16

Obstacle: TypeAlias = Literal["consent_missing", "not_measured", "unverifiable"]


class MeasurementRefused(Exception):
    """Nothing was measured or sent, for one of three reasons.

    `consent_missing`: there is no consent, or it is for another integration, or it begins later. `not_measured`: the
    Code has no audience measurement. `unverifiable`: the measurement proof is wrong or has expired; resolve again.
    """

    def __init__(self, obstacle: Obstacle, explanation: str) -> None:
        super().__init__(f"{obstacle}: {explanation}")
        self.obstacle: Final[Obstacle] = obstacle
        self.explanation: Final = explanation


@dataclass(frozen=True, slots=True)
class Consent:
    """A person's agreement, given at `given_at`, that one integration may measure this receiver.

    Make one only if the person agreed. It is never sent: `measure` only requires it, so after the person withdraws
    their consent, the program must discard it.
    """

    integration_id: str
    given_at: datetime

    def __post_init__(self) -> None:
        if self.given_at.utcoffset() is None:
            raise ValueError("The time of a consent must have a time zone.")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement: the bytes of its event, the same in every delivery.

    Keep `body` until it is delivered, even across a restart, and do not measure again to retry. The body holds the id
    of the event, by which Audience counts it once.
    """

    integration_id: str
    xr_id: str
    occurred_at: datetime
    event_id: str = field(repr=False)
    body: bytes = field(repr=False)


def measure(
    resolution: Resolution | OfflineResolution,
    *,
    consent: Consent | None,
    device_secret: DeviceSecret,
    receiver_class: ReceiverClass,
    country: str | None = None,
    clock: Clock | None = None,
) -> Measurement:
    """Return a measurement at the current time. Nothing is sent until its `body` is delivered.

    Without a `consent` it refuses. `receiver_class` and `country` (ISO 3166-1 alpha-2) are what the caller knows about
    the device; nothing is looked up. The proof is verified again, with the keys that verified the resolution: its
    signature and times, its Code, and the integration of the Code's policy. No pack has measured Codes.

    Raises: MeasurementRefused. ValueError for an unknown receiver class or a malformed country.
    Source: API v1, "Audience measurement event"; wire contract, section 6, "Event".
    """
    if receiver_class not in RECEIVER_CLASSES:
        raise ValueError("The contract has no such receiver class.")
    if country is not None and COUNTRY.fullmatch(country) is None:
        raise ValueError("A country is two capital letters of ISO 3166-1.")
    now = (SystemClock() if clock is None else clock).now().astimezone(UTC)
    # First: without consent, nothing about the resolution matters.
    if not isinstance(consent, Consent):
        raise MeasurementRefused("consent_missing", "There is no consent to be measured.")
    if isinstance(resolution, OfflineResolution):
        raise MeasurementRefused("not_measured", "The answer is from a pack, and no pack has measured Codes.")
    integration_id = _check_proof(resolution, now)
    if consent.integration_id != integration_id:
        raise MeasurementRefused("consent_missing", "The consent is for another integration.")
    if consent.given_at - now > CLOCK_SKEW_MAX:
        raise MeasurementRefused("consent_missing", "The consent begins later.")
    return _write(
        resolution,
        occurred_at=now,
        receiver_class=receiver_class,
        country=country,
        token=device_secret.derive_measurement_token(integration_id, now.date()),
    )


def _check_proof(resolution: Resolution, now: datetime) -> str:
    """Return the integration of a resolution, after verifying that its proof holds now for its Code and policy."""
    policy, proof = resolution.policy, resolution.measurement_proof
    if not policy.audience_measurement or policy.audience_integration_id is None or proof is None:
        raise MeasurementRefused("not_measured", "The Code is not measured.")
    try:
        verify_measurement_proof(proof.document(), resolution.verified_with, now)
    except Unverifiable as failure:
        raise MeasurementRefused("unverifiable", failure.explanation) from None
    if (proof.xr_id, proof.integration_id) != (resolution.xr_id, policy.audience_integration_id):
        raise MeasurementRefused("unverifiable", "The measurement proof is about something else.")
    return proof.integration_id


def _write(
    resolution: Resolution, *, occurred_at: datetime, receiver_class: ReceiverClass, country: str | None, token: str
) -> Measurement:
    proof = resolution.measurement_proof
    assert proof is not None, "_check_proof accepts only a resolution with a proof"
    event_id = "evt_" + base64url.encode(secrets.token_bytes(_EVENT_ID_BYTES))
    event = {
        "event_id": event_id,
        "integration_id": proof.integration_id,
        "xr_id": resolution.xr_id,
        "occurred_at": timestamps.write(occurred_at),
        "receiver_class": receiver_class,
        "measurement_token": token,
        "country": country,
        "proof": proof.document(),
    }
    return Measurement(
        integration_id=proof.integration_id,
        xr_id=resolution.xr_id,
        occurred_at=timestamps.parse(event["occurred_at"]),
        event_id=event_id,
        body=json.dumps(event, separators=(",", ":")).encode(),
    )

"""An integration as ingestion knows it, and the checks of whether it vouches for an event."""

import hmac
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from soundmark.audience.domain.retention import first_kept_day
from soundmark.audience.hot.event import Event, Proof
from soundmark.audience.store.ingestion import SourceRow
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import verifies
from soundmark.kit.http.responses.problems import InternalError, Problem, Unauthenticated
from soundmark.kit.text import base64url
from soundmark.wire.audience_limits import DEMO_EVENTS_MAX
from soundmark.wire.private.problems import EntitlementRequired, IntegrationRevoked, ProofInvalid

SKEW: Final = timedelta(minutes=2)  # API v1, "Audience measurement event" 4.
PROOF_LIFE_MAX: Final = timedelta(minutes=5)
TRANSITION: Final = timedelta(minutes=5)  # API v1, "Versioning" 4.
_NO_SECRET: Final = b"nobody's"


class _Key(NamedTuple):
    public_key: bytes
    canonical_id: bytes
    until: datetime | None


@dataclass(frozen=True, slots=True, eq=False)
class IntegrationState:
    """An integration as of one moment; reading an unchanged row again gives the same object."""

    row: SourceRow
    hmac_key: bytes | None  # None if it does not open under this master key.
    keys: dict[str, _Key]

    @property
    def monthly_quota(self) -> int:
        """The number of events that its organisation may record in a month in its mode."""
        return DEMO_EVENTS_MAX if self.row.mode == "demo" else self.row.monthly_event_quota or 0


def source_of(row: SourceRow, secret: Secret | None) -> IntegrationState:
    """Return the integration of a row and of its secret, if that opens."""
    keys = {}
    if row.previous_key_id is not None and row.previous_public_key is not None:
        keys[row.previous_key_id] = _Key(row.previous_public_key, _text(row.previous_key_id), row.previous_until)
    keys[row.core_key_id] = _Key(row.core_public_key, _text(row.core_key_id), None)
    return IntegrationState(row, None if secret is None else secret.reveal().encode(), keys)


def refusal_of_sender(source: IntegrationState | None, body: bytes, signature: bytes | None) -> Problem | None:
    """Return why `body` is not from this integration; None if its signature holds. The time does not matter.

    The publisher's signature over the raw bytes is compared in constant time. An integration that does not exist takes
    the same work.

    Source: contract, section 6.
    """
    key = None if source is None else source.hmac_key
    is_signed = hmac.compare_digest(hmac.digest(key or _NO_SECRET, body, "sha256"), signature or b"")
    if source is not None and key is None:
        return InternalError()  # An operator must repair this. The sender may retry, so that no event is lost.
    return None if source is not None and is_signed else Unauthenticated()


def signed_bytes(source: IntegrationState, proof: Proof) -> bytes:
    """Return the bytes that the proof's signature covers; none if the integration does not trust its key."""
    key = source.keys.get(proof.key_id)
    return b"" if key is None else proof.canonical(key.canonical_id)


def refusal_of_proof(source: IntegrationState, event: Event, signed: bytes) -> Problem | None:
    """Return why the proof does not vouch for this event; None if it may. `signed` are the bytes of `signed_bytes`.

    It judges the signed content and the key, but not the time.
    """
    return None if _is_genuine(source, event, signed) else ProofInvalid()


def refusal_at(source: IntegrationState, event: Event, now: datetime, *, transition_until: datetime) -> Problem | None:
    """Return why a genuine event is not admitted at `now`; None if it is.

    It judges the time of the proof, then the integration, then the entitlement.
    """
    if not _is_in_time(source, event, now, transition_until):
        return ProofInvalid()
    row = source.row
    if row.revoked_at is not None:
        return IntegrationRevoked()
    if row.mode != "demo" and (row.monthly_event_quota is None or (row.ends_at is not None and now >= row.ends_at)):
        return EntitlementRequired()
    return None


def _is_genuine(source: IntegrationState, event: Event, signed: bytes) -> bool:
    """Return whether a key that is or was trusted signed the proof, for this Code and this integration."""
    proof = event.proof
    key = source.keys.get(proof.key_id)
    is_about_this = proof.integration_id == event.integration_id and proof.xr_id == event.xr_id
    if key is None or not is_about_this:
        return False
    try:
        signature = base64url.decode(proof.signature)
    except ValueError:
        return False
    return verifies(key.public_key, signed, signature)


def _is_in_time(source: IntegrationState, event: Event, now: datetime, transition_until: datetime) -> bool:
    proof = event.proof
    until = source.keys[proof.key_id].until
    return (
        (until is None or now < until)
        and timedelta(0) < proof.expires_at - proof.issued_at <= PROOF_LIFE_MAX
        and proof.issued_at <= now + SKEW
        and proof.issued_at - SKEW <= event.occurred_at <= proof.expires_at + SKEW
        and event.occurred_at <= now + SKEW
        and event.occurred_at.date() >= first_kept_day(now, source.row.retention_days)
        and (proof.proof_id is not None or now < transition_until)
    )


def _text(key_id: str) -> bytes:
    # An id of Core's is ASCII that JSON does not escape; any other is written by the rules of JSON.
    return json.dumps(key_id, ensure_ascii=False).encode()

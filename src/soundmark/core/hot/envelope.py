"""The bytes of a resolution: the signed envelope, and the response around it."""

from datetime import datetime, timedelta
from typing import Final

from soundmark.core.domain.codes.signed_facts import SignedFacts
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

PROOF_LIFE: Final = timedelta(minutes=2)  # API v1, "Resolution proof envelope".
MEASUREMENT_LIFE: Final = timedelta(minutes=5)  # API v1, "Measurement proof".


class EnvelopeSigner:
    """Signs the envelopes and proofs of all answers of one moment, with one key.

    A payload is assembled from parts that are already canonical, in the order in which RFC 8785 sorts the names, so it
    is canonical as a whole (tests and docs/vectors check it against the library). The parts that all envelopes of a
    moment share are made once.

    Source: contract, section 3, Resolution proof and Measurement proof.
    """

    def __init__(self, key: SigningKey, now: datetime) -> None:
        self._now: Final = now
        self.issued_at: Final = format_timestamp(now)
        issued_at, expires_at = self.issued_at.encode(), format_timestamp(now + PROOF_LIFE).encode()
        key_id = key.key_id.encode()
        self._key: Final = key
        self._measured_middle: Final = b'","issued_at":"%b","key_id":"%b","proof_id":"' % (issued_at, key_id)
        self._payload_head: Final = b'{"expires_at":"%b","intent":' % expires_at
        self._payload_middle: Final = b',"issued_at":"%b","key_id":"%b",' % (issued_at, key_id)
        self._envelope_head: Final = b'{"version":1,"key_id":"%b","issued_at":"%b","expires_at":"%b","payload":"' % (
            key_id,
            issued_at,
            expires_at,
        )

    def measurement(self, facts: SignedFacts, integration_id: str, proof_id: str) -> bytes:
        """Return the `measurement_proof` of one resolution as canonical JSON bytes."""
        campaign = b"null" if facts.campaign_id is None else b'"%b"' % facts.campaign_id.encode()
        head = b"".join(
            (
                b'{"campaign_id":', campaign,
                b',"expires_at":"', format_timestamp(self._now + MEASUREMENT_LIFE).encode(),
                b'","integration_id":"', integration_id.encode(),
                self._measured_middle, proof_id.encode(),
            )
        )  # fmt: skip
        tail = b'","xr_id":"%b"}' % facts.xr_id.encode()
        return b"".join((head, b'","signature":"', base64url.encode_to_bytes(self._key.sign(head + tail)), tail))

    def envelope(self, facts: SignedFacts, measurement: bytes | None = None) -> bytes:
        """Return the `resolution_proof` as JSON bytes, including the `measurement` proof if the Code is measured."""
        measured = b"" if measurement is None else b'"measurement_proof":' + measurement + b","
        payload = b"".join(
            (
                self._payload_head, facts.intent,
                self._payload_middle, measured, b'"policy":', facts.policy,
                b',"token_digest":"', facts.token_digest.encode(),
                b'","version":1,"xr_id":"', facts.xr_id.encode(), b'"}',
            )
        )  # fmt: skip
        return b"".join(
            (
                self._envelope_head, base64url.encode_to_bytes(payload),
                b'","signature":"', base64url.encode_to_bytes(self._key.sign(payload)), b'"}',
            )
        )  # fmt: skip


def answer_body(facts: SignedFacts, envelope: bytes | None, measurement: bytes | None = None) -> bytes:
    """Return the response body: with the envelope if requested, and the measurement proof if the Code is measured."""
    measured = b"" if measurement is None else b',"measurement_proof":' + measurement
    proof = b"" if envelope is None else b',"resolution_proof":' + envelope
    return b"".join(
        (
            b'{"xr_id":"', facts.xr_id.encode(),
            b'","signature_status":"verified","intent":', facts.intent,
            b',"policy":', facts.policy, measured, proof, b"}",
        )
    )  # fmt: skip

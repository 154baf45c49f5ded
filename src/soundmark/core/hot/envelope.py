"""The bytes of a resolution: the envelope that is signed for each answer, and the answer around it."""

from datetime import datetime, timedelta
from typing import Final

from soundmark.core.domain.signed_facts import SignedFacts
from soundmark.kit import base64url
from soundmark.kit.signing import SigningKey
from soundmark.kit.timestamps import format_timestamp

PROOF_LIFE: Final = timedelta(minutes=2)  # API v1, "Resolution proof envelope".


class Seal:
    """One key at one moment: signs the envelopes of everybody who is answered then.

    A payload is put together from parts that are canonical already, in the order that RFC 8785 sorts the names, so it
    is the canonical form of the whole (checked against the library by tests and by docs/vectors). What all envelopes of
    a moment share is made once.

    Source: contract, section 3, Resolution proof.
    """

    def __init__(self, key: SigningKey, now: datetime) -> None:
        self.issued_at: Final = format_timestamp(now)
        issued_at, expires_at = self.issued_at.encode(), format_timestamp(now + PROOF_LIFE).encode()
        key_id = key.key_id.encode()
        self._key: Final = key
        self._payload_head: Final = b'{"expires_at":"%b","intent":' % expires_at
        self._payload_middle: Final = b',"issued_at":"%b","key_id":"%b","policy":' % (issued_at, key_id)
        self._envelope_head: Final = b'{"version":1,"key_id":"%b","issued_at":"%b","expires_at":"%b","payload":"' % (
            key_id,
            issued_at,
            expires_at,
        )

    def envelope(self, facts: SignedFacts) -> bytes:
        """The `resolution_proof` member as JSON bytes."""
        payload = b"".join(
            (
                self._payload_head, facts.intent,
                self._payload_middle, facts.policy,
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


def answer_body(facts: SignedFacts, envelope: bytes | None) -> bytes:
    """The resolution response; without an envelope where none was asked for."""
    proof = b"" if envelope is None else b',"resolution_proof":' + envelope
    return b"".join(
        (
            b'{"xr_id":"', facts.xr_id.encode(),
            b'","signature_status":"verified","intent":', facts.intent,
            b',"policy":', facts.policy, proof, b"}",
        )
    )  # fmt: skip

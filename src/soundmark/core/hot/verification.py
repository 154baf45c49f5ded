"""From a stored broadcast to facts that may be answered, and from facts to an envelope."""

import hashlib
from datetime import timedelta
from typing import Final

from soundmark.core.custody import Custody
from soundmark.core.domain.code import digest_of
from soundmark.core.domain.signed_facts import SignedFacts, read_facts
from soundmark.core.hot.lookup import Broadcast
from soundmark.core.integrity import report_broken
from soundmark.kit import base64url
from soundmark.kit.signing import SigningKey

PROOF_LIFE: Final = timedelta(minutes=2)  # API v1, "Resolution proof envelope".
_REMEMBERED_MAX: Final = 131_072  # 32-byte digests: about 22 MB when full.


class Verifier:
    """Verifies stored broadcasts, and remembers which bytes it has verified.

    What is remembered is the digest of token, public key, signature and payload together: an immutable fact. Whether
    the Code was revoked or has expired is judged for each question, elsewhere.
    """

    def __init__(self, custody: Custody) -> None:
        self._custody: Final = custody
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    async def facts(self, broadcast: Broadcast) -> SignedFacts | None:
        """What was signed; None, and an alarm, when the stored bytes do not verify or belong to another token."""
        facts = read_facts(broadcast.payload)
        if facts is None:
            report_broken("resolution", xr_id=None)
            return None
        keyring = self._custody.keyring
        if facts.key_id not in keyring.keys:
            keyring = await self._custody.keyring_with(facts.key_id)
        key = keyring.keys.get(facts.key_id)
        if key is not None:
            known = _fingerprint(broadcast, key.public_key)
            if known in self._young or known in self._old:
                return facts
            is_bound = facts.token_digest == digest_of(broadcast.token)
            if is_bound and keyring.verifies(facts.key_id, broadcast.payload, broadcast.signature):
                self._remember(known)
                return facts
        report_broken("resolution", xr_id=facts.xr_id)
        return None

    def _remember(self, known: bytes) -> None:
        if len(self._young) >= _REMEMBERED_MAX // 2:
            self._old, self._young = self._young, set()
        self._young.add(known)


def _fingerprint(broadcast: Broadcast, public_key: bytes) -> bytes:
    # Everything but the last part has a fixed length, so no two facts share a concatenation.
    parts = (broadcast.token.encode(), public_key, broadcast.signature, broadcast.payload)
    return hashlib.sha256(b"".join(parts)).digest()


def seal_envelope(facts: SignedFacts, key: SigningKey, *, issued_at: str, expires_at: str) -> bytes:
    """The `resolution_proof` member as JSON bytes.

    The payload is put together from parts that are canonical already, in the order that RFC 8785 sorts the names, so
    it is the canonical form of the whole (checked against the library by tests and by docs/vectors).

    Source: contract, section 4, Resolution proof.
    """
    payload = b"".join(
        (
            b'{"expires_at":"', expires_at.encode(),
            b'","intent":', facts.intent,
            b',"issued_at":"', issued_at.encode(),
            b'","key_id":"', key.key_id.encode(),
            b'","policy":', facts.policy,
            b',"token_digest":"', facts.token_digest.encode(),
            b'","version":1,"xr_id":"', facts.xr_id.encode(), b'"}',
        )
    )  # fmt: skip
    return b"".join(
        (
            b'{"version":1,"key_id":"', key.key_id.encode(),
            b'","issued_at":"', issued_at.encode(),
            b'","expires_at":"', expires_at.encode(),
            b'","payload":"', base64url.encode(payload).encode(),
            b'","signature":"', base64url.encode(key.sign(payload)).encode(), b'"}',
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

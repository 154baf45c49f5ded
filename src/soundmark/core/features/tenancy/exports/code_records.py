"""Codes as records of an archive: verified, then composed from the signed bytes themselves."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from soundmark.core.domain.codes.code import Code, CodeStatus, frame_of
from soundmark.core.domain.codes.signed_facts import SignedFacts, agree, read_facts
from soundmark.core.integrity import report_broken
from soundmark.kit.crypto.signing import SigningKey, verifies
from soundmark.kit.http.responses.problems import InternalError
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp


class _CodeRecord(msgspec.Struct, frozen=True, gc=False):
    """The members of `CodeDetail`, in its order. The signed parts are the stored bytes, which are not parsed again."""

    xr_id: str
    organization_id: str
    project_id: str
    campaign_id: str | None
    issuer: str
    issued_at: str
    expires_at: str
    broadcast_token: str
    broadcast_frame: str
    status: CodeStatus
    revoked_at: str | None
    audience_enabled: bool
    audience_integration_id: str | None
    intent: msgspec.Raw
    signed_code: msgspec.Raw


_ENCODER: Final = msgspec.json.Encoder()


class CodeRenderer:
    """Renders Codes with their status at `now`, and remembers which keys signed them.

    `public_keys` are those that signed anything until then, by id. `signing_key` is the one that signs now.
    """

    def __init__(self, public_keys: Mapping[str, bytes], signing_key: SigningKey, now: datetime) -> None:
        self._public_keys: Final = public_keys
        self._signing_key: Final = signing_key
        self._now: Final = now
        self.used_key_ids: Final[set[str]] = set()

    def render(self, codes: Iterable[Code]) -> list[bytes]:
        """Return each Code as JSON.

        Raises: InternalError if one does not verify, which raises an alarm.
        """
        return [self._render(code) for code in codes]

    def _render(self, code: Code) -> bytes:
        facts = self._verify(code)
        self.used_key_ids.add(facts.key_id)
        signature = base64url.encode_to_bytes(code.signature)
        record = _CodeRecord(
            xr_id=code.xr_id,
            organization_id=code.organization_id,
            project_id=code.project_id,
            campaign_id=code.campaign_id,
            issuer=code.issuer,
            issued_at=facts.issued_at,
            expires_at=facts.expires_at,
            broadcast_token=code.broadcast_token,
            broadcast_frame=frame_of(code.broadcast_token),
            status=code.status(self._now),
            revoked_at=None if code.revoked_at is None else format_timestamp(code.revoked_at),
            audience_enabled=code.audience_integration_id is not None,
            audience_integration_id=code.audience_integration_id,
            intent=facts.intent,
            signed_code=msgspec.Raw(b'%b,"signature":"%b"}' % (code.payload[:-1], signature)),
        )
        return _ENCODER.encode(record)

    def _verify(self, code: Code) -> SignedFacts:
        facts = read_facts(code.payload)
        if facts is not None and agree(facts, code) and self._is_genuine(facts.key_id, code):
            return facts
        report_broken("tenant", xr_id=code.xr_id)
        raise broken_code_problem()

    def _is_genuine(self, key_id: str, code: Code) -> bool:
        # Ed25519 is deterministic (RFC 8032, section 5.1.6), and signing again takes a third of the time that verifying
        # takes. Most Codes of an archive were signed by the present key.
        if key_id == self._signing_key.key_id and self._signing_key.sign(code.payload) == code.signature:
            return True
        public_key = self._public_keys.get(key_id)
        return public_key is not None and verifies(public_key, code.payload, code.signature)


def broken_code_problem() -> InternalError:
    """Return the problem of an archive that would not be complete."""
    return InternalError(
        "A stored Code fails verification, so the archive would be incomplete. Contact the operator and quote the "
        "request id."
    )

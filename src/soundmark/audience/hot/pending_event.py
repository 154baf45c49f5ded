"""An event whose outcome is not known yet."""

import hashlib
import hmac
from datetime import date
from typing import Final, TypeAlias

from soundmark.audience.hot.event import Event, UnreadEvent, body_digest, event_digest, read_event
from soundmark.audience.hot.integration_state import (
    SKEW,
    IntegrationState,
    refusal_of_proof,
    refusal_of_sender,
    signed_bytes,
)
from soundmark.kit.http.responses.problems import Problem, ValidationFailed
from soundmark.wire.private.problems import OrganizationSuspended

RECORDED: Final = "recorded"
DUPLICATE: Final = "duplicate"
Outcome: TypeAlias = str | Problem

_SECONDS_MASK: Final = 0xFFFF_FFFF
_PROOF_DIGEST_CHARS: Final = 24  # 96 bits, after the 32 bits of the second in which the proof was issued.
_TOKEN_BYTES: Final = 8


class PendingEvent:
    """An event whose outcome is not known yet, and whose HMAC is `signature` according to its sender.

    `checked_by` is the integration that vouches for it or refuses it.
    """

    __slots__ = (
        "_event", "_signed", "body_key", "checked_by", "day", "event_key", "outcome", "proof_key", "refusal",
        "signature", "token", "unread",
    )  # fmt: skip

    def __init__(self, unread: UnreadEvent, signature: bytes | None) -> None:
        self.unread: Final = unread
        self.signature: Final = signature
        self._event: Event | ValidationFailed | None = None
        self._signed = b""
        self.outcome: Outcome | None = None
        self.refusal: Problem | None = None
        self.checked_by: IntegrationState | None = None
        # Stored of it, as hexadecimal digits and a number.
        self.event_key = self.body_key = self.proof_key = ""
        self.token = 0
        self.day = date.min

    @property
    def event(self) -> Event:
        """The event, unless the delivery was refused."""
        assert isinstance(self._event, Event), "a delivery that cannot be read is refused"
        return self._event

    @property
    def proof_day(self) -> date:
        """The last day for an event of which the proof can vouch; until that day is deleted, it must be known as spent.

        The proof is one that holds.
        """
        return (self.event.proof.expires_at + SKEW).date()

    def check(self, source: IntegrationState | None, token_key: bytes) -> None:
        """Note whether `source` vouches for the event and, if it does, the values to store."""
        self.checked_by = source
        self.refusal = self._refusal(source)
        if source is not None and self.refusal is None and not self.event_key:
            self._digest(token_key)

    def _refusal(self, source: IntegrationState | None) -> Problem | None:
        """Judge the signature, the suspension, the shape and the proof, and stop at the first that fails.

        Source: contract, section 6.
        """
        refusal = refusal_of_sender(source, self.unread.body, self.signature)
        if refusal is not None or source is None:
            return refusal
        if source.row.is_suspended:
            return OrganizationSuspended()
        if self._event is None:
            self._event = read_event(self.unread)
        if isinstance(self._event, ValidationFailed):
            return self._event
        self._signed = signed_bytes(source, self._event.proof)
        return refusal_of_proof(source, self._event, self._signed)

    def _digest(self, token_key: bytes) -> None:
        event, proof = self.event, self.event.proof
        self.event_key = event_digest(event.event_id)
        self.body_key = body_digest(self.unread.body)
        # The digest covers what was signed and not the signature, of which there may be several. The key begins with
        # the time, so that the index of spent proofs grows at its end (docs/adr/0010).
        signed = hashlib.sha256(self._signed).hexdigest()
        second = int(proof.issued_at.timestamp()) & _SECONDS_MASK
        self.proof_key = f"{second:08x}{signed[:_PROOF_DIGEST_CHARS]}"
        token = hmac.digest(token_key, (event.integration_id + event.token).encode(), "sha256")
        self.token = int.from_bytes(token[:_TOKEN_BYTES], "big", signed=True)
        self.day = event.occurred_at.date()

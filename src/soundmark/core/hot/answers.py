"""From stored broadcasts to answers: verified, judged, and signed anew."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from soundmark.core.custody import Custody
from soundmark.core.domain.code import digest_of
from soundmark.core.domain.signed_facts import SignedFacts, integration_of, read_facts
from soundmark.core.hot.envelope import Seal, answer_body
from soundmark.core.hot.remembered import Remembered
from soundmark.core.integrity import report_broken
from soundmark.core.problems import CodeExpired, CodeUnavailable
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.ids import mint
from soundmark.kit.problems import Problem
from soundmark.kit.signing import SIGNATURE_BYTES, Keyring


class Question(NamedTuple):
    """What a receiver asks."""

    token: str
    wants_proof: bool


class Broadcast(NamedTuple):
    """A token that is not revoked, and what was signed for it."""

    token: str
    payload: bytes
    signature: bytes


Outcome: TypeAlias = bytes | Problem
# What everybody is answered who asked the same, or each of them by himself.
Outcomes: TypeAlias = Outcome | list[Outcome]


class Answers:
    """Answers questions from what is stored; an unverified intent is never answered.

    Those who ask the same in one call get one envelope: they asked within one query's time, which is far less than
    the second for which the contract lets an envelope be shared. None is kept for later. Of a Code that is measured
    each has a proof of his own, which counts once.
    """

    def __init__(self, custody: Custody, clock: Clock, entropy: Entropy) -> None:
        self._entropy: Final = entropy
        self._custody: Final = custody
        self._clock: Final = clock
        self._verifier: Final = Verifier(entropy)

    async def of(
        self, questions: Mapping[Question, int], found: Mapping[str, Broadcast]
    ) -> Mapping[Question, Outcomes]:
        """What is answered to each question, which so many ask, all judged at one moment.

        `found` is what the database holds, by token.

        Raises: DatabaseUnavailable when a key is not known yet and cannot be read.
        """
        keyring = self._custody.keyring
        verified: dict[str, SignedFacts] = {}
        for token, broadcast in found.items():
            facts = read_facts(broadcast.payload)
            if facts is not None and facts.key_id not in keyring.keys:
                keyring = await self._custody.keyring_with(facts.key_id)
            if facts is None:
                report_broken("resolution", xr_id=None)
            elif self._verifier.holds(broadcast, facts, keyring):
                verified[token] = facts
        seal = Seal(keyring.active, self._clock.now())
        return {
            question: self._outcomes(question, count, verified.get(question.token), seal)
            for question, count in questions.items()
        }

    def _outcomes(self, question: Question, count: int, facts: SignedFacts | None, seal: Seal) -> Outcomes:
        if facts is None:
            return CodeUnavailable()
        # Timestamps of this shape sort like the moments they name.
        if seal.issued_at >= facts.expires_at:
            return CodeExpired()
        integration_id = integration_of(facts)
        if integration_id is None:
            return answer_body(facts, seal.envelope(facts) if question.wants_proof else None)
        return [self._measured(question, facts, integration_id, seal) for _ in range(count)]

    def _measured(self, question: Question, facts: SignedFacts, integration_id: str, seal: Seal) -> Outcome:
        proof = seal.measurement(facts, integration_id, mint(self._entropy, "prf_"))
        return answer_body(facts, seal.envelope(facts, proof) if question.wants_proof else None, proof)


class Verifier:
    """Verifies stored broadcasts, and remembers which bytes it has verified.

    What is remembered are token, public key, signature and payload together: an immutable fact. Whether the Code was
    revoked or has expired is judged for each question, elsewhere.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._remembered: Final = Remembered(entropy)

    def holds(self, broadcast: Broadcast, facts: SignedFacts, keyring: Keyring) -> bool:
        """Whether `facts`, read from the stored payload, were signed for this token; an alarm when not."""
        key = keyring.keys.get(facts.key_id)
        # A signature of another length would let two broadcasts share one concatenation.
        if key is not None and len(broadcast.signature) == SIGNATURE_BYTES:
            parts = (broadcast.token.encode(), key.public_key, broadcast.signature, broadcast.payload)
            place, tag = self._remembered.tag(*parts)
            if self._remembered.holds(place, tag):
                return True
            is_bound = facts.token_digest == digest_of(broadcast.token)
            if is_bound and keyring.verifies(facts.key_id, broadcast.payload, broadcast.signature):
                self._remembered.add(place, tag)
                return True
        report_broken("resolution", xr_id=facts.xr_id)
        return False

"""From stored broadcasts to answers, which are verified, judged and signed."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from soundmark.core.domain.codes.code import digest_of
from soundmark.core.domain.codes.signed_facts import SignedFacts, integration_of, read_facts
from soundmark.core.hot.envelope import EnvelopeSigner, answer_body
from soundmark.core.hot.verification_cache import VerificationCache
from soundmark.core.integrity import report_broken
from soundmark.core.live.keyring import LiveKeyring
from soundmark.core.problems import CodeExpired, CodeUnavailable
from soundmark.core.store.codes.broadcasts import Broadcast
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.signing import SIGNATURE_BYTES, Keyring
from soundmark.kit.http.problems import Problem
from soundmark.kit.text.ids import mint


class Question(NamedTuple):
    """A question of a receiver."""

    token: str
    wants_proof: bool


Outcome: TypeAlias = bytes | Problem


class Answers:
    """Answers questions from what is stored; an unverified intent is never answered.

    Callers who ask the same question in one call share one envelope: they asked within the time of one query, far less
    than the second for which the contract lets an envelope be shared. No envelope is kept for later. For a measured
    Code every caller gets a proof of their own, which counts once.
    """

    def __init__(self, live_keyring: LiveKeyring, clock: Clock, entropy: Entropy) -> None:
        self._entropy: Final = entropy
        self._custody: Final = live_keyring
        self._clock: Final = clock
        self._verifier: Final = Verifier(entropy)

    async def of(self, questions: Sequence[Question], found: Mapping[str, Broadcast]) -> list[Outcome]:
        """Return the answer to each question in this order, all judged at one moment.

        `found` is what the database holds, by token.

        Raises: DatabaseUnavailable if a key is not known yet and cannot be read.
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
        seal = EnvelopeSigner(keyring.active, self._clock.now())
        shared: dict[Question, Outcome] = {}
        return [self._answer(question, verified.get(question.token), seal, shared) for question in questions]

    def _answer(
        self, question: Question, facts: SignedFacts | None, seal: EnvelopeSigner, shared: dict[Question, Outcome]
    ) -> Outcome:
        """Return the answer that `shared` has for the question, or make it."""
        answer = shared.get(question)
        if answer is not None:
            return answer
        # Timestamps of this shape sort like the moments they name.
        if facts is None:
            answer = CodeUnavailable()
        elif seal.issued_at >= facts.expires_at:
            answer = CodeExpired()
        elif (integration_id := integration_of(facts)) is not None:
            return self._measured(question, facts, integration_id, seal)
        else:
            answer = answer_body(facts, seal.envelope(facts) if question.wants_proof else None)
        shared[question] = answer
        return answer

    def _measured(self, question: Question, facts: SignedFacts, integration_id: str, seal: EnvelopeSigner) -> Outcome:
        proof = seal.measurement(facts, integration_id, mint(self._entropy, "prf_"))
        return answer_body(facts, seal.envelope(facts, proof) if question.wants_proof else None, proof)


class Verifier:
    """Verifies stored broadcasts, and remembers the bytes that it has verified.

    It remembers token, public key, signature and payload together, which are an immutable fact. Whether the Code was
    revoked or has expired is judged elsewhere, for each question.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._remembered: Final = VerificationCache(entropy)

    def holds(self, broadcast: Broadcast, facts: SignedFacts, keyring: Keyring) -> bool:
        """Return whether `facts`, read from the stored payload, were signed for this token; raise an alarm if not."""
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

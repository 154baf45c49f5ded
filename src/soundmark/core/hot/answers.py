"""From stored broadcasts to answers: verified, checked for expiry and signed."""

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
from soundmark.kit.http.responses.problems import Problem
from soundmark.kit.text.ids import mint


class Question(NamedTuple):
    """A receiver's question: a token, and whether the answer needs an envelope."""

    token: str
    wants_proof: bool


Outcome: TypeAlias = bytes | Problem


class Answers:
    """Answers questions from stored broadcasts, and never with an unverified intent.

    Identical questions in one call share one envelope. They arrived within the time of one query, far less than the
    second for which the contract allows an envelope to be shared. No envelope is kept for later. For a measured Code
    every caller gets a proof of their own, which counts once.
    """

    def __init__(self, live_keyring: LiveKeyring, clock: Clock, entropy: Entropy) -> None:
        self._entropy: Final = entropy
        self._live_keyring: Final = live_keyring
        self._clock: Final = clock
        self._verifier: Final = Verifier(entropy)

    async def of(self, questions: Sequence[Question], found: Mapping[str, Broadcast]) -> list[Outcome]:
        """Return the answers in the order of the questions, all as of the same time.

        `found` holds the stored broadcasts by token.

        Raises: DatabaseUnavailable if a key is unknown and cannot be read.
        """
        keyring = self._live_keyring.keyring
        verified: dict[str, SignedFacts] = {}
        for token, broadcast in found.items():
            facts = read_facts(broadcast.payload)
            if facts is not None and facts.key_id not in keyring.keys:
                keyring = await self._live_keyring.keyring_with(facts.key_id)
            if facts is None:
                report_broken("resolution", xr_id=None)
            elif self._verifier.holds(broadcast, facts, keyring):
                verified[token] = facts
        signer = EnvelopeSigner(keyring.active, self._clock.now())
        shared: dict[Question, Outcome] = {}
        return [self._answer(question, verified.get(question.token), signer, shared) for question in questions]

    def _answer(
        self, question: Question, facts: SignedFacts | None, signer: EnvelopeSigner, shared: dict[Question, Outcome]
    ) -> Outcome:
        """Return the answer from `shared`, or make it and, if it may be shared, add it there."""
        answer = shared.get(question)
        if answer is not None:
            return answer
        # Timestamps of this format sort chronologically.
        if facts is None:
            answer = CodeUnavailable()
        elif signer.issued_at >= facts.expires_at:
            answer = CodeExpired()
        elif (integration_id := integration_of(facts)) is not None:
            return self._answer_measured(question, facts, integration_id, signer)
        else:
            answer = answer_body(facts, signer.envelope(facts) if question.wants_proof else None)
        shared[question] = answer
        return answer

    def _answer_measured(
        self, question: Question, facts: SignedFacts, integration_id: str, signer: EnvelopeSigner
    ) -> Outcome:
        proof = signer.measurement(facts, integration_id, mint(self._entropy, "prf_"))
        return answer_body(facts, signer.envelope(facts, proof) if question.wants_proof else None, proof)


class Verifier:
    """Verifies stored broadcasts, and caches which bytes it has verified.

    An entry covers token, public key, signature and payload together, so it can never become wrong. Revocation and
    expiry are checked elsewhere, for each question.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._cache: Final = VerificationCache(entropy)

    def holds(self, broadcast: Broadcast, facts: SignedFacts, keyring: Keyring) -> bool:
        """Return whether `facts`, read from the stored payload, were signed for this token; report it if not."""
        key = keyring.keys.get(facts.key_id)
        # With signatures of other lengths, two different broadcasts could have the same concatenation.
        if key is not None and len(broadcast.signature) == SIGNATURE_BYTES:
            parts = (broadcast.token.encode(), key.public_key, broadcast.signature, broadcast.payload)
            place, tag = self._cache.tag(*parts)
            if self._cache.holds(place, tag):
                return True
            is_bound = facts.token_digest == digest_of(broadcast.token)
            if is_bound and keyring.verifies(facts.key_id, broadcast.payload, broadcast.signature):
                self._cache.add(place, tag)
                return True
        report_broken("resolution", xr_id=facts.xr_id)
        return False

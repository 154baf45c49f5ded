"""Require that an answer is in the transparency log, before anybody sees it."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from soundmark_sdk.clock import Clock
from soundmark_sdk.transparency.commitments import Commitment
from soundmark_sdk.transparency.policy import LogPolicy
from soundmark_sdk.transparency.proof import NotYetProven, verify_log_proof

# A fresh Code is in the log five seconds after its issuance was answered.
WAIT_MAX_S: Final = 10.0
_PAUSE_S: Final = 1.0
_PROVEN_MAX: Final = 1000
_ANSWER: Final[Commitment] = "code.issued/answer"

# Returns the proof of a digest; None if the log does not have it.
FetchProof: TypeAlias = Callable[[str], Awaitable[bytes | None]]


class LogCheck:
    """The answers that were proven. A log only grows, so a proof is asked for once."""

    def __init__(self, policy: LogPolicy, clock: Clock) -> None:
        self._policy: Final = policy
        self._clock: Final = clock
        self._proven: Final[dict[str, None]] = {}

    async def require(self, digest: str, fetch: FetchProof) -> None:
        """Accept only a digest that the log proves, or will within `WAIT_MAX_S`.

        A log may publish a checkpoint before its witnesses have cosigned it, so too few of them are awaited, too.

        Raises: Unverifiable; what `fetch` raises.
        Source: wire contract, section 11.
        """
        gives_up_at_s = self._clock.monotonic_s() + WAIT_MAX_S
        while digest not in self._proven:
            try:
                await self._prove(digest, fetch)
            except NotYetProven:
                if self._clock.monotonic_s() >= gives_up_at_s:
                    raise
                await self._clock.sleep(_PAUSE_S)

    async def _prove(self, digest: str, fetch: FetchProof) -> None:
        """Raises: NotYetProven; Unverifiable; what `fetch` raises."""
        proof = await fetch(digest)
        if proof is None:
            raise NotYetProven("The transparency log does not have the answer.")
        verify_log_proof(proof, self._policy, _ANSWER, digest)
        self._proven[digest] = None
        if len(self._proven) > _PROVEN_MAX:
            del self._proven[next(iter(self._proven))]

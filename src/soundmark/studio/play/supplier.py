"""Issue the Codes of a rotation ahead of time, and revoke those that will not sound."""

import hashlib
from collections.abc import Callable
from typing import Final

from soundmark_sdk.client import ClientFailure

from soundmark.studio.play.journal import Journal
from soundmark.studio.play.playout import Playout
from soundmark.studio.play.records import WantedCode
from soundmark.studio.play.service import PlayoutService, describe_failure, failure_code
from soundmark.studio.play.steady_clock import SteadyClock

_PAUSE_MIN_S: Final = 2.0
_PAUSE_MAX_S: Final = 60.0
# A quota may be raised before the month ends, so it is tried again long before.
_QUOTA_PAUSE_S: Final = 900.0
_QUOTA: Final = "quota_exceeded"
_DIGEST_CHARS: Final = 16


class _Pace:
    """When to try again: after a failure twice as late as after the one before, and not before the service said."""

    def __init__(self, clock: SteadyClock) -> None:
        self._clock: Final = clock
        self.reset()

    @property
    def is_due(self) -> bool:
        return self._clock.monotonic_s() >= self._due_s

    def reset(self) -> None:
        self._due_s = self._clock.monotonic_s()
        self._pause_s = _PAUSE_MIN_S

    def pause(self, failure: ClientFailure) -> None:
        pause_s = max(self._pause_s, failure.retry_after_s or 0.0)
        if failure_code(failure) == _QUOTA:
            pause_s = min(pause_s, _QUOTA_PAUSE_S)
        self._due_s = self._clock.monotonic_s() + pause_s
        self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)


class Supplier:
    """Keeps a playout supplied. `agent_id` makes the keys of its issuances its own.

    A key follows from the agent, the source and the slot, and its request too. An agent that dies before it saved an
    answer gets the same Code when it asks again; after it gave Codes up, it gets others.
    """

    def __init__(
        self,
        playout: Playout,
        service: PlayoutService,
        clock: SteadyClock,
        journal: Journal,
        *,
        agent_id: str,
        look_at_campaigns: Callable[[], None],
    ) -> None:
        self._playout: Final = playout
        self._service: Final = service
        self._clock: Final = clock
        self._journal: Final = journal
        self._agent_id: Final = agent_id
        self._look_at_campaigns: Final = look_at_campaigns
        self._issuing: Final = _Pace(clock)
        self._revoking: Final = _Pace(clock)

    def wake(self) -> None:
        """Try again at once: the service answers again."""
        self._issuing.reset()
        self._revoking.reset()

    async def run_round(self) -> None:
        """Revoke what is not wanted and issue what is, unless a pause is due after a failure."""
        if self._revoking.is_due:
            try:
                await self.revoke_discarded()
                self._revoking.reset()
            except ClientFailure as failure:
                self._revoking.pause(failure)
                self._note(failure, "revoked")
        if self._issuing.is_due:
            try:
                await self._issue()
                self._issuing.reset()
                self._journal.hush("issued", "Codes are issued again")
            except ClientFailure as failure:
                self._issuing.pause(failure)
                self._note(failure, "issued")
                self._look_at_campaigns()

    async def _issue(self) -> None:
        for wanted in list(self._playout.list_wanted(self._clock.now())):
            code = await self._service.issue(wanted, self._make_key(wanted))
            self._playout.hold(wanted, code)
            self._journal.issued.inc()

    async def revoke_discarded(self) -> None:
        """Revoke the Codes that will not sound.

        Raises: ClientFailure; they stay discarded.
        """
        codes = list(self._playout.discarded.values())
        if codes and self._playout.refusal is None:
            await self._service.revoke(codes)
            self._playout.settle_discarded(code.xr_id for code in codes)
            self._journal.revoked.inc(len(codes))
            self._journal.hush("revoked", "Codes are revoked again")

    def _make_key(self, wanted: WantedCode) -> str:
        request = f"{wanted.source.xr_id} {wanted.slot} {wanted.expires_at.isoformat()} {self._playout.generation}"
        return f"play.{self._agent_id}.{hashlib.sha256(request.encode()).hexdigest()[:_DIGEST_CHARS]}"

    def _note(self, failure: ClientFailure, act: str) -> None:
        self._journal.failures.labels(failure_code(failure)).inc()
        self._journal.say(act, f"no Code can be {act}: {describe_failure(failure)}")

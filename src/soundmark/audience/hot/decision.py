"""The outcomes of a batch of events, decided in the order of arrival and without the database."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TypeAlias

from soundmark.audience.domain.integration import QuotaKey
from soundmark.audience.hot.integration_state import IntegrationState
from soundmark.audience.hot.pending_event import DUPLICATE, RECORDED, Outcome, PendingEvent
from soundmark.kit.text.months import month_of
from soundmark.wire.private.problems import EventConflict, EventQuotaExceeded, ProofReplayed

Pair: TypeAlias = tuple[int, str, date, int]

_EVENT_REPLAY, _CODE_TOKEN_DUPLICATE, _PROOF_REPLAY = range(3)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The stored rows that concern the events of a batch, by the number of the integration."""

    bodies: dict[tuple[int, str], str]
    proofs: set[tuple[int, str]]
    pairs: set[Pair]
    counts: dict[QuotaKey, int]


@dataclass(slots=True)
class BatchDecision:
    """The outcomes of a batch, and what must be written for them."""

    now: datetime
    outcomes: list[tuple[PendingEvent, Outcome]] = field(default_factory=list)
    recorded: list[tuple[int, PendingEvent]] = field(default_factory=list)
    spending: list[tuple[int, PendingEvent]] = field(default_factory=list)
    added: defaultdict[QuotaKey, int] = field(default_factory=lambda: defaultdict(int))
    signals: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))

    def decide(self, delivery: PendingEvent, source: IntegrationState, found: StoredRows) -> None:
        """Judge one admitted event after all that came before it, and add it to `found`.

        The order of judgement is event id, proof, pair, quota.

        Source: contract, section 6.
        """
        self.outcomes.append((delivery, self._outcome(delivery, source, found)))

    def _outcome(self, delivery: PendingEvent, source: IntegrationState, found: StoredRows) -> Outcome:
        number = source.row.number
        identity, proof, pair = (number, delivery.event_key), (number, delivery.proof_key), pair_of(number, delivery)
        body = found.bodies.get(identity)
        if body is not None:
            if body != delivery.body_key:
                return EventConflict()
            self.signals[number][_EVENT_REPLAY] += 1
            return DUPLICATE
        if proof in found.proofs:
            self.signals[number][_PROOF_REPLAY] += 1
            return ProofReplayed()
        is_duplicate = pair in found.pairs
        quota = (source.row.organization_id, source.row.mode)
        if not is_duplicate and found.counts[quota] >= source.monthly_quota:
            return EventQuotaExceeded(headers={"retry-after": str(month_of(self.now).seconds_left(self.now))})
        found.bodies[identity] = delivery.body_key
        found.proofs.add(proof)
        self.spending.append((number, delivery))
        if is_duplicate:
            self.signals[number][_CODE_TOKEN_DUPLICATE] += 1
            return DUPLICATE
        found.pairs.add(pair)
        found.counts[quota] += 1
        self.added[quota] += 1
        self.recorded.append((number, delivery))
        return RECORDED


def pair_of(number: int, delivery: PendingEvent) -> Pair:
    """Return the pair of Code and token, which an integration may record once a day."""
    return number, delivery.event.xr_id, delivery.day, delivery.token

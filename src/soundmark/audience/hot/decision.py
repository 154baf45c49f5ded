"""What becomes of the events of a group, in the order in which they arrived; nothing here knows a database."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final, TypeAlias

from soundmark.audience.hot.delivery import DUPLICATE, RECORDED, Delivery, Outcome
from soundmark.audience.hot.source import Source
from soundmark.audience.problems import EventConflict, EventQuotaExceeded, ProofReplayed

Month: TypeAlias = tuple[str, str]  # An organisation and a mode: who shares a quota.
Pair: TypeAlias = tuple[int, date, int, str]

_EVENT_REPLAY, _CODE_TOKEN_DUPLICATE, _PROOF_REPLAY = range(3)
_DAYS_TO_NEXT_MONTH: Final = timedelta(days=32)


@dataclass(frozen=True, slots=True)
class Found:
    """What is stored already of the events of a group, under the number of each integration."""

    bodies: dict[tuple[int, str], str]
    proofs: set[tuple[int, str]]
    pairs: set[Pair]
    counts: dict[Month, int]


@dataclass(slots=True)
class Decided:
    """What a group comes to: outcomes, and what has to be written for them."""

    now: datetime
    outcomes: list[tuple[Delivery, Outcome]] = field(default_factory=list)
    recorded: list[tuple[int, Delivery]] = field(default_factory=list)
    spending: list[tuple[int, Delivery]] = field(default_factory=list)
    added: defaultdict[Month, int] = field(default_factory=lambda: defaultdict(int))
    signals: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))

    def decide(self, delivery: Delivery, source: Source, found: Found) -> None:
        """Judge one admitted event after all that came before it; `found` learns what it adds.

        Event id, proof, pair, quota: in this order.

        Source: contract, section 6.
        """
        self.outcomes.append((delivery, self._outcome(delivery, source, found)))

    def _outcome(self, delivery: Delivery, source: Source, found: Found) -> Outcome:
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
        month = (source.row.organization_id, source.row.mode)
        if not is_duplicate and found.counts[month] >= source.monthly_quota:
            return EventQuotaExceeded(headers={"retry-after": str(_until_next_month_s(self.now))})
        found.bodies[identity] = delivery.body_key
        found.proofs.add(proof)
        self.spending.append((number, delivery))
        if is_duplicate:
            self.signals[number][_CODE_TOKEN_DUPLICATE] += 1
            return DUPLICATE
        found.pairs.add(pair)
        found.counts[month] += 1
        self.added[month] += 1
        self.recorded.append((number, delivery))
        return RECORDED


def pair_of(number: int, delivery: Delivery) -> Pair:
    """What may be recorded once: a Code and a token on a day, within an integration."""
    return number, delivery.day, delivery.token, delivery.event.xr_id


def _until_next_month_s(now: datetime) -> int:
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + _DAYS_TO_NEXT_MONTH).replace(day=1)
    return int((following - now).total_seconds()) + 1

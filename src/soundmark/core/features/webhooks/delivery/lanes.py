"""Which claimed delivery is attempted next: how many at a time for an endpoint, for an organisation, and in all."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from soundmark.core.domain.webhooks.attempt import ClaimedDelivery
from soundmark.core.store.webhooks.dispatch import WaitingEndpoint

RUNNING_MAX: Final = 128
# An organisation has up to twenty endpoints, and all of them may hang.
OF_ORGANIZATION_MAX: Final = 48
OF_ENDPOINT_MAX: Final = 8
# Endpoints whose last attempt failed: one attempt of each at a time, and some in all, so that they hold up no other.
OF_FAILING_ENDPOINT_MAX: Final = 1
FAILING_MAX: Final = 32
# Claimed ahead for an endpoint that answers at once: four seconds of work, well below the lease.
_CLAIMED_AHEAD_MAX: Final = 128
_AT_ONCE_S: Final = 0.25
_CLAIMED_MAX: Final = 512
_LANES_MAX: Final = 4096

_Key = tuple[str, str]


@dataclass(slots=True)
class _Lane:
    """The claimed deliveries of one endpoint."""

    organization_id: str
    is_failing: bool = False
    is_fast: bool = False
    running_count: int = 0
    queue: deque[ClaimedDelivery] = field(default_factory=deque)

    @property
    def running_max(self) -> int:
        return OF_FAILING_ENDPOINT_MAX if self.is_failing else OF_ENDPOINT_MAX

    @property
    def claimed_count(self) -> int:
        return self.running_count + len(self.queue)


class Lanes:
    """One lane for each endpoint with claimed deliveries, and for some that had any. Endpoints take turns."""

    def __init__(self) -> None:
        self._lanes: Final[dict[_Key, _Lane]] = {}
        self._queued: Final[dict[_Key, _Lane]] = {}  # Those with a queue, in the order of their turns.
        self._running_of: Counter[str] = Counter()  # By organisation.
        self._running_count = 0
        self._failing_count = 0  # Of those running.
        self._claimed_count = 0

    def count_room(self, endpoint: WaitingEndpoint) -> int:
        """Return how many deliveries of a waiting endpoint may be claimed now."""
        key = (endpoint.organization_id, endpoint.endpoint_id)
        lane = self._lanes.setdefault(key, _Lane(endpoint.organization_id))
        self._set_failing(lane, is_failing=endpoint.is_failing)
        claimed_max = _CLAIMED_AHEAD_MAX if lane.is_fast and not lane.is_failing else lane.running_max
        room = min(claimed_max - lane.claimed_count, _CLAIMED_MAX - self._claimed_count)
        return max(room, 0)

    def add(self, claimed: Sequence[ClaimedDelivery]) -> None:
        """Queue deliveries that were claimed."""
        for delivery in claimed:
            key = _key(delivery)
            self._lanes[key].queue.append(delivery)
            self._queued.setdefault(key, self._lanes[key])
        self._claimed_count += len(claimed)

    def start_next(self) -> ClaimedDelivery | None:
        """Return the delivery to attempt now, which is running from here on; None if none may begin."""
        if self._running_count >= RUNNING_MAX:
            return None
        for key, lane in self._queued.items():
            if self._may_start(lane):
                delivery = lane.queue.popleft()
                self._count_running(lane, 1)
                del self._queued[key]
                if lane.queue:
                    self._queued[key] = lane  # Behind all others.
                return delivery
        return None

    def end(self, delivery: ClaimedDelivery, *, is_success: bool, duration_s: float) -> None:
        """Note that an attempt has ended."""
        lane = self._lanes[_key(delivery)]
        self._count_running(lane, -1)
        self._claimed_count -= 1
        lane.is_fast = is_success and duration_s < _AT_ONCE_S
        self._set_failing(lane, is_failing=not is_success)

    def take_queued(self) -> list[ClaimedDelivery]:
        """Remove and return what was claimed and did not begin."""
        queued = [delivery for lane in self._queued.values() for delivery in lane.queue]
        for lane in self._queued.values():
            lane.queue.clear()
        self._queued.clear()
        self._claimed_count -= len(queued)
        return queued

    def forget_idle(self) -> None:
        """Forget endpoints without claimed deliveries, if many are known."""
        if len(self._lanes) > _LANES_MAX:
            for key in [key for key, lane in self._lanes.items() if not lane.claimed_count]:
                del self._lanes[key]
            self._running_of = +self._running_of

    def _count_running(self, lane: _Lane, change: int) -> None:
        lane.running_count += change
        self._running_of[lane.organization_id] += change
        self._running_count += change
        self._failing_count += change * lane.is_failing

    def _set_failing(self, lane: _Lane, *, is_failing: bool) -> None:
        self._failing_count += (is_failing - lane.is_failing) * lane.running_count
        lane.is_failing = is_failing

    def _may_start(self, lane: _Lane) -> bool:
        return (
            lane.running_count < lane.running_max
            and self._running_of[lane.organization_id] < OF_ORGANIZATION_MAX
            and (not lane.is_failing or self._failing_count < FAILING_MAX)
        )


def _key(delivery: ClaimedDelivery) -> _Key:
    return delivery.organization_id, delivery.endpoint_id

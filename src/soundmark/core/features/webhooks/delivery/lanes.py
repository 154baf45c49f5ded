"""Which deliveries are claimed and attempted next: shares of organisations, and turns of their endpoints."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from soundmark.core.domain.webhooks.attempt import ClaimedDelivery
from soundmark.core.store.webhooks.dispatch import WaitingEndpoint

RUNNING_MAX: Final = 512
OF_ENDPOINT_MAX: Final = 8
# Endpoints whose last attempt failed: one attempt of each at a time, and some in all, so that they hold up no other.
OF_FAILING_ENDPOINT_MAX: Final = 1
FAILING_MAX: Final = 128
CLAIMED_MAX: Final = 1024
# Claimed ahead for an endpoint that answers at once: four seconds of work, well below the lease.
CLAIMED_AHEAD_MAX: Final = 128
_AT_ONCE_S: Final = 0.25
_LANES_MAX: Final = 4096
# An organisation may have this part of what is free, a smaller one if more of them wait: docs/adr/0030.
_PART: Final = 6


@dataclass(slots=True)
class _Lane:
    """The claimed deliveries of one endpoint."""

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

    @property
    def is_claimed_ahead(self) -> bool:
        return self.is_fast and not self.is_failing

    @property
    def room(self) -> int:
        return (CLAIMED_AHEAD_MAX if self.is_claimed_ahead else self.running_max) - self.claimed_count


@dataclass(slots=True)
class _Organization:
    """The lanes of an organisation's endpoints, in the order of their turns."""

    lanes: dict[str, _Lane] = field(default_factory=dict)
    running_count: int = 0
    failing_count: int = 0  # Of those running.

    @property
    def claimed_count(self) -> int:
        return sum(lane.claimed_count for lane in self.lanes.values())

    def count_kept(self, share: int) -> int:
        """Return how many places of its share are kept for a first attempt of each endpoint: no more than half."""
        return min(len(self.lanes) - 1, share // 2)

    def end_turn(self, endpoint_id: str) -> None:
        """Let every other endpoint have its turn before this one."""
        self.lanes[endpoint_id] = self.lanes.pop(endpoint_id)


class Lanes:
    """One lane for each endpoint with claimed deliveries, and for some that had any.

    Organisations take turns, and so do the endpoints of each. Some places are always free, so that slow endpoints of
    some organisations hold up those of no other: each organisation has a share of what is free, which shrinks with
    every attempt under way. Some places of each organisation are kept for endpoints without an attempt under way.
    """

    def __init__(self) -> None:
        self._organizations: Final[dict[str, _Organization]] = {}
        self._queued: Final[dict[str, _Organization]] = {}  # Those with a queue, in the order of their turns.
        self._part = _PART
        self._running_count = 0
        self._failing_count = 0  # Of those running.
        self._claimed_count = 0

    def expect(self, organizations_count: int) -> None:
        """Note how many organisations wait at the moment."""
        self._part = max(_PART, organizations_count)

    def divide_room(self, endpoints: Sequence[WaitingEndpoint]) -> dict[str, int]:
        """Return how many deliveries of each waiting endpoint of one organisation may be claimed now, if any.

        Endpoints that do not answer at once get no more than can begin soon, because a claim ends.
        """
        organization = self._organizations.setdefault(endpoints[0].organization_id, _Organization())
        for each in endpoints:
            lane = organization.lanes.setdefault(each.endpoint_id, _Lane())
            self._set_failing(organization, lane, is_failing=each.is_failing)
        waiting = {each.endpoint_id for each in endpoints}
        lanes = {name: lane for name, lane in organization.lanes.items() if name in waiting and lane.room > 0}
        room = self._find_share(CLAIMED_MAX, self._claimed_count) - organization.claimed_count
        unsure = {name: lane.room for name, lane in lanes.items() if not lane.is_claimed_ahead}
        unsure_count = sum(lane.claimed_count for lane in organization.lanes.values() if not lane.is_claimed_ahead)
        reachable = self._find_reachable(organization)
        soon = min(room, reachable - unsure_count)
        rooms = _deal({name: 1 for name in unsure if not lanes[name].claimed_count}, soon)
        unsure = {name: count - rooms.get(name, 0) for name, count in unsure.items()}
        more = _deal(unsure, soon - organization.count_kept(reachable) - sum(rooms.values()))
        rooms |= {name: rooms.get(name, 0) + count for name, count in more.items()}
        ahead = {name: lane.room for name, lane in lanes.items() if lane.is_claimed_ahead}
        rooms |= _deal(ahead, room - sum(rooms.values()))
        for name in rooms:
            organization.end_turn(name)
        return rooms

    def add(self, claimed: Sequence[ClaimedDelivery]) -> None:
        """Queue deliveries that were claimed."""
        for delivery in claimed:
            organization = self._organizations[delivery.organization_id]
            organization.lanes[delivery.endpoint_id].queue.append(delivery)
            self._queued.setdefault(delivery.organization_id, organization)
        self._claimed_count += len(claimed)

    def start_next(self) -> ClaimedDelivery | None:
        """Return the delivery to attempt now, which is running from here on; None if none may begin."""
        for delivery in self._list_startable():
            organization = self._queued.pop(delivery.organization_id)
            lane = organization.lanes[delivery.endpoint_id]
            lane.queue.popleft()
            self._count_running(organization, lane, 1)
            organization.end_turn(delivery.endpoint_id)
            if any(each.queue for each in organization.lanes.values()):
                self._queued[delivery.organization_id] = organization  # Behind all others.
            return delivery
        return None

    def end(self, delivery: ClaimedDelivery, *, is_success: bool, duration_s: float) -> None:
        """Note that an attempt has ended."""
        organization = self._organizations[delivery.organization_id]
        lane = organization.lanes[delivery.endpoint_id]
        self._count_running(organization, lane, -1)
        self._claimed_count -= 1
        lane.is_fast = is_success and duration_s < _AT_ONCE_S
        self._set_failing(organization, lane, is_failing=not is_success)

    def take_queued(self) -> list[ClaimedDelivery]:
        """Remove and return what was claimed and did not begin."""
        queues = [lane.queue for organization in self._queued.values() for lane in organization.lanes.values()]
        queued = [delivery for queue in queues for delivery in queue]
        for queue in queues:
            queue.clear()
        self._queued.clear()
        self._claimed_count -= len(queued)
        return queued

    def forget_idle(self) -> None:
        """Forget endpoints without claimed deliveries, if many are known."""
        if sum(len(organization.lanes) for organization in self._organizations.values()) <= _LANES_MAX:
            return
        for organization_id, organization in list(self._organizations.items()):
            for endpoint_id, lane in list(organization.lanes.items()):
                if not lane.claimed_count:
                    del organization.lanes[endpoint_id]
            if not organization.lanes:
                del self._organizations[organization_id]

    def _find_share(self, of_all_max: int, taken_count: int) -> int:
        """Return how many an organisation may have of what there is for all: at least one while any is free.

        It shrinks with each that the organisation itself takes.
        """
        free_count = of_all_max - taken_count
        return max(free_count // self._part, min(free_count, 1))

    def _find_reachable(self, organization: _Organization) -> int:
        """Return how many attempts an organisation has under way once its share shrinks no further."""
        free_count = RUNNING_MAX - self._running_count + organization.running_count
        return max(free_count // (self._part + 1), min(free_count, 1))

    def _list_startable(self) -> Iterator[ClaimedDelivery]:
        """Yield the deliveries that may begin now, the first of each lane, in the order of turns."""
        share = self._find_share(RUNNING_MAX, self._running_count)
        of_failing = self._find_share(FAILING_MAX, self._failing_count)
        for organization in self._queued.values():
            for lane in organization.lanes.values():
                kept = organization.count_kept(share) if lane.running_count else 0
                if (
                    lane.queue
                    and lane.running_count < lane.running_max
                    and organization.running_count < share - kept
                    and (not lane.is_failing or organization.failing_count < of_failing)
                ):
                    yield lane.queue[0]

    def _count_running(self, organization: _Organization, lane: _Lane, change: int) -> None:
        lane.running_count += change
        organization.running_count += change
        self._running_count += change
        self._count_failing(organization, change * lane.is_failing)

    def _set_failing(self, organization: _Organization, lane: _Lane, *, is_failing: bool) -> None:
        self._count_failing(organization, (is_failing - lane.is_failing) * lane.running_count)
        lane.is_failing = is_failing

    def _count_failing(self, organization: _Organization, change: int) -> None:
        organization.failing_count += change
        self._failing_count += change


def _deal(wanted: dict[str, int], room: int) -> dict[str, int]:
    """Deal `room` out, one by one in turns, to each of those who want more; leave out who gets none."""
    dealt: dict[str, int] = {}
    while room > 0 and (wanting := [name for name, count in wanted.items() if dealt.get(name, 0) < count]):
        each = max(room // len(wanting), 1)
        for name in wanting[:room]:
            more = min(each, wanted[name] - dealt.get(name, 0))
            dealt[name] = dealt.get(name, 0) + more
            room -= more
    return dealt

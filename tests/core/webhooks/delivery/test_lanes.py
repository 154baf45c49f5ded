"""How many attempts run at a time, and whose turn it is.

Organisations are numbered, and so are the endpoints of each.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta

from soundmark.core.domain.webhooks.attempt import ClaimedDelivery
from soundmark.core.domain.webhooks.endpoint import ENDPOINTS_MAX
from soundmark.core.features.webhooks.delivery.lanes import (
    CLAIMED_AHEAD_MAX,
    CLAIMED_MAX,
    FAILING_MAX,
    OF_ENDPOINT_MAX,
    RUNNING_MAX,
    Lanes,
)
from soundmark.core.store.webhooks.dispatch import WaitingEndpoint

NOW = datetime(2026, 11, 20, tzinfo=UTC)


DUE_AT = datetime(2026, 11, 19, tzinfo=UTC)


def waiting(organization: int, endpoint: int, *, is_failing: bool = False) -> WaitingEndpoint:
    return WaitingEndpoint(
        f"org_{organization}", f"whe_{endpoint}", is_enabled=True, is_failing=is_failing, next_attempt_at=DUE_AT
    )


def claimed(endpoint: WaitingEndpoint, count: int) -> list[ClaimedDelivery]:
    return [
        ClaimedDelivery(
            organization_id=endpoint.organization_id,
            id=f"whd_{number}",
            endpoint_id=endpoint.endpoint_id,
            attempts=0,
            lease_until=NOW + timedelta(seconds=30),
            event_id=f"evn_{number}",
            project_id=None,
            event_type="code.issued",
            actor_type="user",
            actor_id="ada",
            data="{}",
            event_created_at=NOW,
            url="https://hooks.example.org/",
            sealed_secret=b"",
            sealed_earlier_secret=None,
            earlier_secret_until=None,
            failing_since=None,
        )
        for number in range(count)
    ]


def of_organization(organization: int, *, is_failing: bool = False) -> list[WaitingEndpoint]:
    """Return as many endpoints as an organisation may have."""
    return [waiting(organization, endpoint, is_failing=is_failing) for endpoint in range(ENDPOINTS_MAX)]


def fill(lanes: Lanes, endpoints: list[WaitingEndpoint]) -> dict[str, int]:
    """Claim as many deliveries of one organisation as there is room for; return how many of each endpoint."""
    rooms = lanes.divide_room(endpoints)
    for endpoint in endpoints:
        lanes.add(claimed(endpoint, rooms.get(endpoint.endpoint_id, 0)))
    return rooms


def start_all(lanes: Lanes) -> list[ClaimedDelivery]:
    started = []
    while (delivery := lanes.start_next()) is not None:
        started.append(delivery)
    return started


def occupy(lanes: Lanes, organization: int) -> list[ClaimedDelivery]:
    """Begin what an organisation with twenty endpoints may, which then does not end."""
    started: list[ClaimedDelivery] = []
    while fill(lanes, of_organization(organization)):
        started += start_all(lanes)
    return started


def make_fast(lanes: Lanes, endpoint: WaitingEndpoint) -> None:
    """Let an endpoint answer at once."""
    fill(lanes, [endpoint])
    for delivery in start_all(lanes):
        lanes.end(delivery, is_success=True, duration_s=0.01)


def test_the_endpoints_of_an_organisation_take_turns_and_have_a_limit_each() -> None:
    lanes = Lanes()
    fill(lanes, [waiting(1, 1), waiting(1, 2)])
    started = start_all(lanes)
    assert [delivery.endpoint_id for delivery in started] == ["whe_1", "whe_2"] * OF_ENDPOINT_MAX
    assert lanes.divide_room([waiting(1, 1)]) == {}


def test_organisations_take_turns_whatever_number_of_endpoints_they_have() -> None:
    lanes = Lanes()
    fill(lanes, of_organization(1))
    fill(lanes, [waiting(2, 1)])
    started = start_all(lanes)
    assert [delivery.organization_id for delivery in started[: 2 * OF_ENDPOINT_MAX]] == [
        "org_1",
        "org_2",
    ] * OF_ENDPOINT_MAX


def test_each_of_ten_organisations_leaves_room_for_the_next_one() -> None:
    """One after another they take all that they may: all their endpoints are slow, and none of their attempts ends."""
    lanes = Lanes()
    counts = [len(occupy(lanes, number)) for number in range(10)]
    assert min(counts) >= ENDPOINTS_MAX
    assert sum(counts) < RUNNING_MAX * 2 / 3
    newcomer = waiting(100, 1)
    assert fill(lanes, [newcomer]) == {"whe_1": OF_ENDPOINT_MAX}
    assert [delivery.organization_id for delivery in start_all(lanes)] == ["org_100"] * OF_ENDPOINT_MAX


def test_a_hundred_organisations_that_begin_together_leave_room_for_the_next_one() -> None:
    lanes = Lanes()
    lanes.expect(100)
    for number in range(100):
        fill(lanes, of_organization(number))
    counts = Counter(delivery.organization_id for delivery in start_all(lanes))
    assert len(counts) == 100
    assert max(counts.values()) - min(counts.values()) <= 1
    assert fill(lanes, [waiting(100, 1)])
    assert lanes.start_next() is not None


def test_the_last_places_are_given_one_by_one() -> None:
    lanes = Lanes()
    count = 0
    while started := occupy(lanes, count):
        count += 1
        last = len(started)
    assert last == 1
    assert lanes.divide_room([waiting(count, 1)]) == {}


def test_slow_endpoints_leave_room_for_the_others_of_their_organisation() -> None:
    lanes = Lanes()
    slow = of_organization(1)[:-1]
    while fill(lanes, slow):
        start_all(lanes)
    last = of_organization(1)[-1]
    assert fill(lanes, [last])
    delivery = lanes.start_next()
    assert delivery is not None
    assert delivery.endpoint_id == last.endpoint_id


def test_no_more_is_claimed_for_an_endpoint_than_can_begin_soon() -> None:
    """What waits for a slow endpoint is claimed by whichever worker has room for it."""
    lanes = Lanes()
    rooms = fill(lanes, of_organization(1))
    assert len(rooms) == ENDPOINTS_MAX
    assert sum(rooms.values()) < RUNNING_MAX / 6
    assert len(start_all(lanes)) > sum(rooms.values()) / 2


def test_the_endpoints_of_an_organisation_take_turns_to_have_deliveries_claimed() -> None:
    """Here there is room for one at a time, because other organisations occupy nearly everything."""
    lanes = Lanes()
    for number in range(1, 40):
        occupy(lanes, number)
    turns = []
    for _ in range(ENDPOINTS_MAX):
        (endpoint_id,) = fill(lanes, of_organization(0))
        (delivery,) = start_all(lanes)
        turns.append(endpoint_id)
        lanes.end(delivery, is_success=True, duration_s=14)
    assert len(set(turns)) == ENDPOINTS_MAX


def test_failing_endpoints_have_one_attempt_each_and_leave_room_for_the_others() -> None:
    """For those that fail too: one failure does not make an endpoint wait for those that hang."""
    lanes = Lanes()
    for number in range(10):
        fill(lanes, of_organization(number, is_failing=True))
    started = start_all(lanes)
    assert len(started) == len({(each.organization_id, each.endpoint_id) for each in started}) < FAILING_MAX
    fill(lanes, [waiting(100, 1, is_failing=True), waiting(100, 2)])
    started = start_all(lanes)
    counts = Counter(delivery.endpoint_id for delivery in started if delivery.organization_id == "org_100")
    assert counts == {"whe_1": 1, "whe_2": OF_ENDPOINT_MAX}


def test_an_endpoint_that_answers_at_once_has_more_claimed_for_it() -> None:
    lanes, endpoint = Lanes(), waiting(1, 1)
    make_fast(lanes, endpoint)
    assert fill(lanes, [endpoint]) == {"whe_1": CLAIMED_AHEAD_MAX}
    (first, *_) = start_all(lanes)
    lanes.end(first, is_success=True, duration_s=5)
    assert lanes.divide_room([endpoint]) == {}
    assert lanes.start_next() is not None, "in the place of the first"


def test_what_is_claimed_ahead_leaves_room_for_other_organisations() -> None:
    lanes = Lanes()
    for number in range(10):
        for endpoint in of_organization(number):
            make_fast(lanes, endpoint)
    counts = [sum(fill(lanes, of_organization(number)).values()) for number in range(10)]
    assert counts[0] == CLAIMED_MAX // 6
    assert sum(counts) < CLAIMED_MAX - OF_ENDPOINT_MAX
    assert fill(lanes, [waiting(100, 1)]) == {"whe_1": OF_ENDPOINT_MAX}


def test_an_endpoint_that_fails_goes_on_with_one_attempt_at_a_time() -> None:
    lanes, endpoint = Lanes(), waiting(1, 1)
    fill(lanes, [endpoint])
    started = start_all(lanes)
    lanes.add(claimed(endpoint, 5))
    for delivery in started[:-1]:
        lanes.end(delivery, is_success=False, duration_s=0.01)
        assert lanes.start_next() is None
    lanes.end(started[-1], is_success=False, duration_s=0.01)
    assert lanes.start_next() is not None
    assert lanes.start_next() is None
    assert len(lanes.take_queued()) == 4
    assert lanes.take_queued() == []

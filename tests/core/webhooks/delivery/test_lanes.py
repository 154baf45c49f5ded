"""How many attempts run at a time, and whose turn it is."""

from datetime import UTC, datetime, timedelta

from soundmark.core.domain.webhooks.attempt import ClaimedDelivery
from soundmark.core.features.webhooks.delivery.lanes import (
    FAILING_MAX,
    OF_ENDPOINT_MAX,
    OF_ORGANIZATION_MAX,
    RUNNING_MAX,
    Lanes,
)
from soundmark.core.store.webhooks.dispatch import WaitingEndpoint

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def waiting(organization: int, endpoint: int, *, is_failing: bool = False) -> WaitingEndpoint:
    return WaitingEndpoint(
        f"org_{organization}", f"whe_{endpoint}", is_enabled=True, is_failing=is_failing, is_due=True
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


def fill(lanes: Lanes, *endpoints: WaitingEndpoint) -> None:
    for endpoint in endpoints:
        lanes.add(claimed(endpoint, lanes.count_room(endpoint)))


def start_all(lanes: Lanes) -> list[ClaimedDelivery]:
    started = []
    while (delivery := lanes.start_next()) is not None:
        started.append(delivery)
    return started


def test_endpoints_take_turns_and_have_a_limit_each() -> None:
    lanes = Lanes()
    fill(lanes, waiting(1, 1), waiting(1, 2))
    started = start_all(lanes)
    assert [delivery.endpoint_id for delivery in started] == ["whe_1", "whe_2"] * OF_ENDPOINT_MAX
    assert lanes.count_room(waiting(1, 1)) == 0


def test_an_organisation_has_a_limit_and_so_has_the_process() -> None:
    lanes = Lanes()
    fill(lanes, *(waiting(1, number) for number in range(20)))
    assert len(start_all(lanes)) == OF_ORGANIZATION_MAX
    for organization in range(2, 6):
        fill(lanes, *(waiting(organization, 100 * organization + number) for number in range(6)))
    assert len(start_all(lanes)) == RUNNING_MAX - OF_ORGANIZATION_MAX


def test_failing_endpoints_have_one_attempt_each_and_leave_room_for_the_others() -> None:
    lanes = Lanes()
    fill(lanes, *(waiting(number, number, is_failing=True) for number in range(2 * FAILING_MAX)))
    started = start_all(lanes)
    assert len(started) == len({delivery.endpoint_id for delivery in started}) == FAILING_MAX
    fill(lanes, waiting(1000, 1000))
    assert [delivery.endpoint_id for delivery in start_all(lanes)] == ["whe_1000"] * OF_ENDPOINT_MAX


def test_an_endpoint_that_answers_at_once_has_more_claimed_for_it() -> None:
    lanes, endpoint = Lanes(), waiting(1, 1)
    fill(lanes, endpoint)
    for delivery in start_all(lanes):
        lanes.end(delivery, is_success=True, duration_s=0.01)
    assert lanes.count_room(endpoint) > OF_ENDPOINT_MAX
    fill(lanes, endpoint)
    (first, *_) = start_all(lanes)
    lanes.end(first, is_success=True, duration_s=5)
    assert lanes.count_room(endpoint) == 0
    assert lanes.start_next() is not None, "in the place of the first"


def test_an_endpoint_that_fails_goes_on_with_one_attempt_at_a_time() -> None:
    lanes, endpoint = Lanes(), waiting(1, 1)
    fill(lanes, endpoint)
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

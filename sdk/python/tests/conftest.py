import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from .event_service import EventService
from .issuer import Issuer
from .issuing_service import IssuingService
from .measurements import make_measurement
from .reference_backend import World
from .stand_ins import FakeClock, Service

# A run in the background of a shell ignores Ctrl-C, which one test presses.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def service(issuer: Issuer) -> Iterator[Service]:
    with Service(issuer) as running:
        yield running


@pytest.fixture
def issuing() -> Iterator[IssuingService]:
    with IssuingService() as running:
        yield running


@pytest.fixture
def events() -> Iterator[EventService]:
    with EventService() as running:
        yield running


@pytest.fixture
async def world(events: EventService, clock: FakeClock) -> AsyncIterator[World]:
    world = World(events, clock)
    yield world
    await world.publisher.aclose()


@pytest.fixture
def body(issuer: Issuer, clock: FakeClock) -> bytes:
    return make_measurement(issuer, clock).body

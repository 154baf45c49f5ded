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
    """The issuer of the tokens or keys under test."""
    return Issuer()


@pytest.fixture
def clock() -> FakeClock:
    """A clock that the test can move."""
    return FakeClock()


@pytest.fixture
def service(issuer: Issuer) -> Iterator[Service]:
    """A Core that answers resolutions."""
    with Service(issuer) as running:
        yield running


@pytest.fixture
def issuing() -> Iterator[IssuingService]:
    """A Core that issues Codes and misbehaves on command."""
    with IssuingService() as running:
        yield running


@pytest.fixture
def events() -> Iterator[EventService]:
    """A Core that takes events."""
    with EventService() as running:
        yield running


@pytest.fixture
async def world(events: EventService, clock: FakeClock) -> AsyncIterator[World]:
    """A publisher, its receiver and the service that takes its events."""
    world = World(events, clock)
    yield world
    await world.publisher.aclose()


@pytest.fixture
def body(issuer: Issuer, clock: FakeClock) -> bytes:
    """The body of one measurement."""
    return make_measurement(issuer, clock).body

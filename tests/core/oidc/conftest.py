"""An identity provider, and what reads its access tokens."""

from collections.abc import AsyncIterator

import pytest
from core_app import FakeClock
from issuer import Issuer, running_issuer
from oidc_access import access_to

from soundmark.core.access.oidc import OidcAccess


@pytest.fixture
async def issuer(clock: FakeClock) -> AsyncIterator[Issuer]:
    async with running_issuer(clock) as running:
        yield running


@pytest.fixture
async def access(issuer: Issuer, clock: FakeClock) -> AsyncIterator[OidcAccess]:
    async with access_to(issuer, clock) as made:
        yield made

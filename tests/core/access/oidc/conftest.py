"""An identity provider, and the reader of its access tokens."""

from collections.abc import AsyncIterator

import pytest
from support.identity.oidc_access import reading_tokens_of
from support.identity.oidc_issuer import OidcIssuer, running_issuer
from support.processes.fake_clock import FakeClock

from soundmark.core.access.oidc import OidcAccess


@pytest.fixture
async def issuer(clock: FakeClock) -> AsyncIterator[OidcIssuer]:
    """The issuer of the tokens or keys under test."""
    async with running_issuer(clock) as running:
        yield running


@pytest.fixture
async def access(issuer: OidcIssuer, clock: FakeClock) -> AsyncIterator[OidcAccess]:
    """The reader of access tokens."""
    async with reading_tokens_of(issuer, clock) as made:
        yield made

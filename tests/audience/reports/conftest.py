"""An integration to report on, and a clock that stands still."""

from datetime import datetime

import pytest
from support.audience.client import AudienceApi, AudienceIntegration, entitlement_body
from support.audience.report_events import RETENTION_DAYS


@pytest.fixture
async def integration(audience: AudienceApi) -> AudienceIntegration:
    """An integration with a contract and a long retention."""
    return await audience.make_integration(
        mode="contract", retention_days=RETENTION_DAYS, entitlement=entitlement_body()
    )


@pytest.fixture
def now(audience: AudienceApi) -> datetime:
    """Noon of a day, at which the clock stands still."""
    frozen = audience.clock.freeze().replace(hour=12, minute=0, second=0)
    audience.clock.frozen_at = frozen
    return frozen

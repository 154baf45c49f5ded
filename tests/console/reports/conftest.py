"""What the tests of report pages share."""

import pytest
from support.audience.measured_tenant import MeasuredTenant, measure_tenant
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def measured(tenant: Tenant, beside_core_url: Secret) -> MeasuredTenant:
    """A tenant with measured events."""
    tenant.api.clock.freeze()
    return await measure_tenant(tenant, beside_core_url)

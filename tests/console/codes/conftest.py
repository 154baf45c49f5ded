"""What the tests of the Codes' pages share."""

from typing import Any

import pytest
from support.console.client import MakeFields
from support.tenancy.tenant import Tenant


@pytest.fixture
def fields(tenant: Tenant) -> MakeFields:
    """Return the fields of a valid issuance form, except for changes."""

    def make(**changes: Any) -> dict[str, Any]:
        return {
            "idempotency_key": "key-of-the-tests",
            "issuer": "Radio Nordlicht",
            "mode": "link",
            "url": "https://example.org/offer",
            "expires_at": f"{tenant.api.clock.now().year + 1}-06-01T12:00",
            "expires_at_zone": "UTC",
            "count": "1",
            **changes,
        }

    return make

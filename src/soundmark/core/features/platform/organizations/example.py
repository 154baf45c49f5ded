"""The examples in the published description of these operations."""

from dataclasses import replace
from typing import Final

from soundmark.core.domain.tenancy.organization import PlatformOrganization
from soundmark.core.edge.examples import ISSUED_AT, LATER, ORGANIZATION

RESTORED: Final = PlatformOrganization(ORGANIZATION.id, ORGANIZATION.name, ISSUED_AT, None, None, None)
SUSPENDED: Final = replace(RESTORED, suspended_at=LATER, suspension_reason="Links to malware.")

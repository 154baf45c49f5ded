"""A tenant with a report: two Codes that were measured, one of them of a campaign."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from soundmark.kit.crypto.secret import Secret
from support.api.core_client import Answer
from support.audience.recorded_events import RecordedEvent, store_events, store_integrity_days
from support.tenancy.tenant import Tenant


@dataclass(frozen=True)
class MeasuredTenant:
    """A tenant whose integration measured two Codes, one of them of a campaign."""

    tenant: Tenant
    integration: dict[str, Any]
    campaign: dict[str, Any]
    in_campaign: dict[str, Any]
    alone: dict[str, Any]

    @property
    def path(self) -> str:
        return f"/v1/audience/reports/{self.integration['id']}"

    async def report(self, *, accept: str = "application/json", by: Tenant | None = None, **query: str) -> Answer:
        caller = by or self.tenant
        params = {**self.tenant.in_project, **query}
        return await caller.api.call("GET", self.path, params=params, headers={"Accept": accept})


async def measure_tenant(tenant: Tenant, audience_url: Secret) -> MeasuredTenant:
    """Give the tenant an integration and Codes, and store events in Audience's database."""
    integration = await tenant.make_integration()
    campaign = await tenant.make_campaign()
    audience = {"enabled": True, "integration_id": integration["id"]}
    in_campaign = await tenant.make_code(audience=audience, campaign_id=campaign["id"])
    alone = await tenant.make_code(audience=audience)
    hour_ago = tenant.api.clock.now() - timedelta(hours=1)
    events = [
        RecordedEvent(hour_ago, 1, in_campaign["xr_id"], campaign["id"]),
        RecordedEvent(hour_ago, 2, in_campaign["xr_id"], campaign["id"], country=None),
        RecordedEvent(hour_ago - timedelta(days=1), 1, alone["xr_id"], receiver_class="kiosk"),
    ]
    await asyncio.to_thread(store_events, audience_url, integration["id"], events)
    await asyncio.to_thread(store_integrity_days, audience_url, integration["id"], {hour_ago.date(): (3, 2, 1)})
    return MeasuredTenant(tenant, integration, campaign, in_campaign, alone)

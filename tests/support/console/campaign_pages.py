"""The pages of a tenant's campaigns, and the campaigns as Core has them."""

from support.tenancy.tenant import Tenant


def path_of(tenant: Tenant, campaign_id: str = "") -> str:
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/campaigns"
    return f"{path}/{campaign_id}" if campaign_id else path


async def read_campaign(tenant: Tenant, campaign_id: str) -> dict[str, object]:
    answer = await tenant.api.get(f"/v1/campaigns/{campaign_id}/summary", params=tenant.query)
    campaign: dict[str, object] = answer.json["campaign"]
    return campaign

"""Suspending and restoring an organisation over the API, as the operator."""

from typing import Any

from support.api.core_client import Answer, Api

REASON = "Links to malware."


def path_of(organization_id: str) -> str:
    return f"/v1/platform/organizations/{organization_id}/suspension"


async def suspend(api: Api, organization_id: str, reason: Any = REASON) -> Answer:
    return await api.put(path_of(organization_id), json={"reason": reason})


async def restore(api: Api, organization_id: str) -> Answer:
    return await api.delete(path_of(organization_id))

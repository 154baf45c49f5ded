"""Requests for lists of Codes, and campaigns to filter them by."""

from typing import Any

from support.api.core_client import Answer
from support.database.rival import Rival
from support.tenancy.tenant import Tenant


async def read_page(tenant: Tenant, **query: Any) -> Answer:
    return await tenant.api.get("/v1/codes", params={**tenant.query, **query})


async def list_ids(tenant: Tenant, **query: Any) -> list[str]:
    """Return the ids on one page."""
    answer = await read_page(tenant, **query)
    assert answer.status == 200, answer.body
    return [entry["xr_id"] for entry in answer.json["data"]]


async def walk_pages(tenant: Tenant, limit: int, **query: Any) -> list[str]:
    """Return the ids on all pages together."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await read_page(tenant, limit=limit, **cursor, **query)
        assert answer.status == 200, answer.body
        found += [entry["xr_id"] for entry in answer.json["data"]]
        if answer.json["next_cursor"] is None:
            return found
        cursor = {"cursor": answer.json["next_cursor"]}


async def make_campaign(tenant: Tenant, rival: Rival, campaign_id: str = "cmp_" + "c" * 22) -> str:
    await rival.run(
        "INSERT INTO campaigns (organization_id, id, project_id, name, created_at) VALUES (%s, %s, %s, %s, %s)",
        tenant.organization_id,
        campaign_id,
        tenant.project_id,
        campaign_id,
        tenant.api.clock.now(),
    )
    return campaign_id


def pointers(answer: Answer) -> list[tuple[str, str]]:
    assert (answer.status, answer.code) == (422, "validation_failed"), answer.body
    return [(error["location"], error["pointer"]) for error in answer.json["errors"]]


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code

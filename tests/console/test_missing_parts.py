"""A page of which one part cannot be read: the rest is there, and a session that has ended concerns the whole page."""

import pytest
from support.console.client import ConsoleClient
from support.console.search_pages import search_path
from support.tenancy.tenant import Tenant

UNAVAILABLE = "This part cannot be shown at the moment."
IN_PART = "Not every list was looked through."
NO_MEMBERS = "The members cannot be read at the moment."


async def test_a_part_that_fails_leaves_the_rest_of_its_page(
    operator: ConsoleClient, tenant: Tenant, subtests: pytest.Subtests
) -> None:
    """By the page and the call: what the page still shows, and what it says in the part's place, if anything."""
    endpoint, integration = await tenant.make_webhook_endpoint(), await tenant.make_integration()
    organization = f"/organizations/{tenant.organization_id}"
    project = f"{organization}/projects/{tenant.project_id}"
    certificate_id = f"dct_{'0' * 22}"
    by_address = f"{organization}/audit-log?actor=operator"
    for path, call, shown, said in (
        (
            f"{organization}/webhooks/{endpoint['id']}",
            f"/v1/webhook-endpoints/{endpoint['id']}/deliveries",
            endpoint["id"],
            UNAVAILABLE,
        ),
        (f"{organization}/audit-log", "/v1/members", "operator created the organisation", NO_MEMBERS),
        (by_address, "/v1/members", "operator created the organisation", NO_MEMBERS),
        (f"{organization}/billing", "/v1/usage", "Starter", ""),
        (f"{organization}/billing", "/v1/billing/checkouts", "Starter", UNAVAILABLE),
        (f"{project}/integrations", "/v1/billing/subscriptions", integration["id"], ""),
        (f"{project}/integrations", "/v1/audience/legacy-report", integration["id"], ""),
        (search_path(tenant, "api"), "/v1/campaigns", "API keys", IN_PART),
        (search_path(tenant, endpoint["id"]), f"/v1/webhook-endpoints/{endpoint['id']}", "0 results", IN_PART),
        (search_path(tenant, certificate_id), f"/v1/deletion-certificates/{certificate_id}", "0 results", IN_PART),
    ):
        with subtests.test(path=path, call=call):
            operator.core.refuse(f"GET {call}", 503, "database_unavailable")
            page = await operator.get(path)
            operator.core.recover()
            operator.core.refuse(f"GET {call}", 401, "unauthenticated")
            ended = await operator.get(path)
            operator.core.recover()

            assert (page.status, page.trouble, shown in page.text, said in page.text) == (200, None, True, True)
            assert ended.status == 401
            assert call in {each.url.path for each in operator.core.calls}, "the page makes the call"

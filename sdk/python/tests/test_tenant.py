"""The organisation and project of a call that names none."""

import asyncio
from typing import Any

import pytest
from soundmark_sdk.client import ApiProblem, AsyncClient, Client, IssueRequest, TenantNotGiven
from soundmark_sdk.client.records import Caller

from .issuer import compact
from .issuing_service import (
    CREDENTIAL,
    ISSUE_REQUEST,
    ORGANIZATION,
    PROJECT,
    Fault,
    IssuingService,
    answer_with,
    make_problem,
)
from .stand_ins import FakeClock, make_response

KEY = {
    "type": "api_key",
    "id": "key_0123456789abcdefABCDEF",
    "email": None,
    "organization_id": ORGANIZATION,
    "project_id": PROJECT,
    "scopes": ["codes:read", "codes:write"],
    "mfa": False,
    "platform_admin": False,
}
PERSON = {
    **KEY,
    "type": "user",
    "email": "ada@example.org",
    "scopes": None,
    "organization_id": None,
    "project_id": None,
}
OTHER = "org_other"


def make_answer(document: Any) -> Fault:
    return answer_with(make_response(200, compact(document)))


EMPTY = make_answer({"data": [], "next_cursor": None})


def list_queries(issuing: IssuingService) -> list[str]:
    return [request.path for request in issuing.state.requests]


async def test_the_caller_is_a_record(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer(KEY), make_answer(PERSON))
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        key, person = await client.caller(), await client.caller()
    assert (key.type, key.organization_id, key.scopes) == ("api_key", ORGANIZATION, ("codes:read", "codes:write"))
    assert (person.type, person.email, person.project_id, person.scopes) == ("user", "ada@example.org", None, None)
    assert isinstance(key, Caller)


async def test_the_tenant_of_a_server_key_is_fetched_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer(KEY), EMPTY, EMPTY, EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        assert [code async for code in client.codes.list()] == []
        await client.campaigns.page(limit=1)
        await client.integrations.page(limit=1)
    tenant = f"organization_id={ORGANIZATION}&project_id={PROJECT}&limit=1"
    assert list_queries(issuing) == [
        "/v1/caller",
        f"/v1/codes?organization_id={ORGANIZATION}&limit=100",
        f"/v1/campaigns?{tenant}",
        f"/v1/audience/integrations?{tenant}",
    ]


async def test_concurrent_calls_fetch_the_caller_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer(KEY), EMPTY, EMPTY, EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        await asyncio.gather(*(client.codes.page() for _ in range(3)))
    assert issuing.routes.count("/v1/caller") == 1


def test_blocking_code_needs_no_ids_either(issuing: IssuingService) -> None:
    issuing.add_faults(make_answer(KEY), EMPTY, EMPTY)
    with Client(issuing.url, CREDENTIAL) as client:
        assert list(client.codes.list()) == list(client.campaigns.list()) == []
    assert issuing.routes == ["/v1/caller", "/v1/codes", "/v1/campaigns"]


async def test_a_code_is_issued_where_the_key_belongs(issuing: IssuingService, clock: FakeClock) -> None:
    """The bytes are the same as with explicit ids, so that an unsettled issuance is found again."""
    short = IssueRequest(issuer=ISSUE_REQUEST.issuer, expires_at=ISSUE_REQUEST.expires_at, intent=ISSUE_REQUEST.intent)
    issuing.add_faults(make_answer(KEY))
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        for request in (short, ISSUE_REQUEST):
            await client.codes.issue(request)
    _, first, second = (request.body for request in issuing.state.requests)
    assert first == second


async def test_ids_of_the_call_precede_the_clients_and_those_precede_the_keys(
    issuing: IssuingService, clock: FakeClock
) -> None:
    issuing.add_faults(EMPTY, EMPTY, make_answer(KEY), EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock, organization_id=OTHER) as client:
        await client.codes.page(organization_id="org_named")
        await client.codes.page()
        await client.campaigns.page()
    assert [query.partition("&")[0] for query in list_queries(issuing)] == [
        "/v1/codes?organization_id=org_named",
        f"/v1/codes?organization_id={OTHER}",
        "/v1/caller",
        f"/v1/campaigns?organization_id={OTHER}",
    ]
    assert f"project_id={PROJECT}" in list_queries(issuing)[-1]


async def test_an_empty_id_is_not_replaced_by_another(issuing: IssuingService, clock: FakeClock) -> None:
    """It comes from a variable that was not set, and acting on another organisation would be worse than a refusal."""
    issuing.add_faults(answer_with(make_problem(404, "organization_not_found")))
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock, organization_id=OTHER) as client:
        with pytest.raises(ApiProblem):
            await client.codes.page(organization_id="")
    assert list_queries(issuing) == ["/v1/codes?organization_id=&limit=100"]


async def test_a_person_must_name_the_organisation_and_project(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(make_answer(PERSON))
    async with AsyncClient(issuing.url, "a.b.c", clock=clock) as client:
        with pytest.raises(TenantNotGiven, match="only an API key") as organization:
            await client.members.page()
        with pytest.raises(TenantNotGiven) as project:
            await client.campaigns.page(organization_id=OTHER)
    assert (organization.value.missing, project.value.missing) == ("organization_id", "project_id")
    assert issuing.routes == ["/v1/caller"]


async def test_a_different_credential_is_a_different_caller(issuing: IssuingService, clock: FakeClock) -> None:
    credentials = iter(["xak_one", "xak_one", "xak_one", "xak_two", "xak_two", "xak_two"])
    issuing.add_faults(make_answer(KEY), EMPTY, make_answer({**KEY, "organization_id": OTHER}), EMPTY)
    async with AsyncClient(issuing.url, lambda: next(credentials), clock=clock) as client:
        await client.codes.page()
        await client.codes.page()
    assert [query for query in list_queries(issuing) if "codes" in query] == [
        f"/v1/codes?organization_id={ORGANIZATION}&limit=100",
        f"/v1/codes?organization_id={OTHER}&limit=100",
    ]


async def test_a_failed_lookup_of_the_caller_is_repeated(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(answer_with(make_problem(401, "unauthenticated")), make_answer(KEY), EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        with pytest.raises(ApiProblem):
            await client.codes.page()
        assert (await client.codes.page()).data == ()

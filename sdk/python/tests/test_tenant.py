"""Which organisation and project a call is about, where it names none."""

import asyncio
from typing import Any

import pytest
from soundmark_sdk.client import ApiProblem, AsyncClient, Client, TenantNotGiven, Wish
from soundmark_sdk.client.records import Caller

from .issuer import compact
from .issuing_service import CREDENTIAL, ORGANIZATION, PROJECT, WISH, Fault, IssuingService, problem, says
from .stand_ins import FakeClock, http

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


def answer(document: Any) -> Fault:
    return says(http(200, compact(document)))


EMPTY = answer({"data": [], "next_cursor": None})


def queries(issuing: IssuingService) -> list[str]:
    return [request.path for request in issuing.state.requests]


async def test_a_caller_is_read_as_a_record(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(answer(KEY), answer(PERSON))
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        key, person = await client.caller(), await client.caller()
    assert (key.type, key.organization_id, key.scopes) == ("api_key", ORGANIZATION, ("codes:read", "codes:write"))
    assert (person.type, person.email, person.project_id, person.scopes) == ("user", "ada@example.org", None, None)
    assert isinstance(key, Caller)


async def test_a_key_says_where_it_belongs_and_is_asked_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(answer(KEY), EMPTY, EMPTY, EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        assert [code async for code in client.codes.list()] == []
        await client.campaigns.page(limit=1)
        await client.integrations.page(limit=1)
    tenant = f"organization_id={ORGANIZATION}&project_id={PROJECT}&limit=1"
    assert queries(issuing) == [
        "/v1/caller",
        f"/v1/codes?organization_id={ORGANIZATION}&limit=100",
        f"/v1/campaigns?{tenant}",
        f"/v1/audience/integrations?{tenant}",
    ]


async def test_calls_at_the_same_time_ask_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(answer(KEY), EMPTY, EMPTY, EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        await asyncio.gather(*(client.codes.page() for _ in range(3)))
    assert issuing.routes.count("/v1/caller") == 1


def test_blocking_code_needs_no_ids_either(issuing: IssuingService) -> None:
    issuing.befall(answer(KEY), EMPTY, EMPTY)
    with Client(issuing.url, CREDENTIAL) as client:
        assert list(client.codes.list()) == list(client.campaigns.list()) == []
    assert issuing.routes == ["/v1/caller", "/v1/codes", "/v1/campaigns"]


async def test_a_code_is_issued_where_the_key_belongs(issuing: IssuingService, clock: FakeClock) -> None:
    """With the same bytes as under ids that were spelt out, so that what was left unsettled is found again."""
    short = Wish(issuer=WISH.issuer, expires_at=WISH.expires_at, intent=WISH.intent)
    issuing.befall(answer(KEY))
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        for wish in (short, WISH):
            await client.codes.issue(wish)
    _, first, second = (request.body for request in issuing.state.requests)
    assert first == second


async def test_ids_of_the_call_win_over_the_clients_and_those_over_the_keys(
    issuing: IssuingService, clock: FakeClock
) -> None:
    issuing.befall(EMPTY, EMPTY, answer(KEY), EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock, organization_id=OTHER) as client:
        await client.codes.page(organization_id="org_named")
        await client.codes.page()
        await client.campaigns.page()
    assert [query.partition("&")[0] for query in queries(issuing)] == [
        "/v1/codes?organization_id=org_named",
        f"/v1/codes?organization_id={OTHER}",
        "/v1/caller",
        f"/v1/campaigns?organization_id={OTHER}",
    ]
    assert f"project_id={PROJECT}" in queries(issuing)[-1]


async def test_an_empty_id_is_an_id_and_no_reason_to_take_another(issuing: IssuingService, clock: FakeClock) -> None:
    """It comes from a variable that nobody set: acting somewhere else would be worse than a refusal."""
    issuing.befall(says(problem(404, "organization_not_found")))
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock, organization_id=OTHER) as client:
        with pytest.raises(ApiProblem):
            await client.codes.page(organization_id="")
    assert queries(issuing) == ["/v1/codes?organization_id=&limit=100"]


async def test_a_person_has_to_say_where(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(answer(PERSON))
    async with AsyncClient(issuing.url, "a.b.c", clock=clock) as client:
        with pytest.raises(TenantNotGiven, match="no server key") as organization:
            await client.members.page()
        with pytest.raises(TenantNotGiven) as project:
            await client.campaigns.page(organization_id=OTHER)
    assert (organization.value.missing, project.value.missing) == ("organization_id", "project_id")
    assert issuing.routes == ["/v1/caller"]


async def test_another_credential_is_another_caller(issuing: IssuingService, clock: FakeClock) -> None:
    credentials = iter(["xak_one", "xak_one", "xak_one", "xak_two", "xak_two", "xak_two"])
    issuing.befall(answer(KEY), EMPTY, answer({**KEY, "organization_id": OTHER}), EMPTY)
    async with AsyncClient(issuing.url, lambda: next(credentials), clock=clock) as client:
        await client.codes.page()
        await client.codes.page()
    assert [query for query in queries(issuing) if "codes" in query] == [
        f"/v1/codes?organization_id={ORGANIZATION}&limit=100",
        f"/v1/codes?organization_id={OTHER}&limit=100",
    ]


async def test_a_key_that_is_refused_is_asked_about_again(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(says(problem(401, "unauthenticated")), answer(KEY), EMPTY)
    async with AsyncClient(issuing.url, CREDENTIAL, clock=clock) as client:
        with pytest.raises(ApiProblem):
            await client.codes.page()
        assert (await client.codes.page()).data == ()

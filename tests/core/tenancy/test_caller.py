"""`GET /v1/caller`: every valid credential learns whom it identifies, and any other is refused."""

from typing import Any

from support.api.core_client import Api
from support.tenancy.people import People
from support.tenancy.tenant import make_tenant

NOBODY: dict[str, Any] = {"organization_id": None, "project_id": None, "scopes": None}


async def caller_of(api: Api) -> Any:
    answer = await api.get("/v1/caller")
    assert answer.status == 200, answer.body
    return answer.json


async def test_a_person_is_a_user_without_a_tenant(people: People) -> None:
    """A person may belong to any number of organisations, so they are not part of the credential."""
    await people.tenant_of("ada")
    assert await caller_of(people.person("ada")) == {
        "type": "user",
        "id": "ada",
        "email": "ada@example.org",
        **NOBODY,
        "mfa": True,
        "platform_admin": False,
    }


async def test_a_login_says_whether_it_had_a_second_factor(people: People) -> None:
    assert (await caller_of(people.person("ada", acr="1")))["mfa"] is False


async def test_an_administrator_of_the_platform_is_one(people: People) -> None:
    access = {"realm_access": {"roles": ["svc_platform_admin"]}}
    assert (await caller_of(people.person("root", **access)))["platform_admin"] is True


async def test_a_server_key_names_its_organisation_project_and_scopes(api: Api) -> None:
    """From any address, whatever its scopes."""
    tenant = await make_tenant(api)
    key = await tenant.make_key(scopes=["codes:write", "audience:read"])
    assert await caller_of(tenant.with_key(key).api) == {
        "type": "api_key",
        "id": key["id"],
        "email": None,
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "scopes": ["audience:read", "codes:write"],
        "mfa": False,
        "platform_admin": False,
    }


async def test_the_operator_differs_from_a_person_of_that_name(api: Api, people: People) -> None:
    operator = await caller_of(api)
    assert operator == {
        "type": "operator",
        "id": "operator",
        "email": "operator@localhost",
        **NOBODY,
        "mfa": True,
        "platform_admin": True,
    }
    namesake = await caller_of(people.person("operator", email="operator@localhost"))
    assert (namesake["type"], namesake["id"]) == ("user", "operator")


async def test_an_unverified_address_is_shown_as_such(people: People) -> None:
    answer = await people.person("ada", email_verified=False).get("/v1/caller")
    assert (answer.status, answer.code) == (403, "email_not_verified")


async def test_the_document_says_who_may_ask(api: Api) -> None:
    operation = (await api.published()).document["paths"]["/v1/caller"]["get"]
    assert operation["x-svc-access"]["credentials"] == ["user", "api_key"]
    problems = {
        code
        for answer in operation["responses"].values()
        for code in answer["content"].get("application/problem+json", {}).get("examples", {})
    }
    assert problems == {
        "database_unavailable",
        "email_not_verified",
        "identity_provider_unavailable",
        "internal_error",
        "rate_limited",
        "unauthenticated",
        "validation_failed",
    }

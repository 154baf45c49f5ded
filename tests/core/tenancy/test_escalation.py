"""Nobody gains rights by their own act: strangers, members, administrators and owners try, and nothing changes."""

from typing import Any

import pytest
from support.api.core_client import Answer
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

OWNER, ADMIN, MEMBER, BILLING, STRANGER = "olga", "adam", "mia", "bill", "sam"
HELD = "SELECT organization_id, subject_id, role FROM members ORDER BY 1, 2"
MADE = (
    "SELECT 'key', id FROM api_keys UNION SELECT 'invitation', id FROM invitations"
    " UNION SELECT 'project', id FROM projects UNION SELECT 'setting', name FROM platform_configuration"
)


@pytest.fixture
async def tenant(people: People, rival: Rival) -> Tenant:
    """Olga's organisation, with somebody of every role, and one of a stranger's own beside it."""
    tenant = await people.tenant_of(OWNER)
    for subject_id, role in ((ADMIN, "admin"), (MEMBER, "member"), (BILLING, "billing")):
        await tenant.make_member(rival, subject_id, role)
    await people.tenant_of(STRANGER)
    return tenant


def seen_by(people: People, tenant: Tenant, subject_id: str, **claims: Any) -> Tenant:
    return Tenant(people.person(subject_id, **claims), tenant.organization_id, tenant.project_id)


async def attempts(tenant: Tenant, own_subject_id: str) -> dict[str, Answer]:
    """Return the attempts of somebody to gain rights."""
    api, query, key = tenant.api, tenant.query, tenant.key_body()
    own_address = f"{own_subject_id}@example.org"

    async def become(role: Any) -> Answer:
        return await api.put(f"/v1/members/{own_subject_id}", params=query, json={"role": role})

    async def invite(**changes: Any) -> Answer:
        return await api.post("/v1/member-invitations", json=tenant.invitation_body(email=own_address, **changes))

    return {
        "become an owner": await become("owner"),
        "become a platform administrator": await become("svc_platform_admin"),
        "become two things": await become(["member", "owner"]),
        "push the owner down": await api.put(f"/v1/members/{OWNER}", params=query, json={"role": "member"}),
        "throw the owner out": await api.delete(f"/v1/members/{OWNER}", params=query),
        "invite an owner": await invite(role="owner"),
        "invite an administrator": await invite(role="admin"),
        "invite with a role beside it": await invite(roles=["owner"]),
        "a key of every scope": await api.post("/v1/api-keys", json={**key, "scopes": ["*"]}),
        "a key of the platform's": await api.post("/v1/api-keys", json={**key, "scopes": ["platform:write"]}),
        "a key of the whole organisation": await api.post("/v1/api-keys", json={**key, "project_id": None}),
        "read the platform": await api.get("/v1/platform/settings"),
        "change the platform": await api.put(
            "/v1/platform/settings/configuration/smtp_host", json={"value": "mail.example.org"}
        ),
    }


@pytest.mark.parametrize("subject_id", [ADMIN, MEMBER, BILLING, STRANGER])
async def test_nobody_gains_rights_by_themselves(people: People, tenant: Tenant, rival: Rival, subject_id: str) -> None:
    held, made = await rival.rows(HELD), await rival.rows(MADE)
    answers = await attempts(seen_by(people, tenant, subject_id), subject_id)
    assert {name: answer.status for name, answer in answers.items() if answer.status not in {403, 404, 422}} == {}
    assert await rival.rows(HELD) == held
    assert set(await rival.rows(MADE)) == set(made)


async def test_an_owner_owns_one_organisation_and_not_the_platform(tenant: Tenant, rival: Rival) -> None:
    (elsewhere,) = await rival.rows(
        "SELECT organization_id, id FROM projects WHERE organization_id <> %s", tenant.organization_id
    )
    held, owner = await rival.rows(HELD), tenant.api
    for answer in (
        await owner.get("/v1/platform/settings"),
        await owner.put("/v1/platform/settings/configuration/smtp_host", json={"value": "mail.example.org"}),
        await owner.put(f"/v1/members/{OWNER}", params=tenant.query, json={"role": "svc_platform_admin"}),
        await owner.put(f"/v1/members/{OWNER}", params={"organization_id": elsewhere[0]}, json={"role": "owner"}),
        await owner.put(f"/v1/members/{STRANGER}", params=tenant.query, json={"role": "member"}),
        await owner.post("/v1/api-keys", json=tenant.key_body(project_id=elsewhere[1])),
        await owner.post("/v1/api-keys", json=tenant.key_body(organization_id=elsewhere[0])),
    ):
        assert answer.status in {403, 404, 422}, answer.body
    assert await rival.rows(HELD) == held
    assert await rival.rows("SELECT id FROM api_keys") == []


async def test_a_platform_administrator_has_no_role_in_an_organisation(people: People, tenant: Tenant) -> None:
    root = seen_by(people, tenant, "root", realm_access={"roles": ["svc_platform_admin"]})
    assert (await root.api.get("/v1/platform/settings")).status == 200
    answers = await attempts(root, "root")
    opened = {name for name, answer in answers.items() if answer.status == 200}
    assert opened == {"read the platform", "change the platform"}
    assert (await root.api.get("/v1/projects", params=tenant.query)).code == "organization_not_found"


CLAIMS: list[dict[str, Any]] = [
    *({"role": "owner"}, {"roles": ["owner"]}, {"realm_access": {"roles": ["owner", "admin"]}}),
    *({"groups": ["/owners"]}, {"scope": "openid codes:write audience:write"}, {"scopes": ["codes:write"]}),
    *({"organization_id": "…", "organization_role": "owner"}, {"act": {"sub": OWNER}}, {"may_act": {"sub": OWNER}}),
    {"preferred_username": OWNER, "name": OWNER, "uid": OWNER, "user_id": OWNER},
]
HEADERS: list[dict[str, str]] = [
    {"X-User": OWNER, "X-Remote-User": OWNER, "X-Forwarded-User": OWNER, "Remote-User": OWNER},
    {"X-Forwarded-Email": f"{OWNER}@example.org", "X-Auth-Request-Email": f"{OWNER}@example.org"},
    {"X-Role": "owner", "X-Svc-Role": "owner", "X-Svc-Platform-Admin": "true"},
    {"X-Original-URL": "/v1/keys", "X-Rewrite-URL": "/v1/keys"},
    {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"},
    {"Cookie": "session=olga; role=owner"},
    {"X-API-Key": "xak_" + "o" * 43, "Proxy-Authorization": "Bearer xop_" + "o" * 43},
]


async def test_claims_about_roles_in_an_organisation_are_ignored(people: People, tenant: Tenant) -> None:
    """The issuer decides who somebody is, and Core what they may do there."""
    for each in CLAIMS:
        claims = {name: tenant.organization_id if value == "…" else value for name, value in each.items()}
        answer = await seen_by(people, tenant, STRANGER, **claims).api.get("/v1/projects", params=tenant.query)
        assert (answer.status, answer.code) == (404, "organization_not_found"), claims
        key = await seen_by(people, tenant, MEMBER, **claims).api.post("/v1/api-keys", json=tenant.key_body())
        assert (key.status, key.code) == (403, "forbidden"), claims


async def test_no_header_changes_the_caller(people: People, tenant: Tenant) -> None:
    member, stranger = (seen_by(people, tenant, subject_id).api for subject_id in (MEMBER, STRANGER))
    for headers in HEADERS:
        refused = await member.post("/v1/api-keys", json=tenant.key_body(), headers=headers)
        assert (refused.status, refused.code) == (403, "forbidden"), headers
        answer = await stranger.get("/v1/projects", params=tenant.query, headers=headers)
        assert (answer.status, answer.code) == (404, "organization_not_found"), headers
        nobody = await people.api.get("/v1/projects", params=tenant.query, headers=headers)
        assert (nobody.status, nobody.code) == (401, "unauthenticated"), headers

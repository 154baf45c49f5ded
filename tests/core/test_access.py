"""Who may do what: credentials, addresses, roles and tenants, for every operation that there is."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from support.core_client import Answer, Api
from support.core_settings import OPERATOR_TOKEN, core_settings
from support.rival import Rival
from support.running_apps import running_core
from support.tenant import Tenant, make_tenant

from soundmark.core.access.operator import is_loopback
from soundmark.core.access.policy import POLICY, Action
from soundmark.kit.secret import Secret

ROLES = ("owner", "admin", "member", "billing")
COLLEAGUE = "colleague"


@dataclass(frozen=True)
class Given:
    """What an organisation holds that acts name, beside its project and the member `COLLEAGUE`."""

    xr_id: str
    api_key_id: str
    invitation_id: str
    campaign_id: str
    integration_id: str


# Of the issuance that every organisation with content can recover.
RECOVERED_KEY = {"Idempotency-Key": "recovered-by-everybody"}


def recovered(tenant: Tenant) -> dict[str, Any]:
    """The body of that issuance."""
    return tenant.code_body(expires_at="2099-01-01T00:00:00.000Z")


Act = Callable[[Tenant, Given], Awaitable[Answer]]

# One call for each action inside an organisation. A new action must be added here.
ACTS: dict[Action, Act] = {
    "organization.update": lambda tenant, _: tenant.api.call(
        "PATCH", f"/v1/organizations/{quote(tenant.organization_id)}", json={"name": "Radio Südlicht"}
    ),
    "project.update": lambda tenant, _: tenant.api.call(
        "PATCH", f"/v1/projects/{tenant.project_id}", params=tenant.query, json={"name": "Night show"}
    ),
    "project.create": lambda tenant, _: tenant.api.post(
        "/v1/projects", json={"organization_id": tenant.organization_id, "name": "Evening show"}
    ),
    "project.list": lambda tenant, _: tenant.api.get("/v1/projects", params=tenant.query),
    "api_key.create": lambda tenant, _: tenant.api.post("/v1/api-keys", json=tenant.key_body()),
    "api_key.list": lambda tenant, _: tenant.api.get("/v1/api-keys", params=tenant.query),
    "api_key.revoke": lambda tenant, given: tenant.api.post(
        f"/v1/api-keys/{given.api_key_id}/revoke", params=tenant.query
    ),
    "api_key.rotate": lambda tenant, given: tenant.api.post(
        f"/v1/api-keys/{given.api_key_id}/secret", params=tenant.query
    ),
    "member.list": lambda tenant, _: tenant.api.get("/v1/members", params=tenant.query),
    "member.update": lambda tenant, _: tenant.api.call(
        "PUT", f"/v1/members/{COLLEAGUE}", params=tenant.query, json={"role": "billing"}
    ),
    "member.remove": lambda tenant, _: tenant.api.call("DELETE", f"/v1/members/{COLLEAGUE}", params=tenant.query),
    "invitation.create": lambda tenant, _: tenant.api.post("/v1/member-invitations", json=tenant.invitation_body()),
    "invitation.list": lambda tenant, _: tenant.api.get("/v1/member-invitations", params=tenant.query),
    "invitation.revoke": lambda tenant, given: tenant.api.post(
        f"/v1/member-invitations/{given.invitation_id}/revoke", params=tenant.query
    ),
    "audit_log.read": lambda tenant, _: tenant.api.get("/v1/audit-log", params=tenant.query),
    "audit_log.verify": lambda tenant, _: tenant.api.get("/v1/audit-log/verification", params=tenant.query),
    "campaign.create": lambda tenant, _: tenant.api.post("/v1/campaigns", json=tenant.campaign_body(name="Tomorrow")),
    "campaign.list": lambda tenant, _: tenant.api.get(
        "/v1/campaigns", params={**tenant.query, "project_id": tenant.project_id}
    ),
    "campaign.update": lambda tenant, given: tenant.api.patch(
        f"/v1/campaigns/{given.campaign_id}", params=tenant.query, json={"name": "Tomorrow"}
    ),
    "campaign.archive": lambda tenant, given: tenant.api.post(
        f"/v1/campaigns/{given.campaign_id}/archive", params=tenant.query
    ),
    "campaign.stop": lambda tenant, given: tenant.api.post(
        f"/v1/campaigns/{given.campaign_id}/stop", params=tenant.query
    ),
    "campaign.summarise": lambda tenant, given: tenant.api.get(
        f"/v1/campaigns/{given.campaign_id}/summary", params=tenant.query
    ),
    "code.issue": lambda tenant, _: tenant.api.post("/v1/codes", json=tenant.code_body()),
    "code.recover": lambda tenant, _: tenant.api.post(
        "/v1/codes/recover", json=recovered(tenant), headers=RECOVERED_KEY
    ),
    "code.list": lambda tenant, _: tenant.api.get("/v1/codes", params=tenant.query),
    "code.read": lambda tenant, given: tenant.api.get(f"/v1/codes/{given.xr_id}", params=tenant.query),
    "code.revoke": lambda tenant, given: tenant.api.post(f"/v1/codes/{given.xr_id}/revoke", params=tenant.query),
    "code.revoke_batch": lambda tenant, given: tenant.api.post(
        "/v1/codes/revoke-batch",
        params=tenant.query,
        json={"project_id": tenant.project_id, "xr_ids": [given.xr_id]},
    ),
    "code.render": lambda tenant, given: tenant.api.get(f"/v1/codes/{given.xr_id}/audio", params=tenant.query),
    "audience.create": lambda tenant, _: tenant.api.post("/v1/audience/integrations", json=tenant.integration_body()),
    "audience.list": lambda tenant, _: tenant.api.get("/v1/audience/integrations", params=tenant.in_project),
    "audience.revoke": lambda tenant, given: tenant.change_integration("revoke", given.integration_id),
    "audience.rotate_secret": lambda tenant, given: tenant.change_integration("secret", given.integration_id),
    "audience.change_retention": lambda tenant, given: tenant.change_integration(
        "retention", given.integration_id, json={"retention_days": 7}
    ),
    "audience.replace_core_key": lambda tenant, given: tenant.change_integration("core-key", given.integration_id),
    "audience.report": lambda tenant, given: tenant.api.get(
        f"/v1/audience/reports/{given.integration_id}", params=tenant.in_project
    ),
    "audience.legacy_report": lambda tenant, _: tenant.api.get("/v1/audience/legacy-report", params=tenant.in_project),
    "usage.read": lambda tenant, _: tenant.api.get("/v1/usage", params=tenant.query),
}

# Contract, section 2, written down a second time on purpose.
ALLOWED: dict[Action, set[str]] = {
    "organization.update": {"owner", "admin"},
    "project.update": {"owner", "admin"},
    "project.create": {"owner", "admin"},
    "project.list": {"owner", "admin", "member", "billing"},
    "api_key.create": {"owner", "admin"},
    "api_key.list": {"owner", "admin"},
    "api_key.revoke": {"owner", "admin"},
    "api_key.rotate": {"owner", "admin"},
    "member.list": {"owner", "admin"},
    "member.update": {"owner", "admin"},
    "member.remove": {"owner", "admin"},  # Others than oneself.
    "invitation.create": {"owner", "admin"},
    "invitation.list": {"owner", "admin"},
    "invitation.revoke": {"owner", "admin"},
    "audit_log.read": {"owner", "admin"},
    "audit_log.verify": {"owner", "admin"},
    "campaign.create": {"owner", "admin"},
    "campaign.list": {"owner", "admin", "member", "billing"},
    "campaign.update": {"owner", "admin"},
    "campaign.archive": {"owner", "admin"},
    "campaign.stop": {"owner", "admin"},
    "campaign.summarise": {"owner", "admin", "member"},
    "code.issue": {"owner", "admin"},
    "code.recover": {"owner", "admin"},
    "code.list": {"owner", "admin", "member"},
    "code.read": {"owner", "admin", "member"},
    "code.revoke": {"owner", "admin"},
    "code.revoke_batch": {"owner", "admin"},
    "code.render": {"owner", "admin", "member"},
    "audience.create": {"owner", "admin"},
    "audience.list": {"owner", "admin", "member"},
    "audience.revoke": {"owner", "admin"},
    "audience.rotate_secret": {"owner", "admin"},
    "audience.change_retention": {"owner", "admin"},
    "audience.replace_core_key": {"owner", "admin"},
    "audience.report": {"owner", "admin", "member"},
    "audience.legacy_report": {"owner", "admin", "member"},
    "usage.read": {"owner", "admin", "member", "billing"},
}


# Operations that need no caller. An event is judged by its publisher's signature (contract, section 6).
PUBLIC = {"resolve", "list_keys", "list_key_history", "deliver_event"}


def test_every_action_is_held_to_the_table() -> None:
    inside = {action for action, rule in POLICY.items() if rule.roles is not None}
    assert inside == set(ACTS) == set(ALLOWED)
    assert set(POLICY) - inside == {
        "caller.read",
        "invitation.accept",
        "organization.create",
        "organization.list",
        "platform.read",
        "platform.change",
    }


def test_every_operation_names_its_action(published: dict[str, Any]) -> None:
    named = [
        operation["x-svc-access"].get("action") for path in published["paths"].values() for operation in path.values()
    ]
    assert {action for action in named if action is not None} == set(POLICY)
    assert named.count(None) == len(PUBLIC), "resolution, the keys and signed events are public"


@pytest.fixture
async def published(api: Api) -> dict[str, Any]:
    """The OpenAPI document."""
    return dict((await api.published()).document)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", ACTS)
async def test_a_role_may_do_what_the_table_says(api: Api, rival: Rival, action: Action, role: str) -> None:
    tenant = await make_tenant(api)
    given = await make_content(tenant, rival)
    await rival.run("UPDATE members SET role = %s WHERE subject_id = 'operator'", role)
    answer = await ACTS[action](tenant, given)
    if role in ALLOWED[action]:
        assert answer.status in {200, 201, 204}
    else:
        assert (answer.status, answer.code) == (403, "forbidden")


@pytest.mark.parametrize("action", ACTS)
async def test_a_role_in_one_organisation_is_none_in_another(api: Api, rival: Rival, action: Action) -> None:
    """Another's organisation and none at all are answered alike, byte for byte."""
    own, foreign = await make_tenant(api), await make_tenant(api)
    given = await make_content(foreign, rival)
    others = "UPDATE members SET subject_id = 'other' WHERE organization_id = %s AND subject_id = 'operator'"
    await rival.run(others, foreign.organization_id)
    same_id = {"X-Request-Id": "same"}
    as_foreign = await ACTS[action](Tenant(_with(api, same_id), foreign.organization_id, foreign.project_id), given)
    unknown = "org_" + "A" * 22
    as_unknown = await ACTS[action](Tenant(_with(api, same_id), unknown, own.project_id), given)
    assert (as_foreign.status, as_foreign.code) == (404, "organization_not_found")
    assert (as_unknown.status, as_unknown.body) == (as_foreign.status, as_foreign.body)


@pytest.mark.parametrize("organization_id", ["", "x", "org_", "org_\0", "org_ü", "prj_" + "A" * 22, "org_" + "A" * 150])
@pytest.mark.parametrize("action", ACTS)
async def test_what_is_no_organisation_is_not_found(api: Api, action: Action, organization_id: str) -> None:
    tenant = await make_tenant(api)
    given = Given(
        xr_id="xr_" + "A" * 22,
        api_key_id="key_" + "A" * 22,
        invitation_id="inv_" + "A" * 22,
        campaign_id="cmp_" + "A" * 22,
        integration_id="int_" + "A" * 22,
    )
    answer = await ACTS[action](Tenant(api, organization_id, tenant.project_id), given)
    # A path that ends before the id is another path.
    is_path = action != "organization.update" or organization_id
    assert (answer.status, answer.code) == (404, "organization_not_found" if is_path else "not_found")


@pytest.mark.parametrize("action", [action for action in ACTS if action.startswith("code.")])
async def test_a_code_of_another_organisation_is_not_there(api: Api, rival: Rival, action: Action) -> None:
    """Both organisations are the caller's own: what separates them is the question, not the membership."""
    one, other = await make_tenant(api), await make_tenant(api)
    given = await make_content(other, rival)
    if action == "code.recover":
        answer = await ACTS[action](one, given)
        assert (answer.status, answer.code) == (404, "code_issue_not_found")
    elif action == "code.issue":
        answer = await api.post("/v1/codes", json=one.code_body(project_id=other.project_id))
        assert (answer.status, answer.code) == (404, "project_not_found")
    elif action == "code.list":
        assert (await ACTS[action](one, given)).json["data"] == []
    else:
        answer = await ACTS[action](one, given)
        assert (answer.status, answer.code) == (404, "code_not_found")
        assert await status_of(other, given.xr_id) == "active"


@pytest.mark.parametrize("action", [action for action in ACTS if action.startswith("campaign.")])
async def test_a_campaign_of_another_organisation_is_not_there(api: Api, rival: Rival, action: Action) -> None:
    """Both organisations are the caller's own."""
    one, other = await make_tenant(api), await make_tenant(api)
    given = await make_content(other, rival)
    if action in {"campaign.create", "campaign.list"}:
        answer = await ACTS[action](Tenant(api, one.organization_id, other.project_id), given)
        assert (answer.status, answer.code) == (404, "project_not_found")
    else:
        answer = await ACTS[action](one, given)
        assert (answer.status, answer.code) == (404, "campaign_not_found")
    listed = await api.get("/v1/campaigns", params={**other.query, "project_id": other.project_id})
    assert [(each["name"], each["status"]) for each in listed.json["data"]] == [("Tonight", "active")]


NAMED_IN_PLACES: dict[str, str] = {
    "project.update": "project_not_found",
    "api_key.create": "project_not_found",
    "api_key.revoke": "api_key_not_found",
    "api_key.rotate": "api_key_not_found",
    "invitation.revoke": "invitation_not_found",
    "member.update": "member_not_found",
    "member.remove": "member_not_found",
    "audience.create": "project_not_found",
    "audience.revoke": "integration_not_found",
    "audience.rotate_secret": "integration_not_found",
    "audience.change_retention": "integration_not_found",
    "audience.replace_core_key": "integration_not_found",
    "audience.report": "integration_not_found",
    "audience.legacy_report": "project_not_found",
}


@pytest.mark.parametrize("action", sorted(NAMED_IN_PLACES))
async def test_an_id_of_another_organisation_is_not_there(api: Api, rival: Rival, action: Action) -> None:
    """Both organisations are the caller's own; the project is the right one, and then that of the other one too."""
    one, other = await make_tenant(api), await make_tenant(api)
    given = await make_content(other, rival)
    tables = ("projects", "api_keys", "invitations", "members", "audit_entries")

    async def content() -> list[Any]:
        query = "SELECT * FROM {} WHERE organization_id = %s ORDER BY 2"
        return [await rival.rows(query.format(table), other.organization_id) for table in tables]

    before = await content()
    mixed = Tenant(api, one.organization_id, other.project_id)

    for tenant in (one, mixed):
        if tenant is one and NAMED_IN_PLACES[action] == "project_not_found":
            continue  # Nothing foreign is in it.
        answer = await ACTS[action](tenant, given)
        expected = {NAMED_IN_PLACES[action], "project_not_found"} if tenant is mixed else {NAMED_IN_PLACES[action]}
        assert answer.status == 404
        assert answer.code in expected
    assert await content() == before


async def make_content(tenant: Tenant, rival: Rival) -> Given:
    """Something of everything in the organisation."""
    issued = await tenant.api.post("/v1/codes", json=recovered(tenant), headers=RECOVERED_KEY)
    assert issued.status == 201, issued.body
    code, key = issued.json, await tenant.make_key()
    await tenant.make_member(rival, COLLEAGUE, "member")
    invitation = await tenant.make_invitation()
    campaign = await tenant.make_campaign()
    integration = await tenant.make_integration()
    return Given(code["xr_id"], key["id"], invitation["id"], campaign["id"], integration["id"])


async def status_of(tenant: Tenant, xr_id: str) -> str:
    answer = await tenant.api.get(f"/v1/codes/{xr_id}", params=tenant.query)
    return str(answer.json["status"])


def _with(api: Api, headers: dict[str, str]) -> Api:
    """The same caller, who adds these headers to everything."""
    other = api.other()
    other._client.headers.update(headers)
    return other


BAD_CREDENTIALS: list[list[tuple[str, str]]] = [
    [],
    [("Authorization", "")],
    [("Authorization", "Bearer")],
    [("Authorization", "Bearer ")],
    [("Authorization", OPERATOR_TOKEN)],
    [("Authorization", f"Basic {OPERATOR_TOKEN}")],
    [("Authorization", f"Bearer  {OPERATOR_TOKEN}")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN} ,")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN}x")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN[:-1]}")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN.upper()}")],
    [("Authorization", "Bearer xop_")],
    [("Authorization", "Bearer xop_" + "p" * 43)],
    [("Authorization", "Bearer xak_" + "o" * 43)],
    [("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")],
    [("Authorization", "Bearer xop_" + "o" * 20_000)],
    [("Authorization", f"Bearer {OPERATOR_TOKEN}"), ("Authorization", f"Bearer {OPERATOR_TOKEN}")],
    [("Authorization", f"Bearer {OPERATOR_TOKEN}"), ("Authorization", "Bearer x")],
]


@pytest.mark.parametrize("headers", BAD_CREDENTIALS, ids=lambda headers: str(headers)[:60])
async def test_another_credential_is_none(api: Api, headers: list[tuple[str, str]]) -> None:
    answer = await api.other(token=None).get("/v1/organizations", headers=headers)
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert OPERATOR_TOKEN not in answer.body.decode()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_name_of_the_scheme_has_no_case(api: Api, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {OPERATOR_TOKEN}"}
    assert (await api.get("/v1/organizations", headers=headers)).status == 200


async def test_every_operation_but_the_public_ones_needs_a_credential(api: Api, published: dict[str, Any]) -> None:
    """Before anything else: a stranger learns nothing about paths, parameters and bodies."""
    stranger = api.other(token=None)
    public = []
    for template, operations in published["paths"].items():
        for method, operation in operations.items():
            path = re.sub(r"{\w+}", "xr_1", template)
            answer = await stranger.call(method.upper(), path, content=b"{")
            if operation["x-svc-access"]["public"]:
                public.append(operation["operationId"])
                assert answer.status != 401
            else:
                assert (answer.status, answer.code) == (401, "unauthenticated"), operation["operationId"]
    assert set(public) == PUBLIC


@pytest.mark.parametrize("peer", ["203.0.113.9", "10.0.0.1", "::", "::ffff:10.0.0.1", "2001:db8::1", "testclient", ""])
async def test_the_operator_token_is_nothing_from_elsewhere(api: Api, peer: str) -> None:
    """Not even with a header that claims to come from here."""
    forwarded = {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1"}
    answer = await api.other(peer=peer).get("/v1/organizations", headers=forwarded)
    assert (answer.status, answer.code) == (401, "unauthenticated")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
async def test_the_operator_token_works_from_this_machine(api: Api, peer: str) -> None:
    """Whatever a forwarded header says: it is never judged by one."""
    answer = await api.other(peer=peer).get("/v1/organizations", headers={"X-Forwarded-For": "203.0.113.9"})
    assert answer.status == 200


@pytest.mark.parametrize("peer", ["localhost", "127.0.0.1:80", "127.1", "0x7f.0.0.1", "", "unix:"])
def test_what_is_no_address_is_not_this_machine(peer: str) -> None:
    assert not is_loopback(peer)


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.9.9.9"])
async def test_the_operator_token_is_nothing_through_a_proxy_that_is_named(database_url: Secret, peer: str) -> None:
    """A proxy on this machine is a loopback peer, and whoever sent the request may be anywhere."""
    elsewhere = {"X-Forwarded-For": "203.0.113.9"}
    async with running_core(core_settings(database_url, trusted_proxies="127.0.0.0/8,::1/128")) as api:
        for headers in (elsewhere, {"Forwarded": "for=203.0.113.9"}, {"X-Forwarded-For": "127.0.0.1"}, {}):
            answer = await api.other(peer=peer).get("/v1/organizations", headers=headers)
            assert (answer.status, answer.code) == (401, "unauthenticated")


async def test_the_operator_token_works_beside_a_proxy_that_is_another_address(database_url: Secret) -> None:
    async with running_core(core_settings(database_url, trusted_proxies="127.0.0.2/32,10.0.0.0/8")) as api:
        assert (await api.get("/v1/organizations")).status == 200
        assert (await api.other(peer="127.0.0.2").get("/v1/organizations")).status == 401
        assert (await api.other(peer="10.0.0.1").get("/v1/organizations")).status == 401


async def test_a_core_without_an_operator_token_knows_no_caller(database_url: Secret) -> None:
    async with running_core(core_settings(database_url, operator_token=None)) as api:
        assert (await api.get("/v1/organizations")).status == 401


async def test_the_operator_is_a_user_like_any_other(api: Api, rival: Rival) -> None:
    """Contract, section 2: platform administration opens no organisation."""
    tenant = await make_tenant(api)
    rows = await rival.rows("SELECT subject_id, email, role FROM members")
    assert rows == [("operator", "operator@localhost", "owner")]
    await rival.run("DELETE FROM members")
    assert (await api.get("/v1/projects", params=tenant.query)).code == "organization_not_found"
    assert (await api.get("/v1/organizations")).json["data"] == []

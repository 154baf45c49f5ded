"""Every operation as every kind of caller. One that is not in the table here fails the suite."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, get_args

import httpx2
import pytest
from fastapi.routing import iter_route_contexts
from support.core_client import Answer
from support.core_settings import OPERATOR_TOKEN
from support.oidc_issuer import make_issuer_key as issuer_key
from support.operations import Operation, list_operations
from support.people import People
from support.rival import Rival
from support.tenant import Tenant

from soundmark.core.domain.scope import KeyScope, Role
from soundmark.kit.cross_origin import CrossOrigin
from soundmark.kit.http import Edge

OPERATIONS = {operation.id: operation for operation in list_operations()}
ROLES: tuple[Role, ...] = get_args(Role)
KEY_SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)
PASSWORD_ONLY = {"acr": "1"}


@dataclass(frozen=True)
class Caller:
    """Somebody who asks, and what is true of them in the organisation that they ask about."""

    name: str
    credential: str | None = field(repr=False)
    refused: str | None = None  # The problem that the credential alone causes.
    subject_id: str = "nobody"
    role: Role | None = None
    has_mfa: bool = False
    is_platform_admin: bool = False
    key_of: str | None = None  # This project, another project, or another organisation.
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class World:
    """An organisation with members of every role and two projects, and a second one of somebody else."""

    people: People
    rival: Rival
    tenant: Tenant
    elsewhere: Tenant

    async def member(self, subject_id: str, role: Role) -> str:
        """Somebody who has this role from now on, whatever was before."""
        await self.rival.run(
            "DELETE FROM members WHERE organization_id = %s AND subject_id = %s",
            self.tenant.organization_id,
            subject_id,
        )
        await self.tenant.make_member(self.rival, subject_id, role)
        return subject_id


@dataclass(frozen=True)
class Request:
    """A call that succeeds for whoever may make it. `path` are the values of the path's parameters."""

    path: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


def anything(**request: Any) -> "Prepare":
    """Nothing has to be there for it."""

    async def prepare(_: World, __: Caller) -> Request:
        return Request(**request)

    return prepare


async def in_tenant(world: World, _: Caller) -> Request:
    return Request(params=world.tenant.query)


async def the_organization(world: World, _: Caller) -> Request:
    return Request(path={"organization_id": world.tenant.organization_id}, json={"name": "Radio Südlicht"})


async def a_project(world: World, _: Caller) -> Request:
    projects = await world.rival.rows("SELECT count(*) FROM projects")
    name = f"Show {projects[0][0]}"
    return Request(json={"organization_id": world.tenant.organization_id, "name": name})


async def the_project(world: World, _: Caller) -> Request:
    return Request(path={"project_id": world.tenant.project_id}, params=world.tenant.query, json={"name": "Night show"})


async def a_new_campaign(world: World, _: Caller) -> Request:
    return Request(json=world.tenant.campaign_body(name=await a_free_name(world)))


async def a_campaign(world: World, _: Caller) -> Request:
    campaign = await world.tenant.make_campaign(await a_free_name(world))
    return Request(path={"campaign_id": campaign["id"]}, params=world.tenant.query)


async def a_changed_campaign(world: World, caller: Caller) -> Request:
    request = await a_campaign(world, caller)
    return Request(request.path, request.params, {"ends_at": "2099-01-01T00:00:00.000Z"})


async def a_free_name(world: World) -> str:
    campaigns = await world.rival.rows("SELECT count(*) FROM campaigns")
    return f"Campaign {campaigns[0][0]}"


async def in_project(world: World, _: Caller) -> Request:
    return Request(params={**world.tenant.query, "project_id": world.tenant.project_id})


async def a_new_code(world: World, _: Caller) -> Request:
    return Request(json=world.tenant.code_body())


async def new_codes(world: World, _: Caller) -> Request:
    return Request(json={**world.tenant.code_body(), "count": 2})


async def a_recovered_code(world: World, _: Caller) -> Request:
    return await _issued(world, "/v1/codes", world.tenant.code_body())


async def recovered_codes(world: World, _: Caller) -> Request:
    return await _issued(world, "/v1/codes/batch", {**world.tenant.code_body(), "count": 2})


async def _issued(world: World, path: str, body: dict[str, Any]) -> Request:
    receipts = await world.rival.rows("SELECT count(*) FROM issuance_receipts")
    headers = {"Idempotency-Key": f"issuance-of-the-sweep-{receipts[0][0]}"}
    answer = await world.tenant.api.post(path, json=body, headers=headers)
    assert answer.status == 201, answer.body
    return Request(json=body, headers=headers)


async def a_code(world: World, _: Caller) -> Request:
    code = await world.tenant.make_code()
    return Request(path={"xr_id": code["xr_id"]}, params=world.tenant.query)


async def a_selection(world: World, _: Caller) -> Request:
    code = await world.tenant.make_code()
    body = {"project_id": world.tenant.project_id, "xr_ids": [code["xr_id"]]}
    return Request(params=world.tenant.query, json=body)


async def a_selection_to_hear(world: World, _: Caller) -> Request:
    code = await world.tenant.make_code()
    params = {**world.tenant.query, "project_id": world.tenant.project_id}
    return Request(params=params, json={"xr_ids": [code["xr_id"]]})


async def a_token(world: World, _: Caller) -> Request:
    code = await world.tenant.make_code()
    return Request(path={"broadcast_token": code["broadcast_token"]})


async def a_new_integration(world: World, _: Caller) -> Request:
    return Request(json=world.tenant.integration_body())


async def an_integration(world: World, _: Caller) -> Request:
    integration = await world.tenant.make_integration()
    path = {"integration_id": integration["id"]}
    return Request(path=path, params=world.tenant.in_project, json={"retention_days": 7})


async def an_event(world: World, _: Caller) -> Request:
    """Of its publisher, who signs it; whoever else hands it on needs no credential."""
    tenant = world.tenant
    integration = await tenant.make_integration()
    measured = {"enabled": True, "integration_id": integration["id"]}
    code = await tenant.make_code(audience=measured)
    resolution = (await tenant.api.resolve(code["broadcast_token"])).json
    event = {
        "event_id": "evt_" + code["xr_id"][-22:],
        "integration_id": integration["id"],
        "xr_id": code["xr_id"],
        "occurred_at": resolution["measurement_proof"]["issued_at"],
        "receiver_class": "phone",
        "measurement_token": "mt_" + "A" * 43,
        "proof": resolution["measurement_proof"],
    }
    content = httpx2.Request("POST", "http://core.test", json=event).content
    signature = hmac.new(integration["hmac_secret"].encode(), content, hashlib.sha256).hexdigest()
    return Request(json=event, headers={"X-Svc-Signature": f"sha256={signature}"})


async def a_report(world: World, _: Caller) -> Request:
    integration = await world.tenant.make_integration()
    return Request(path={"integration_id": integration["id"]}, params=world.tenant.in_project)


async def a_new_key(world: World, _: Caller) -> Request:
    return Request(json=world.tenant.key_body())


async def a_key(world: World, _: Caller) -> Request:
    key = await world.tenant.make_key()
    return Request(path={"api_key_id": key["id"]}, params=world.tenant.query)


async def a_changed_member(world: World, _: Caller) -> Request:
    subject_id = await world.member("changed", "member")
    return Request(path={"subject_id": subject_id}, params=world.tenant.query, json={"role": "billing"})


async def a_leaving_member(world: World, caller: Caller) -> Request:
    """Who may not remove others leaves."""
    if caller.role in {"member", "billing"}:
        subject_id = await world.member(caller.subject_id, caller.role)
    else:
        subject_id = await world.member("leaving", "member")
    return Request(path={"subject_id": subject_id}, params=world.tenant.query)


async def a_new_invitation(world: World, caller: Caller) -> Request:
    return Request(json=world.tenant.invitation_body(email=f"{caller.subject_id}-friend@example.org"))


async def an_invitation(world: World, _: Caller) -> Request:
    invitation = await world.tenant.make_invitation()
    return Request(path={"invitation_id": invitation["id"]}, params=world.tenant.query)


async def an_invitation_elsewhere(world: World, caller: Caller) -> Request:
    """For the caller's own address, to an organisation that they are not in."""
    host = await world.people.tenant_of("host")
    invitation = await host.make_invitation(email=f"{caller.subject_id}@example.org")
    return Request(json={"token": invitation["secret"]})


Prepare = Callable[[World, Caller], Awaitable[Request]]

# One for each operation, by its id: how to call it so that it succeeds for whoever may.
CALLS: dict[str, Prepare] = {
    "accept_invitation": an_invitation_elsewhere,
    "bundle_codes": a_selection_to_hear,
    "archive_campaign": a_campaign,
    "change_integration_retention": an_integration,
    "change_member": a_changed_member,
    "create_api_key": a_new_key,
    "create_campaign": a_new_campaign,
    "create_integration": a_new_integration,
    "create_invitation": a_new_invitation,
    "create_organization": anything(json={"name": "Radio Westwind"}),
    "create_project": a_project,
    "deliver_event": an_event,
    "get_caller": anything(),
    "get_code": a_code,
    "get_platform_settings": anything(),
    "get_usage": in_tenant,
    "issue_code": a_new_code,
    "issue_codes": new_codes,
    "list_api_keys": in_tenant,
    "list_audit_entries": in_tenant,
    "list_campaigns": in_project,
    "list_codes": in_tenant,
    "list_integrations": in_project,
    "list_invitations": in_tenant,
    "list_keys": anything(),
    "list_key_history": anything(),
    "list_members": in_tenant,
    "list_organizations": anything(),
    "list_projects": in_tenant,
    # Null changes nothing: the Core under test is everybody's.
    "put_platform_configuration": anything(path={"name": "smtp_host"}, json={"value": None}),
    "put_platform_secret": anything(path={"name": "smtp_password"}, json={"value": "a secret of the sweep"}),
    "read_audience_report": a_report,
    "read_legacy_report": in_project,
    "recover_code": a_recovered_code,
    "recover_codes": recovered_codes,
    "remove_member": a_leaving_member,
    "rename_organization": the_organization,
    "rename_project": the_project,
    "replace_integration_core_key": an_integration,
    "revoke_integration": an_integration,
    "rotate_integration_secret": an_integration,
    "render_code": a_code,
    "resolve": a_token,
    "revoke_api_key": a_key,
    "revoke_code": a_code,
    "revoke_codes": a_selection,
    "revoke_invitation": an_invitation,
    "rotate_api_key_secret": a_key,
    "stop_campaign": a_campaign,
    "summarise_campaign": a_campaign,
    "update_campaign": a_changed_campaign,
    "verify_audit_log": in_tenant,
}

# What a key of another project of the organisation is told; it is shown an empty list where it may ask for one.
TO_ANOTHER_PROJECT: dict[str, str | None] = {
    "bundle_codes": "project_not_found",
    "change_integration_retention": "project_not_found",
    "create_integration": "project_not_found",
    "get_code": "code_not_found",
    "list_integrations": "project_not_found",
    "replace_integration_core_key": "project_not_found",
    "revoke_integration": "project_not_found",
    "rotate_integration_secret": "project_not_found",
    "issue_code": "project_not_found",
    "issue_codes": "project_not_found",
    "list_campaigns": "project_not_found",
    "list_codes": None,
    "read_audience_report": "project_not_found",
    "read_legacy_report": "project_not_found",
    "recover_code": "project_not_found",
    "recover_codes": "project_not_found",
    "render_code": "code_not_found",
    "revoke_code": "code_not_found",
    "stop_campaign": "campaign_not_found",
    "summarise_campaign": "campaign_not_found",
    "revoke_codes": "project_not_found",
}


def expected(caller: Caller, operation: Operation) -> str | None:
    """The problem that the caller must be answered; None where the call must succeed.

    Source: contract, sections 1 and 2, as the operation itself publishes them.
    """
    access = operation.access
    if access["public"]:
        return None
    if caller.refused is not None:
        return caller.refused
    if caller.key_of is not None:
        return _expected_of_key(caller, operation)
    if not access["roles"]:
        return _first(
            (access["platform"] and not caller.is_platform_admin, "platform_admin_required"), _mfa(caller, access)
        )
    return _first(
        (caller.role is None, "organization_not_found"),
        (caller.role not in access["roles"], "forbidden"),
        _mfa(caller, access),
    )


def _expected_of_key(caller: Caller, operation: Operation) -> str | None:
    scope, in_tenant = operation.access["key_scope"], bool(operation.access["roles"])
    if not in_tenant:
        return None if "api_key" in operation.access["credentials"] else "user_token_required"
    return _first(
        (caller.key_of == "another organisation", "organization_not_found"),
        (scope is None, "user_token_required"),
        (scope not in caller.scopes, "insufficient_scope"),
        (caller.key_of == "another project", TO_ANOTHER_PROJECT.get(operation.id)),
    )


def _mfa(caller: Caller, access: Mapping[str, Any]) -> tuple[bool, str]:
    return access["mfa"] and not caller.has_mfa, "mfa_required"


def _first(*judgements: tuple[bool, str | None]) -> str | None:
    return next((problem for holds, problem in judgements if holds), None)


async def a_world(people: People, rival: Rival) -> World:
    tenant, elsewhere = await people.tenant_of("owner"), await people.tenant_of("stranger")
    for role in ROLES[1:]:
        await tenant.make_member(rival, role, role)
    await tenant.make_code()
    return World(people, rival, tenant, elsewhere)


def everybody(world: World, keys: list[Caller]) -> list[Caller]:
    """Everybody who could ask."""
    token = world.people.issuer.token
    now = int(world.people.issuer.clock.unix_s())
    none = "unauthenticated"
    return [
        Caller("anonymous", None, none),
        Caller("the operator", OPERATOR_TOKEN, none),
        Caller("an expired token", token("owner", exp=now - 61), none),
        Caller("a token of the future", token("owner", nbf=now + 120), none),
        Caller("a token of another client", token("owner", azp="other"), none),
        Caller("an ID token", token("owner", typ="ID"), none),
        Caller("a token of another issuer", token("owner", iss="https://other.example"), none),
        Caller("a token by another's key", token("owner", by=issuer_key("first", number=1)), none),
        Caller("an unverified address", token("owner", email_verified=False), "email_not_verified"),
        *(Caller(role, token(role), subject_id=role, role=role, has_mfa=True) for role in ROLES),
        *(Caller(f"{role}, password only", token(role, **PASSWORD_ONLY), subject_id=role, role=role) for role in ROLES),
        Caller("a member of another organisation", token("stranger"), subject_id="stranger", has_mfa=True),
        Caller("the same, password only", token("stranger", **PASSWORD_ONLY), subject_id="stranger"),
        *platform_admins(world),
        *keys,
    ]


def platform_admins(world: World) -> list[Caller]:
    """Members of nothing."""
    access = {"realm_access": {"roles": ["svc_platform_admin"]}}
    token = world.people.issuer.token
    facts: dict[str, Any] = {"subject_id": "root", "is_platform_admin": True}
    return [
        Caller("a platform administrator", token("root", **access), has_mfa=True, **facts),
        Caller("the same, password only", token("root", **access, **PASSWORD_ONLY), **facts),
    ]


async def server_keys(world: World, operation: Operation) -> list[Caller]:
    """A key as it should be, and one for each thing that can be wrong with one."""
    tenant, every = world.tenant, frozenset(KEY_SCOPES)
    other_project = await tenant.api.make_project(tenant.organization_id, "Other show")
    too_few = every - {operation.access["key_scope"]}

    async def given(name: str, of: Tenant = tenant, key_of: str = "this project", **facts: Any) -> Caller:
        scopes = facts.pop("scopes", every)
        key = await of.make_key(scopes=sorted(scopes), **facts.pop("body", {}))
        facts = {"refused": None, **facts}
        return Caller(name, key["secret"], key_of=key_of, scopes=scopes, subject_id=key["id"], **facts)

    revoked = await given("a revoked key", refused="unauthenticated")
    await tenant.api.post(f"/v1/api-keys/{revoked.subject_id}/revoke", params=tenant.query)
    rotated = await given("a secret that was replaced", refused="unauthenticated")
    await tenant.api.post(f"/v1/api-keys/{rotated.subject_id}/secret", params=tenant.query)
    expired = await given("an expired key", refused="unauthenticated")
    now = tenant.api.clock.now()
    times = (now - timedelta(days=2), now - timedelta(seconds=1), expired.subject_id)
    await world.rival.run("UPDATE api_keys SET created_at = %s, expires_at = %s WHERE id = %s", *times)
    return [
        await given("a key"),
        await given("a key without the scope", scopes=too_few),
        await given("a key of another project", key_of="another project", body={"project_id": other_project}),
        await given("a key of another organisation", world.elsewhere, "another organisation"),
        revoked,
        rotated,
        expired,
        Caller("a key that never was", "xak_" + "A" * 43, "unauthenticated"),
    ]


async def ask(world: World, caller: Caller, operation: Operation, request: Request, *, query: str = "") -> Answer:
    """`query` is appended to the query string as it is."""
    path = operation.path.format(**request.path)
    options = {"json": request.json} if request.json is not None else {}
    api = world.people.api.other(token=caller.credential, peer="127.0.0.1")
    url = httpx2.URL(path, params=request.params)
    if query:
        url = url.copy_with(query=(url.query + query.encode()).removeprefix(b"&"))
    return await api.call(operation.method, str(url), headers=request.headers, **options)


# What a running Core does in its own time, whoever asks; and that a key was used, which it was.
_ON_ITS_OWN = {"alembic_version", "audit_unsealed", "audit_seals", "audit_heads"}


async def content(rival: Rival) -> list[Any]:
    """Everything that is stored, condensed."""
    names = await rival.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    tables = [name for (name,) in names if name not in _ON_ITS_OWN and not name.startswith("procrastinate_")]
    parts = [
        f"SELECT '{name}', count(*), md5(string_agg(row::text, ',' ORDER BY row::text)) "
        f"FROM (SELECT to_jsonb(t) - 'last_used_at' AS row FROM {name} t) AS rows"
        for name in tables
    ]
    return await rival.rows(" UNION ALL ".join(parts))


@pytest.mark.parametrize("operation_id", OPERATIONS)
async def test_every_caller_gets_what_the_policy_says(people: People, rival: Rival, operation_id: str) -> None:
    operation = OPERATIONS[operation_id]
    assert operation_id in CALLS, f"the sweep does not know how to call `{operation_id}`: add it to CALLS"
    world = await a_world(people, rival)
    callers = everybody(world, await server_keys(world, operation))
    wrong: dict[str, str] = {}
    is_tenants = bool(operation.access["roles"])

    async def judge(caller: Caller, request: Request) -> None:
        answer = await ask(world, caller, operation, request)
        problem = expected(caller, operation)
        seen = f"{answer.status} {'' if answer.status < 400 else answer.code}".strip()
        if problem is None and answer.status >= 300:
            wrong[caller.name] = f"{seen} instead of success"
        elif problem is not None and (answer.status < 400 or answer.code != problem):
            wrong[caller.name] = f"{seen} instead of {problem}"
        elif problem is None and is_tenants and caller.key_of == "another project" and answer.json["data"] != []:
            wrong[caller.name] = "it is shown what is in another project"

    refused = [caller for caller in callers if expected(caller, operation) is not None]
    prepared = [(caller, await CALLS[operation_id](world, caller)) for caller in refused]
    before = await content(rival)
    for caller, request in prepared:
        await judge(caller, request)
    changed = [old[0] for old, new in zip(before, await content(rival), strict=True) if old != new]
    for caller in callers:
        if caller not in refused:
            await judge(caller, await CALLS[operation_id](world, caller))
    assert wrong == {}
    assert changed == [], "who is refused changes nothing"
    assert operation.access["public"] or len(refused) < len(callers), "somebody may do it"


async def test_an_organisation_that_is_not_there_looks_like_one_that_is_somebody_elses(
    people: People, rival: Rival
) -> None:
    """Byte for byte, for each operation inside an organisation."""
    world = await a_world(people, rival)
    stranger = next(caller for caller in everybody(world, []) if caller.subject_id == "stranger")
    unknown = "org_" + "A" * 22
    differing = []
    for operation_id, operation in OPERATIONS.items():
        if operation.access["roles"]:
            there = await CALLS[operation_id](world, stranger)
            nowhere = Request(
                *(_replaced(part, world.tenant.organization_id, unknown) for part in vars(there).values())
            )
            answers = [await ask(world, stranger, operation, request) for request in (there, nowhere)]
            if len({_without_request_id(answer) for answer in answers}) != 1 or answers[0].status != 404:
                differing.append(operation_id)
    assert differing == []


def able(world: World, operation: Operation) -> Caller:
    """Somebody who may do it."""
    if operation.access["public"]:
        return Caller("anonymous", None)
    if operation.access["platform"]:
        return platform_admins(world)[0]
    return Caller("owner", world.people.issuer.token("owner"), subject_id="owner", role="owner", has_mfa=True)


def refusal(answer: Answer) -> tuple[int, str | None, list[tuple[str, str]]]:
    if answer.status < 400:
        return answer.status, None, []
    errors = answer.json.get("errors", ())
    return answer.status, answer.code, [(error["location"], error["pointer"]) for error in errors]


@pytest.mark.parametrize(
    "query", ["&dryrun=true", "&limit=1&limit=2", "&=", "&Organization_id=x"], ids=["unknown", "twice", "", "misspelt"]
)
async def test_a_query_string_that_nobody_understands_does_nothing(people: People, rival: Rival, query: str) -> None:
    """`?dryrun=true` once issued a Code. Every operation, as somebody who may do it."""
    world = await a_world(people, rival)
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        caller = able(world, operation)
        request = await CALLS[operation_id](world, caller)
        before = await content(rival)
        answer = await ask(world, caller, operation, request, query=query)
        names = {part.partition("=")[0] for part in query[1:].split("&")}
        expected = (422, "validation_failed", [("query", f"/{name}") for name in names])
        if refusal(answer) != expected or await content(rival) != before:
            wrong[operation_id] = refusal(answer)
    assert wrong == {}


async def test_who_may_not_is_told_so_before_anything_about_the_query(people: People, rival: Rival) -> None:
    """First the credential, then the tenant, then the parameters."""
    world = await a_world(people, rival)
    stranger = next(caller for caller in everybody(world, []) if caller.subject_id == "stranger")
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        if operation.access["roles"]:
            request = await CALLS[operation_id](world, stranger)
            asked = [await ask(world, who, operation, request, query="&x=1") for who in (Caller("", None), stranger)]
            if [answer.code for answer in asked] != ["unauthenticated", "organization_not_found"]:
                wrong[operation_id] = [answer.code for answer in asked]
    assert wrong == {}


EITHER = {"list_codes", "revoke_code"}  # Contract, section 4: these take the header in the place of the query.


async def test_every_place_that_names_the_organisation_names_the_same(people: People, rival: Rival) -> None:
    """Query and header may always be given inside an organisation; elsewhere one is unknown and the other not read."""
    world = await a_world(people, rival)
    own, other = world.tenant.organization_id, world.elsewhere.organization_id
    wrong: dict[str, Any] = {}
    for operation_id, operation in OPERATIONS.items():
        if operation_id == "deliver_event":
            continue  # What a publisher signs is judged by Audience, after the signature: test_deliver_event.py.
        caller, is_tenants = able(world, operation), bool(operation.access["roles"])
        request = await CALLS[operation_id](world, caller)
        alone = is_tenants and "organization_id" in request.params  # The query names it, and nothing else does.
        before = await content(rival)
        in_query = await ask(world, caller, operation, in_query_too(request, other))
        in_header = await ask(world, caller, operation, in_header_too(request, other)) if is_tenants else None
        seen = [refusal(in_query)[1], refusal(in_header)[2] if in_header is not None else []]
        named = "/organization_id" if operation_id in EITHER else "/X-Svc-Organization-Id"
        expected = [
            "organization_not_found" if alone else "validation_failed",
            [("query" if operation_id in EITHER else "header", named)] if is_tenants else [],
        ]
        if seen != expected or await content(rival) != before:
            wrong[operation_id] = seen
            continue
        everywhere = in_header_too(in_query_too(request, own) if is_tenants else request, own if is_tenants else other)
        answer = await ask(world, caller, operation, everywhere)
        if answer.status >= 300:
            wrong[operation_id] = answer.body
    assert wrong == {}


async def test_without_an_organisation_nothing_inside_one_is_done(people: People, rival: Rival) -> None:
    """The header alone is enough for two operations; where a parameter is missing, what was misspelt is named too."""
    world = await a_world(people, rival)
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        caller = able(world, operation)
        request = await CALLS[operation_id](world, caller)
        if not operation.access["roles"] or "organization_id" not in request.params:
            continue
        bare = {name: value for name, value in request.params.items() if name != "organization_id"}
        with_header = in_header_too(replace(request, params=bare), world.tenant.organization_id)
        none = await ask(world, caller, operation, replace(request, params=bare))
        misspelt = await ask(world, caller, operation, replace(request, params=bare), query="&organisation_id=x")
        header = await ask(world, caller, operation, with_header)
        missing = (422, "validation_failed", [("query", "/organization_id")])
        if refusal(none) != missing or ("query", "/organisation_id") not in refusal(misspelt)[2]:
            wrong[operation_id] = [refusal(none), refusal(misspelt)]
        elif (header.status < 300) if operation_id not in EITHER else refusal(header) == missing:
            wrong[operation_id] = [header.status]
    assert wrong == {}


async def test_head_is_answered_wherever_get_is(people: People, rival: Rival) -> None:
    """With the head of the very answer, but for what tells one request from another."""
    world = await a_world(people, rival)
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        if operation.method == "GET" and operation_id != "resolve":
            caller = able(world, operation)
            request = await CALLS[operation_id](world, caller)
            got = await ask(world, caller, operation, request)
            head = await ask(world, caller, replace(operation, method="HEAD"), request)
            same = {name: value for name, value in got.headers.items() if name != "x-request-id"}
            told = {name: value for name, value in head.headers.items() if name != "x-request-id"}
            if (head.status, told, head.body) != (200, same, b"") or int(told["content-length"]) != len(got.body):
                wrong[operation_id] = (head.status, told, same)
    assert wrong == {}


def in_header_too(request: Request, organization_id: str) -> Request:
    return replace(request, headers={**request.headers, "X-Svc-Organization-Id": organization_id})


def in_query_too(request: Request, organization_id: str) -> Request:
    return replace(request, params={**request.params, "organization_id": organization_id})


def _replaced(part: Any, old: str, new: str) -> Any:
    return {name: new if value == old else value for name, value in part.items()} if part else part


def _without_request_id(answer: Answer) -> str:
    return answer.body.decode().replace(answer.headers["x-request-id"], "")


def test_the_sweep_knows_every_operation_and_no_other() -> None:
    assert sorted(CALLS) == sorted(OPERATIONS), "each operation has its row in CALLS"
    open_to_keys = {name for name, operation in OPERATIONS.items() if operation.access["key_scope"]}
    assert sorted(TO_ANOTHER_PROJECT) == sorted(open_to_keys), "each that keys may call, its row in TO_ANOTHER_PROJECT"


def test_the_running_core_has_no_other_routes(people: People) -> None:
    """Beside the operations there are documents and probes, which everybody may read."""
    parts = [cell.cell_contents for cell in people.api.app.__closure__ or ()]  # type: ignore[attr-defined]  # a function
    (outermost,) = (part for part in parts if isinstance(part, CrossOrigin))
    edge = outermost._app
    assert isinstance(edge, Edge)
    routed = {route.path_format or route.path for route in iter_route_contexts(edge.app.routes)}  # type: ignore[attr-defined]  # FastAPI's
    operations = {operation.path for operation in OPERATIONS.values()}
    documents = {"/", "/docs", "/openapi.json", "/problems/{code}", "/schemas/{name}"}
    assert routed == (operations - {"/v1/resolve/{broadcast_token}"}) | documents | {"/healthz", "/readyz"}

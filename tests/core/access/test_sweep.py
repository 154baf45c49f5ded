"""Every operation as every kind of caller. An operation that `support.api.calls` cannot call fails the suite."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from support.api.callers import ROLES, Caller, find_stranger, list_people, make_server_keys
from support.api.calls import CALLS
from support.api.core_client import Answer
from support.api.operations import Operation
from support.api.world import OPERATIONS, Call, World, send
from support.database.content import read_content
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.features.codes.issuance.shortcut import IssuanceShortcut
from soundmark.kit.http.requests.cross_origin import CrossOrigin
from soundmark.kit.http.requests.edge import HttpEdge
from soundmark.kit.http.requests.limited_path import LimitedPath

# The answer to a key of another project of the organisation; None where it is an empty list.
TO_ANOTHER_PROJECT: dict[str, str | None] = {
    "bundle_codes": "project_not_found",
    "change_integration_retention": "project_not_found",
    "create_integration": "project_not_found",
    "get_code": "code_not_found",
    "issue_code": "project_not_found",
    "issue_codes": "project_not_found",
    "issue_decode_certificate": "code_not_found",
    "get_allowed_hosts": "project_not_found",
    "make_offline_pack": "project_not_found",
    "list_campaigns": "project_not_found",
    "list_codes": None,
    "list_integrations": "project_not_found",
    "read_audience_report": "project_not_found",
    "read_legacy_report": "project_not_found",
    "recover_code": "project_not_found",
    "recover_codes": "project_not_found",
    "rename_integration": "project_not_found",
    "render_code": "code_not_found",
    "replace_integration_core_key": "project_not_found",
    "revoke_code": "code_not_found",
    "revoke_codes": "project_not_found",
    "revoke_integration": "project_not_found",
    "rotate_integration_secret": "project_not_found",
    "stop_campaign": "campaign_not_found",
    "summarise_campaign": "campaign_not_found",
}
NO_ORGANIZATIONS = ["x", "org_", "org_\0", "org_ü", "prj_" + "A" * 22, "org_" + "A" * 150, ""]


def expected_problem(caller: Caller, operation: Operation) -> str | None:
    """Return the code of the problem that the caller must get, None where the call must succeed.

    Source: contract, sections 1 and 2, as the operation publishes them in `x-svc-access`.
    """
    access = operation.access
    if access["public"]:
        return None
    if caller.refused is not None:
        return caller.refused
    if caller.key_of is not None:
        return _expected_problem_of_key(caller, operation)
    if not access["roles"]:
        return _first(
            (access["platform"] and not caller.is_platform_admin, "platform_admin_required"), _mfa(caller, access)
        )
    return _first(
        (caller.role is None, "organization_not_found"),
        (caller.role not in access["roles"], "forbidden"),
        _mfa(caller, access),
    )


def _expected_problem_of_key(caller: Caller, operation: Operation) -> str | None:
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


@pytest.fixture
async def elsewhere(people: People) -> Tenant:
    """An organisation that the person "stranger" owns."""
    return await people.tenant_of("stranger")


@pytest.fixture
async def full_world(world: World) -> World:
    """The world with a member of every role, and a Code."""
    for role in ROLES[1:]:
        await world.tenant.make_member(world.rival, role, role)
    await world.tenant.make_code()
    return world


def test_the_sweep_knows_every_operation_and_no_other() -> None:
    assert sorted(CALLS) == sorted(OPERATIONS), "each operation has its row in CALLS"
    open_to_keys = {name for name, operation in OPERATIONS.items() if operation.access["key_scope"]}
    assert sorted(TO_ANOTHER_PROJECT) == sorted(open_to_keys), "each that keys may call, its row in TO_ANOTHER_PROJECT"


@pytest.mark.parametrize("operation_id", OPERATIONS)
async def test_every_caller_gets_what_the_policy_says(full_world: World, elsewhere: Tenant, operation_id: str) -> None:
    """And refused callers change nothing."""
    world, operation = full_world, OPERATIONS[operation_id]
    callers = [*list_people(world), *await make_server_keys(world, operation, elsewhere)]
    wrong: dict[str, str] = {}

    async def prepare(caller: Caller) -> Call:
        return await CALLS[operation_id](replace(world, caller_id=caller.subject_id, caller_role=caller.role))

    async def judge(caller: Caller, call: Call) -> None:
        answer = await send(caller.api(world), operation, call)
        problem = expected_problem(caller, operation)
        seen = f"{answer.status} {'' if answer.status < 400 else answer.code}".strip()
        is_list_of_another = bool(operation.access["roles"]) and caller.key_of == "another project"
        if problem is None and answer.status >= 300:
            wrong[caller.name] = f"{seen} instead of success"
        elif problem is not None and (answer.status < 400 or answer.code != problem):
            wrong[caller.name] = f"{seen} instead of {problem}"
        elif problem is None and is_list_of_another and answer.json["data"] != []:
            wrong[caller.name] = "sees the content of another project"

    refused = [caller for caller in callers if expected_problem(caller, operation) is not None]
    prepared = [(caller, await prepare(caller)) for caller in refused]
    before = await read_content(world.rival)
    for caller, call in prepared:
        await judge(caller, call)
    changed = [old[0] for old, new in zip(before, await read_content(world.rival), strict=True) if old != new]
    for caller in callers:
        if caller not in refused:
            await judge(caller, await prepare(caller))
    assert wrong == {}
    assert changed == [], "callers that are refused change nothing"
    assert operation.access["public"] or len(refused) < len(callers), "somebody may do it"


@pytest.mark.usefixtures("elsewhere")
async def test_a_missing_organisation_looks_like_somebody_elses(world: World) -> None:
    """The answers are the same bytes, for each operation inside an organisation."""
    stranger, unknown = find_stranger(world), "org_" + "A" * 22
    differing = []
    for operation_id, operation in OPERATIONS.items():
        if operation.access["roles"]:
            there = await CALLS[operation_id](world)
            nowhere = there.replacing(world.tenant.organization_id, unknown)
            answers = [await send(stranger.api(world), operation, call) for call in (there, nowhere)]
            if len({_without_request_id(answer) for answer in answers}) != 1 or answers[0].status != 404:
                differing.append(operation_id)
    assert differing == []


async def test_a_malformed_organisation_id_is_not_found(world: World) -> None:
    """Every operation inside an organisation, as its owner, with each id that no organisation can have."""
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        if operation.access["roles"]:
            call = await CALLS[operation_id](world)
            for organization_id in NO_ORGANIZATIONS:
                malformed = call.replacing(world.tenant.organization_id, organization_id)
                answer = await send(world.tenant.api, operation, malformed)
                # A path that ends before its parameter is another path.
                is_other_path = "organization_id" in call.path and not organization_id
                expected = (404, "not_found" if is_other_path else "organization_not_found")
                if (answer.status, answer.code) != expected:
                    wrong[operation_id, organization_id] = (answer.status, answer.body)
    assert wrong == {}


def _without_request_id(answer: Answer) -> str:
    return answer.body.decode().replace(answer.headers["x-request-id"], "")


def test_the_running_core_has_no_other_routes(people: People) -> None:
    """Besides the operations there are only documents and probes, which everybody may read."""
    parts = [cell.cell_contents for cell in people.api.app.__closure__ or ()]  # type: ignore[attr-defined]  # a function
    (outermost,) = (part for part in parts if isinstance(part, CrossOrigin))
    reporting = outermost._app
    assert isinstance(reporting, CrossOrigin)
    limited = reporting._app
    assert isinstance(limited, LimitedPath)
    edge = limited._app
    assert isinstance(edge, HttpEdge)
    assert isinstance(edge.app, IssuanceShortcut)
    routed = {route.path_format or route.path for route in iter_route_contexts(edge.app._app.routes)}
    operations = {operation.path for operation in OPERATIONS.values()}
    documents = {"/", "/docs", "/openapi.json", "/problems/{code}", "/schemas/{name}"}
    assert routed == (operations - {"/v1/resolve/{broadcast_token}"}) | documents | {"/healthz", "/readyz"}

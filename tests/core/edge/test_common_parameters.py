"""Behaviour that every operation shares: unknown parameters, the ways to name the organisation, and HEAD."""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from support.api.callers import Caller, find_able_caller, find_stranger
from support.api.calls import CALLS
from support.api.core_client import Answer
from support.api.world import OPERATIONS, Call, World, send
from support.database.content import read_content
from support.tenancy.people import People

from soundmark.core.app import bare_app
from soundmark.core.edge.operations import OperationRoute

HEADER = "X-Svc-Organization-Id"
# Contract, section 4: these take the header in place of the query.
EITHER = {"list_codes", "revoke_code"}
# Audience judges what a publisher signs, after the signature: test_deliver_event.py.
SIGNED = {"deliver_event"}
# What providers send may hold anything: contract, section 1.
OPEN = {
    *("receive_card_event", "receive_local_notification", "receive_local_query"),
    *("receive_checkout_notification", "receive_checkout_query", "receive_desk_delivery"),
}


def refusal_of(answer: Answer) -> tuple[int, str | None, list[tuple[str, str]]]:
    """Return the status, the problem's code, and the place of each error."""
    if answer.status < 400:
        return answer.status, None, []
    errors = answer.json.get("errors", ())
    return answer.status, answer.code, [(error["location"], error["pointer"]) for error in errors]


@pytest.mark.parametrize(
    "query", ["&dryrun=true", "&limit=1&limit=2", "&=", "&Organization_id=x"], ids=["unknown", "twice", "", "misspelt"]
)
async def test_an_unknown_parameter_changes_nothing(world: World, query: str) -> None:
    """`?dryrun=true` once issued a Code. This tries every operation, as a caller with the right to it."""
    wrong = {}
    for operation_id in sorted(OPERATIONS.keys() - OPEN):
        operation, call = OPERATIONS[operation_id], await CALLS[operation_id](world)
        before = await read_content(world.rival)
        answer = await send(find_able_caller(world, operation).api(world), operation, call, query=query)
        names = {part.partition("=")[0] for part in query[1:].split("&")}
        expected = (422, "validation_failed", [("query", f"/{name}") for name in names])
        if refusal_of(answer) != expected or await read_content(world.rival) != before:
            wrong[operation_id] = refusal_of(answer)
    assert wrong == {}


async def test_the_caller_is_checked_before_the_query(world: World) -> None:
    """The credential comes first, then the tenant, then the parameters."""
    callers = (Caller("anonymous", None), find_stranger(world))
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        if operation.access["roles"]:
            call = await CALLS[operation_id](world)
            answers = [await send(caller.api(world), operation, call, query="&x=1") for caller in callers]
            if [answer.code for answer in answers] != ["unauthenticated", "organization_not_found"]:
                wrong[operation_id] = [answer.code for answer in answers]
    assert wrong == {}


async def test_query_and_header_must_name_the_same_organisation(people: People, world: World) -> None:
    """Inside an organisation both may always name it; elsewhere the parameter is unknown and the header unread."""
    own, other = world.tenant.organization_id, (await people.tenant_of("stranger")).organization_id
    wrong: dict[str, Any] = {}
    # The deletion of the organisation comes last, because nothing is left for the others.
    for operation_id in sorted(
        OPERATIONS.keys() - SIGNED - OPEN, key=lambda name: (name == "delete_organization", name)
    ):
        operation = OPERATIONS[operation_id]
        api, is_tenants = find_able_caller(world, operation).api(world), bool(operation.access["roles"])
        call = await CALLS[operation_id](world)
        is_alone = is_tenants and "organization_id" in call.params  # Only the query names it.
        before = await read_content(world.rival)
        in_query = await send(api, operation, call.with_query(organization_id=other))
        in_header = await send(api, operation, call.with_headers({HEADER: other})) if is_tenants else None
        seen = [refusal_of(in_query)[1], refusal_of(in_header)[2] if in_header is not None else []]
        place = ("query", "/organization_id") if operation_id in EITHER else ("header", f"/{HEADER}")
        expected = ["organization_not_found" if is_alone else "validation_failed", [place] if is_tenants else []]
        if seen != expected or await read_content(world.rival) != before:
            wrong[operation_id] = seen
            continue
        everywhere = call.with_query(organization_id=own) if is_tenants else call
        answer = await send(api, operation, everywhere.with_headers({HEADER: own if is_tenants else other}))
        if answer.status >= 300:
            wrong[operation_id] = answer.body
    assert wrong == {}


async def test_without_an_organisation_nothing_inside_one_is_done(world: World) -> None:
    """The header alone is enough for two operations; a misspelt parameter is named besides the missing one."""
    missing = (422, "validation_failed", [("query", "/organization_id")])
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        call = await CALLS[operation_id](world)
        if not operation.access["roles"] or "organization_id" not in call.params:
            continue
        bare = _without_organization(call)
        api = find_able_caller(world, operation).api(world)
        none = await send(api, operation, bare)
        misspelt = await send(api, operation, bare, query="&organisation_id=x")
        header = await send(api, operation, bare.with_headers({HEADER: world.tenant.organization_id}))
        if refusal_of(none) != missing or ("query", "/organisation_id") not in refusal_of(misspelt)[2]:
            wrong[operation_id] = [refusal_of(none), refusal_of(misspelt)]
        elif (header.status < 300) if operation_id not in EITHER else refusal_of(header) == missing:
            wrong[operation_id] = [header.status]
    assert wrong == {}


async def test_head_is_answered_wherever_get_is(world: World) -> None:
    """With the head of GET, except for the request id. Of two readers of one address, the second has one less left."""
    world.tenant.api.clock.freeze()  # An archive states when it was made, and its head a digest of that.
    wrong = {}
    for operation_id, operation in OPERATIONS.items():
        if operation.method == "GET" and operation_id != "resolve":
            api = find_able_caller(world, operation).api(world)
            call = await CALLS[operation_id](world)
            for _ in range(5):  # An audit entry may be sealed between the two, and its chain hash be shown.
                got = await send(api, operation, call)
                head = await send(api, replace(operation, method="HEAD"), call)
                expected, seen = _headers_of(got), _headers_of(head)
                if seen == expected:
                    break
            if (head.status, seen, head.body) != (200, expected, b"") or int(seen["content-length"]) != len(got.body):
                wrong[operation_id] = (head.status, seen, expected)
    assert wrong == {}


def _without_organization(call: Call) -> Call:
    return replace(call, params={name: value for name, value in call.params.items() if name != "organization_id"})


def _headers_of(answer: Answer) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in {"x-request-id", "ratelimit"}}


def defaults_in_signatures(dependant: Dependant) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name of each optional parameter with its default for the framework and in the function's signature."""
    assert dependant.call is not None
    signature = inspect.signature(dependant.call)
    for field in (*dependant.query_params, *dependant.header_params):
        if not field.field_info.is_required():
            yield field.name, field.default, signature.parameters[field.name].default
    for dependency in dependant.dependencies:
        yield from defaults_in_signatures(dependency)


def test_the_default_of_each_parameter_is_in_the_signature() -> None:
    """The routes do not ask the framework for parameters that a request lacks (`kit.http.requests.lean_route`)."""
    routes = [route for route in bare_app().routes if isinstance(route, OperationRoute)]
    found = [each for route in routes for each in defaults_in_signatures(route.dependant)]
    assert len(found) > len(routes)
    assert [each for each in found if each[1] != each[2]] == []

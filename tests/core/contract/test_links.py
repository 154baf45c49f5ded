"""The OpenAPI links: they name operations and parameters that exist, and followed for real they lead on."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from golden_files import golden_files
from support.core_client import Answer
from support.people import People
from support.rival import Rival
from support.tenant import Tenant

# Held by test_golden.py to what Core serves.
DOCUMENT: Final[dict[str, Any]] = json.loads(golden_files()["openapi.json"])
OPERATIONS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
LINKED: Final[list[tuple[str, str]]] = [
    (name, status)
    for name, (_, _, operation) in OPERATIONS.items()
    for status, response in operation["responses"].items()
    if "links" in response
]
LINKS: Final = [
    (name, status, link) for name, status in LINKED for link in OPERATIONS[name][2]["responses"][status]["links"]
]
# What ends a thing is followed last: nothing else can be done with it then.
LAST: Final = ("revoke", "archive", "stop", "remove")
# The bodies of operations that take one.
BODIES: Final[Mapping[str, Any]] = {
    "rename_organization": {"name": "Radio Südlicht"},
    "rename_project": {"name": "Night show"},
    "update_campaign": {"name": "Tomorrow"},
    "change_member": {"role": "billing"},
    "change_integration_retention": {"retention_days": 7},
}


@dataclass(frozen=True)
class World:
    """An organisation of a signed-in owner."""

    people: People
    rival: Rival
    tenant: Tenant


@dataclass(frozen=True)
class Exchange:
    """One request to an operation, by the places of its parameters, and its answer."""

    operation: str
    request: Mapping[str, Mapping[str, str]]
    answer: Answer

    def value_of(self, expression: str) -> Any:
        """What a runtime expression stands for; None where the request or the answer has no such thing."""
        where, _, rest = expression.removeprefix("$").partition(".")
        place, _, name = rest.partition("#" if where == "response" else ".")
        if where == "request":
            return self.request[place].get(name)
        assert (where, place) == ("response", "body"), expression
        return resolve_pointer(self.answer.json, name)


@dataclass(frozen=True)
class Ask:
    """What a source operation is sent."""

    body: Any = None
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    header: Mapping[str, str] = field(default_factory=dict)


def resolve_pointer(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901), None where there is none."""
    for step in pointer.split("/")[1:]:
        if isinstance(document, list):
            document = document[int(step)] if int(step) < len(document) else None
        else:
            document = None if document is None else document.get(step)
    return document


def link_of(name: str, status: str, link: str) -> dict[str, Any]:
    found: dict[str, Any] = OPERATIONS[name][2]["responses"][status]["links"][link]
    return found


def parameters_of(name: str) -> dict[str, bool]:
    """Each parameter of an operation as `place.name`, and whether it is required."""
    parameters = OPERATIONS[name][2].get("parameters", ())
    return {f"{each['in']}.{each['name']}": each.get("required", False) for each in parameters}


async def send(world: World, name: str, ask: Ask) -> Exchange:
    method, template, _ = OPERATIONS[name]
    path = template.format(**ask.path)
    body = {} if ask.body is None else {"json": ask.body}
    answer = await world.tenant.api.call(method, path, params=dict(ask.query), headers=dict(ask.header), **body)
    request = {"path": ask.path, "query": ask.query, "header": ask.header}
    return Exchange(name, request, answer)


async def follow(world: World, exchange: Exchange, link: Mapping[str, Any]) -> Exchange:
    target = link["operationId"]
    values = {place: exchange.value_of(expression) for place, expression in link["parameters"].items()}
    given = {place: value for place, value in values.items() if value is not None}
    assert {place for place, is_required in parameters_of(target).items() if is_required} <= given.keys()
    parts: dict[str, dict[str, str]] = {"path": {}, "query": {}, "header": {}}
    for place, value in given.items():
        where, _, name = place.partition(".")
        parts[where][name] = value
    return await send(world, target, Ask(BODIES.get(target), **parts))


@pytest.fixture
async def world(people: People, rival: Rival) -> World:
    return World(people, rival, await people.tenant_of("owner"))


Prepare = Callable[[World], Awaitable[Ask]]


async def an_organization(_: World) -> Ask:
    return Ask({"name": "Radio Westwind"})


async def the_organization(world: World) -> Ask:
    return Ask(BODIES["rename_organization"], path=world.tenant.query)


async def two_organizations(world: World) -> Ask:
    await world.tenant.api.make_organization()
    return Ask(query={"limit": "1"})


async def an_accepted_invitation(world: World) -> Ask:
    host = await world.people.tenant_of("host")
    invitation = await host.make_invitation(email="owner@example.org", role="admin")
    return Ask({"token": invitation["secret"]})


async def a_new_project(world: World) -> Ask:
    return Ask({**world.tenant.query, "name": "Evening show"})


async def the_project(world: World) -> Ask:
    return Ask(BODIES["rename_project"], path={"project_id": world.tenant.project_id}, query=world.tenant.query)


async def two_projects(world: World) -> Ask:
    await world.tenant.api.make_project(world.tenant.organization_id, "Evening show")
    return page(world)


async def two_members(world: World) -> Ask:
    await world.tenant.make_member(world.rival, "ada", "member")
    return page(world)


async def a_member(world: World) -> Ask:
    await world.tenant.make_member(world.rival, "ada", "member")
    return Ask({"role": "admin"}, path={"subject_id": "ada"}, query=world.tenant.query)


async def a_new_invitation(world: World) -> Ask:
    return Ask(world.tenant.invitation_body())


async def two_invitations(world: World) -> Ask:
    for name in ("ada", "bea"):
        await world.tenant.make_invitation(email=f"{name}@example.org")
    return page(world)


async def a_new_key(world: World) -> Ask:
    return Ask(world.tenant.key_body())


async def a_key(world: World) -> Ask:
    key = await world.tenant.make_key()
    return Ask(path={"api_key_id": key["id"]}, query=world.tenant.query)


async def two_keys(world: World) -> Ask:
    for _ in range(2):
        await world.tenant.make_key()
    return page(world, project_id=world.tenant.project_id)


async def some_entries(world: World) -> Ask:
    await world.tenant.make_key()
    return page(world)


async def a_new_campaign(world: World) -> Ask:
    return Ask(world.tenant.campaign_body())


async def a_campaign(world: World) -> Ask:
    campaign = await world.tenant.make_campaign()
    return Ask(path={"campaign_id": campaign["id"]}, query=world.tenant.query)


async def a_changed_campaign(world: World) -> Ask:
    return Ask({"ends_at": None}, path=(await a_campaign(world)).path, query=world.tenant.query)


async def two_campaigns(world: World) -> Ask:
    for name in ("One", "Two"):
        await world.tenant.make_campaign(name)
    return page(world, project_id=world.tenant.project_id)


async def a_new_code(world: World) -> Ask:
    return Ask(world.tenant.code_body())


async def new_codes(world: World) -> Ask:
    return Ask(world.tenant.code_body(count=2))


async def a_recovered_code(world: World) -> Ask:
    return await recovered(world, "issue_code", await a_new_code(world))


async def recovered_codes(world: World) -> Ask:
    return await recovered(world, "issue_codes", await new_codes(world))


async def recovered(world: World, issue: str, ask: Ask) -> Ask:
    keyed = Ask(ask.body, header={"Idempotency-Key": "issuance-of-a-link"})
    assert (await send(world, issue, keyed)).answer.status == 201
    return keyed


async def a_code(world: World) -> Ask:
    return Ask(path={"xr_id": (await world.tenant.make_code())["xr_id"]}, query=world.tenant.query)


async def two_codes(world: World) -> Ask:
    for _ in range(2):
        await world.tenant.make_code()
    return page(world, status="active", issuer="Radio Nordlicht")


async def a_new_integration(world: World) -> Ask:
    return Ask(world.tenant.integration_body())


async def an_integration(world: World) -> Ask:
    integration = await world.tenant.make_integration()
    return Ask(path={"integration_id": integration["id"]}, query=world.tenant.in_project)


async def another_retention(world: World) -> Ask:
    return Ask({"retention_days": 3}, path=(await an_integration(world)).path, query=world.tenant.in_project)


async def two_integrations(world: World) -> Ask:
    for _ in range(2):
        await world.tenant.make_integration()
    return page(world, project_id=world.tenant.project_id)


def page(world: World, **filters: str) -> Ask:
    """The first page of a list, which has another behind it."""
    return Ask(query={**world.tenant.query, "limit": "1", **filters})


# How each operation that has links is called, so that all of them lead somewhere.
SOURCES: Final[Mapping[str, Prepare]] = {
    "accept_invitation": an_accepted_invitation,
    "archive_campaign": a_campaign,
    "change_integration_retention": another_retention,
    "change_member": a_member,
    "create_api_key": a_new_key,
    "create_campaign": a_new_campaign,
    "create_integration": a_new_integration,
    "create_invitation": a_new_invitation,
    "create_organization": an_organization,
    "create_project": a_new_project,
    "get_code": a_code,
    "issue_code": a_new_code,
    "issue_codes": new_codes,
    "list_api_keys": two_keys,
    "list_audit_entries": some_entries,
    "list_campaigns": two_campaigns,
    "list_codes": two_codes,
    "list_integrations": two_integrations,
    "list_invitations": two_invitations,
    "list_members": two_members,
    "list_organizations": two_organizations,
    "list_projects": two_projects,
    "recover_code": a_recovered_code,
    "recover_codes": recovered_codes,
    "rename_organization": the_organization,
    "rename_project": the_project,
    "replace_integration_core_key": an_integration,
    "revoke_code": a_code,
    "revoke_integration": an_integration,
    "rotate_api_key_secret": a_key,
    "rotate_integration_secret": an_integration,
    "stop_campaign": a_campaign,
    "summarise_campaign": a_campaign,
    "update_campaign": a_changed_campaign,
}


@pytest.mark.parametrize(("name", "status"), LINKED)
async def test_every_link_followed_for_real_leads_on(world: World, name: str, status: str) -> None:
    exchange = await send(world, name, await SOURCES[name](world))
    assert exchange.answer.status == int(status), exchange.answer.body
    links = OPERATIONS[name][2]["responses"][status]["links"]
    followed = {}
    for link in sorted(links, key=lambda link: link.startswith(LAST)):
        answer = (await follow(world, exchange, links[link])).answer
        followed[link] = answer.status if answer.status < 300 else answer.body
    assert set(followed.values()) <= {200, 201, 204}, followed


@pytest.mark.parametrize("name", sorted(name for name in OPERATIONS if "query.cursor" in parameters_of(name)))
async def test_the_next_page_goes_on_where_the_page_ends_until_there_is_none(world: World, name: str) -> None:
    """With the same filters, to which a cursor is bound."""
    exchange = await send(world, name, await SOURCES[name](world))
    pages = [exchange.answer.json["data"]]
    link = link_of(name, "200", "next_page")
    while exchange.value_of(link["parameters"]["query.cursor"]) is not None:
        exchange = await follow(world, exchange, link)
        assert exchange.answer.status == 200, exchange.answer.body
        pages.append(exchange.answer.json["data"])
    seen = [json.dumps(entry) for entries in pages for entry in entries]
    assert len(pages) >= 2
    assert len(set(seen)) == len(seen) >= 2


@pytest.mark.parametrize(("name", "status", "link"), LINKS)
def test_a_link_names_what_exists(name: str, status: str, link: str) -> None:
    """Its operation, each parameter with its place, and where each value comes from, which the example shows."""
    described = link_of(name, status, link)
    target = parameters_of(described["operationId"])
    assert set(described["parameters"]) <= set(target)
    assert {place for place, is_required in target.items() if is_required} <= set(described["parameters"])
    example = OPERATIONS[name][2]["responses"][status]["content"]["application/json"]["example"]
    for expression in described["parameters"].values():
        match = re.fullmatch(r"\$request\.(\w+\.[\w-]+)|\$response\.body#((?:/\w+)+)", expression)
        assert match, expression
        if match[1]:
            assert match[1] in parameters_of(name)
        elif match[2] != "/next_cursor":
            assert isinstance(resolve_pointer(example, match[2]), str), expression
    assert described["description"].endswith(".")


def test_whatever_creates_or_lists_says_what_can_follow() -> None:
    creating = {name for name, (_, _, operation) in OPERATIONS.items() if "201" in operation["responses"]}
    # An event is delivered and done with.
    assert creating - {"deliver_event"} == {name for name, status in LINKED if status == "201"}
    listing = {name for name in OPERATIONS if "query.cursor" in parameters_of(name)}
    assert listing == {name for name, _, link in LINKS if link == "next_page"}


def test_every_operation_with_links_is_followed_here() -> None:
    assert {name for name, _ in LINKED} == set(SOURCES)

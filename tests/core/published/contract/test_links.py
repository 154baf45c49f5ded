"""The OpenAPI links name operations and parameters that exist, and work when they are followed."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest
from golden_files import golden_files
from support.api.calls import CALLS
from support.api.core_client import Answer
from support.api.prepared_calls import invite_caller, make_ticket
from support.api.world import OPERATIONS as CALLABLE
from support.api.world import Call, World, send
from support.billing.offers import make_card_subscription

# test_golden.py compares it with what Core serves.
DOCUMENT: Final[dict[str, Any]] = json.loads(golden_files()["openapi.json"])
OPERATIONS: Final[dict[str, dict[str, Any]]] = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}
LINKED: Final[list[tuple[str, str]]] = [
    (name, status)
    for name, operation in OPERATIONS.items()
    for status, response in operation["responses"].items()
    if "links" in response
]
LINKS: Final = [
    (name, status, link) for name, status in LINKED for link in OPERATIONS[name]["responses"][status]["links"]
]
# Links that end a resource are followed last: nothing else can be done with it afterwards.
LAST: Final = ("revoke", "archive", "stop", "remove")


@dataclass(frozen=True)
class Exchange:
    """One call of an operation, and its answer."""

    operation: str
    call: Call
    answer: Answer

    def value_of(self, expression: str) -> Any:
        """Return the value of a runtime expression, None where the request or the response has none."""
        where, _, rest = expression.removeprefix("$").partition(".")
        place, _, name = rest.partition("#" if where == "response" else ".")
        if where == "request":
            return {"path": self.call.path, "query": self.call.params, "header": self.call.headers}[place].get(name)
        assert (where, place) == ("response", "body"), expression
        return resolve_pointer(self.answer.json, name)


def resolve_pointer(document: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer (RFC 6901), or None if nothing is there."""
    for step in pointer.split("/")[1:]:
        if isinstance(document, list):
            document = document[int(step)] if int(step) < len(document) else None
        else:
            document = None if document is None else document.get(step)
    return document


def find_link(name: str, status: str, link: str) -> dict[str, Any]:
    found: dict[str, Any] = OPERATIONS[name]["responses"][status]["links"][link]
    return found


def list_parameters(name: str) -> dict[str, bool]:
    """Return each parameter of an operation as `place.name`, and whether it is required."""
    parameters = OPERATIONS[name].get("parameters", ())
    return {f"{each['in']}.{each['name']}": each.get("required", False) for each in parameters}


async def exchange(world: World, name: str, call: Call) -> Exchange:
    return Exchange(name, call, await send(world.tenant.api, CALLABLE[name], call))


async def start(world: World, name: str) -> Exchange:
    """Call an operation so that each of its links leads on: a list has a second page."""
    if name in FILL:
        await FILL[name](world)
        call = (await CALLS[name](world)).with_query(limit="1", **FILTERS.get(name, {}))
    elif name == "accept_invitation":
        call = await invite_caller(world, role="admin")
    else:
        call = await CALLS[name](world)
    return await exchange(world, name, call)


async def follow(world: World, source: Exchange, link: Mapping[str, Any]) -> Exchange:
    target = link["operationId"]
    values = {place: source.value_of(expression) for place, expression in link["parameters"].items()}
    found = {place: value for place, value in values.items() if value is not None}
    assert {place for place, is_required in list_parameters(target).items() if is_required} <= found.keys()
    parts: dict[str, dict[str, str]] = {"path": {}, "query": {}, "header": {}}
    for place, value in found.items():
        where, _, name = place.partition(".")
        parts[where][name] = value
    body = (await CALLS[target](world)).json if "requestBody" in OPERATIONS[target] else None
    return await exchange(world, target, Call(parts["path"], parts["query"], body, parts["header"]))


async def make_organization(world: World) -> None:
    await world.tenant.api.make_organization()


async def make_project(world: World) -> None:
    await world.tenant.api.make_project(world.tenant.organization_id, "Evening show")


async def make_member(world: World) -> None:
    await world.tenant.make_member(world.rival, "ada", "member")


async def make_invitations(world: World) -> None:
    for name in ("ada", "bea"):
        await world.tenant.make_invitation(email=f"{name}@example.org")


async def make_keys(world: World) -> None:
    for _ in range(2):
        await world.tenant.make_key()


async def make_campaigns(world: World) -> None:
    for name in ("One", "Two"):
        await world.tenant.make_campaign(name)


async def make_codes(world: World) -> None:
    for _ in range(2):
        await world.tenant.make_code()


async def make_integrations(world: World) -> None:
    for _ in range(2):
        await world.tenant.make_integration()


async def make_subscriptions(world: World) -> None:
    for number in "12":
        names = {"id": "bsu_" + number * 22, "provider_reference": f"sub_{number}"}
        await make_card_subscription(world.rival, world.tenant.organization_id, **names)


async def make_endpoints(world: World) -> None:
    for _ in range(2):
        await world.tenant.make_webhook_endpoint()


async def make_tickets(world: World) -> None:
    for _ in range(2):
        await make_ticket(world)


# How each list gets a second entry.
FILL: Final[Mapping[str, Callable[[World], Awaitable[None]]]] = {
    "list_api_keys": make_keys,
    "list_audit_entries": make_keys,
    "list_campaigns": make_campaigns,
    "list_codes": make_codes,
    "list_integrations": make_integrations,
    "list_invitations": make_invitations,
    "list_members": make_member,
    "list_organizations": make_organization,
    "list_projects": make_project,
    "list_subscriptions": make_subscriptions,
    "list_webhook_deliveries": make_endpoints,  # The call itself makes deliveries to one more.
    "list_webhook_endpoints": make_endpoints,
    "list_tickets": make_tickets,
}
# The next page must repeat the filters, to which a cursor is bound.
FILTERS: Final[Mapping[str, Mapping[str, str]]] = {"list_codes": {"status": "active", "issuer": "Radio Nordlicht"}}


@pytest.mark.parametrize(("name", "status"), LINKED)
async def test_every_link_followed_for_real_leads_on(world: World, name: str, status: str) -> None:
    source = await start(world, name)
    assert source.answer.status == int(status), source.answer.body
    links = OPERATIONS[name]["responses"][status]["links"]
    followed = {}
    for link in sorted(links, key=lambda link: link.startswith(LAST)):
        answer = (await follow(world, source, links[link])).answer
        followed[link] = answer.status if answer.status < 300 else answer.body
    assert set(followed.values()) <= {200, 201, 204}, followed


@pytest.mark.parametrize("name", sorted(name for name in OPERATIONS if "query.cursor" in list_parameters(name)))
async def test_the_next_page_continues_where_the_page_ends_until_there_is_none(world: World, name: str) -> None:
    """With the same filters, to which a cursor is bound."""
    source = await start(world, name)
    pages = [source.answer.json["data"]]
    link = find_link(name, "200", "next_page")
    while source.value_of(link["parameters"]["query.cursor"]) is not None:
        source = await follow(world, source, link)
        assert source.answer.status == 200, source.answer.body
        pages.append(source.answer.json["data"])
    seen = [json.dumps(entry) for entries in pages for entry in entries]
    assert len(pages) >= 2
    assert len(set(seen)) == len(seen) >= 2


def test_every_link_names_an_operation_and_parameters_that_exist() -> None:
    """The example of the response has each value that a link takes from it."""
    assert len(LINKS) > 100
    for name, status, link in LINKS:
        check_link(name, find_link(name, status, link), OPERATIONS[name]["responses"][status])


def check_link(name: str, described: dict[str, Any], response: Mapping[str, Any]) -> None:
    target = list_parameters(described["operationId"])
    assert set(described["parameters"]) <= set(target)
    assert {place for place, is_required in target.items() if is_required} <= set(described["parameters"])
    example = response["content"]["application/json"]["example"]
    for expression in described["parameters"].values():
        match = re.fullmatch(r"\$request\.(\w+\.[\w-]+)|\$response\.body#((?:/\w+)+)", expression)
        assert match, expression
        if match[1]:
            assert match[1] in list_parameters(name)
        elif match[2] != "/next_cursor":
            assert isinstance(resolve_pointer(example, match[2]), str), expression
    assert described["description"].endswith(".")


def test_every_operation_that_creates_or_lists_has_links() -> None:
    creating = {name for name, operation in OPERATIONS.items() if "201" in operation["responses"]}
    # Nothing follows a delivered event.
    assert creating - {"deliver_event"} == {name for name, status in LINKED if status == "201"}
    listing = {name for name in OPERATIONS if "query.cursor" in list_parameters(name)}
    assert listing == {name for name, _, link in LINKS if link == "next_page"}

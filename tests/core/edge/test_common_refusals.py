"""Refusals that the operations share: of bodies, names and ids, and of a caller who loses their role meanwhile."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from support.api.callers import find_able_caller
from support.api.calls import CALLS, ROWS
from support.api.core_client import Answer
from support.api.operations import Operation
from support.api.world import OPERATIONS, Call, World, send
from support.database.content import read_content

# Audience judges what a publisher signs, and what providers send may hold anything.
SIGNED: Final = {
    *("deliver_event", "receive_card_event", "receive_checkout_notification", "receive_desk_delivery"),
    "receive_local_notification",
}
# The key of an issuance that is recovered is judged before its body: test_key_precedence.py.
RECOVERING: Final = {"recover_code", "recover_codes"}
NAMED: Final = {
    *("create_campaign", "create_organization", "create_project", "rename_api_key", "rename_integration"),
    *("rename_organization", "rename_project", "update_campaign"),
}
BAD_NAMES: Final = ("", " \t", "x" * 121, "a\0b", "a\nb", "a\x7fb", 1, True, [], {})


def refusal_of(answer: Answer) -> tuple[int, str, list[str]]:
    """Return the status, the problem's code, and the members that the errors name."""
    return answer.status, answer.code, [error["pointer"] for error in answer.json.get("errors", ())]


def list_bodies(call: Call, required: list[str]) -> Iterator[tuple[bytes, tuple[int, str, list[str] | None]]]:
    """Yield bodies that are wrong for a call, each with its refusal; None stands for members that do not matter."""
    for text in (b"", b"{", b'{"a":1,"a":2}', b"\xff", b'{"a":"\\ud800"}', b'{"a":NaN}'):
        yield text, (400, "malformed_json", [])
    for text in (b"[]", b'"x"', b"null", b"1e400"):
        yield text, (422, "validation_failed", None)
    yield json.dumps({**call.json, "surplus": 1}).encode(), (422, "validation_failed", ["/surplus"])
    for member in required:
        rest = {name: value for name, value in call.json.items() if name != member}
        yield json.dumps(rest).encode(), (422, "validation_failed", [f"/{member}"])


def list_required(document: Mapping[str, Any], operation: Operation) -> list[str]:
    """Return the members that the published document requires in the operation's body."""
    body = document["paths"][operation.path][operation.method.lower()]["requestBody"]
    name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return list(document["components"]["schemas"][name].get("required", ()))


async def test_a_body_of_another_shape_changes_nothing(world: World) -> None:
    document = (await world.people.api.published()).document
    wrong: dict[Any, Any] = {}
    for operation_id in sorted(OPERATIONS.keys() - SIGNED - RECOVERING):
        operation, call = OPERATIONS[operation_id], await CALLS[operation_id](world)
        if not isinstance(call.json, dict) or operation.path not in document["paths"]:
            continue
        before = await read_content(world.rival)
        api = find_able_caller(world, operation).api(world)
        typed = call.with_headers({"Content-Type": "application/json"})
        for text, expected in list_bodies(call, list_required(document, operation)):
            found = refusal_of(await send(api, operation, typed, content=text))
            if found[:2] != expected[:2] or expected[2] not in (None, found[2]):
                wrong[operation_id, text] = found
        if await read_content(world.rival) != before:
            wrong[operation_id] = "something changed"
    assert wrong == {}


async def test_a_body_that_an_operation_does_not_take_changes_nothing(world: World) -> None:
    """Its sender may have meant something by it, such as a dry run. An empty object means nothing."""
    wrong: dict[Any, Any] = {}
    for operation_id in sorted(OPERATIONS.keys() - SIGNED):
        operation, call = OPERATIONS[operation_id], await CALLS[operation_id](world)
        if call.json is not None or operation.method == "GET":
            continue
        before = await read_content(world.rival)
        api = find_able_caller(world, operation).api(world)
        typed = call.with_headers({"Content-Type": "application/json"})
        bodies = {
            **dict(list_bodies(replace(call, json={}), [])),
            b'{"dry_run":true,"a/b":1}': (422, "validation_failed", ["/dry_run", "/a~1b"]),
            b" " * (64 * 1024 + 1): (413, "payload_too_large", []),
        }
        del bodies[b""]
        for text, expected in bodies.items():
            found = refusal_of(await send(api, operation, typed, content=text))
            if found[:2] != expected[:2] or expected[2] not in (None, found[2]):
                wrong[operation_id, text[:30]] = found
        form = call.with_headers({"Content-Type": "application/x-www-form-urlencoded"})
        if (await send(api, operation, form, content=b"a=1")).code != "unsupported_media_type":
            wrong[operation_id] = "a form was taken"
        if await read_content(world.rival) != before:
            wrong[operation_id] = "something changed"
        answer = await send(api, operation, typed, content=b"{}")
        if answer.status >= 300:
            wrong[operation_id, "{}"] = answer.body
    assert wrong == {}


async def test_a_name_has_1_to_120_characters_after_trimming(world: World) -> None:
    wrong: dict[Any, Any] = {}
    for number, operation_id in enumerate(sorted(NAMED)):
        operation, call = OPERATIONS[operation_id], await CALLS[operation_id](world)
        before = await read_content(world.rival)
        for name in BAD_NAMES:
            answer = await send(world.tenant.api, operation, replace(call, json={**call.json, "name": name}))
            if refusal_of(answer) != (422, "validation_failed", ["/name"]):
                wrong[operation_id, name] = answer.body
        if await read_content(world.rival) != before:
            wrong[operation_id] = "something changed"
        for good in ("ÄBCDEFGH"[number], operation_id.ljust(120, "😀")):
            call = await CALLS[operation_id](world)
            spaced = replace(call, json={**call.json, "name": f" \t\n{good}\u2003"})
            answer = await send(world.tenant.api, operation, spaced)
            if answer.status >= 300 or answer.json["name"] != good:
                wrong[operation_id, good] = answer.body
    assert wrong == {}


async def test_an_id_that_nothing_has_is_not_found(world: World) -> None:
    """Whatever its form. The audit log alone may contain an attempt that Audience refused."""
    wrong: dict[Any, Any] = {}
    for operation_id, row in ROWS.items():
        if row.foreign is None:
            continue
        operation, call = OPERATIONS[operation_id], await CALLS[operation_id](world)
        places = {**call.path, **call.params, **(call.json or {})}
        before = await read_content(world.rival, without=world.tenant.organization_id)
        for member in sorted(places.keys() - {"organization_id", "request_id"}):  # A request id is the caller's own.
            value = places[member]
            if not member.endswith("_id") or not isinstance(value, str):
                continue
            prefix = value[: value.find("_") + 1]
            expected = (404, "project_not_found" if member == "project_id" else row.foreign)
            for identity in (
                "x",
                "ü",
                prefix,
                prefix + "\0",
                prefix + "A" * 22,
                value + " ",
                value[:-1],
                value.swapcase(),
            ):
                answer = await send(world.tenant.api, operation, call.replacing(value, identity))
                if (answer.status, answer.code) != expected:
                    wrong[operation_id, member, identity] = answer.body
        if await read_content(world.rival, without=world.tenant.organization_id) != before:
            wrong[operation_id] = "something changed"
    assert wrong == {}


async def test_a_page_has_a_limit_and_a_cursor_that_the_server_made(world: World) -> None:
    document = (await world.people.api.published()).document
    wrong: dict[Any, Any] = {}
    for operation_id, operation in OPERATIONS.items():
        published = document["paths"].get(operation.path, {}).get(operation.method.lower(), {})
        schemas = {part["name"]: part["schema"] for part in published.get("parameters", ())}
        if "limit" not in schemas:
            continue
        call, api = await CALLS[operation_id](world), find_able_caller(world, operation).api(world)
        most = schemas["limit"]["maximum"]
        cases = {f"limit={text}": 422 for text in ("0", most + 1, "-1", "1.5", "x", "", "%201", "9" * 20)}
        cases |= {f"limit={text}": 200 for text in (1, most)}
        cases |= {f"cursor={text}": 422 for text in ("", "x", "%00", "A" * 44, "A" * 1100)}
        for query, status in cases.items():
            answer = await send(api, operation, call, query=f"&{query}")
            code = "invalid_cursor" if "cursor" in query else "validation_failed"
            if answer.status != status or (status == 422 and answer.code != code):
                wrong[operation_id, query] = answer.body
    assert wrong == {}


async def test_a_caller_who_is_demoted_meanwhile_changes_nothing(world: World) -> None:
    """The role is locked in the transaction of the change, which waits for a change of the role."""
    wrong: dict[Any, Any] = {}
    commands = {name for name, row in ROWS.items() if row.audited and row.roles}
    for operation_id in sorted(commands - {"create_ticket", "reply_to_ticket"}):  # Everybody may do these.
        call = await CALLS[operation_id](world)
        before = await read_content(world.rival)
        role = "member" if operation_id in {"cancel_checkout", "create_checkout"} else "billing"
        async with world.rival.committing("UPDATE members SET role = %s WHERE subject_id = 'owner'", role):
            sending = await world.rival.while_waiting(send(world.tenant.api, OPERATIONS[operation_id], call))
        answer = await asyncio.wait_for(sending, 60)
        await world.rival.run("UPDATE members SET role = 'owner' WHERE subject_id = 'owner'")
        if (answer.status, answer.code) != (403, "forbidden") or await read_content(world.rival) != before:
            wrong[operation_id] = answer.body
    assert wrong == {}

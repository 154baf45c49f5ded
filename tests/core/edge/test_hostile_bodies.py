"""Bodies made to be expensive: how much they cost, and how they are answered."""

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fastapi.routing
import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import OPERATOR_TOKEN
from support.api.hostile_requests import FORM_TYPE, HOSTILE_HEADS, RawRequest, find_costly, make_hostile_form, pad
from support.api.operations import Operation, list_operations
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.kit.http.requests import bodies

KIBIBYTE = 1024
SMALL, LARGE = 64 * KIBIBYTE, 1024 * KIBIBYTE
ANSWER_BYTES_MAX = 8 * KIBIBYTE
HEADERS = {"content-type": "application/json"}
OPERATOR = (("authorization", f"Bearer {OPERATOR_TOKEN}"),)
OTHER_ROUTES = [
    Operation(path, "GET", path, {"roles": []})
    for path in ("/healthz", "/readyz", "/openapi.json", "/schemas", "/problems/not_found", "/reference", "/nowhere")
]


@pytest.fixture
def faults_found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of faults that the models found, for each refused request."""
    counts: list[int] = []
    real = fastapi.routing.RequestValidationError

    class Counted(real):  # type: ignore[misc, valid-type]  # the class itself is what is watched
        def __init__(self, errors: Any, **more: Any) -> None:
            counts.append(len(errors))
            super().__init__(errors, **more)

    monkeypatch.setattr(fastapi.routing, "RequestValidationError", Counted)
    return counts


def members(size_bytes: int, **known: Any) -> bytes:
    """Return an object of this size, full of unknown members beside the `known` ones."""
    text = json.dumps(known)[:-1] + ("," if known else "")
    unknown = [f'"{number:x}":1' for number in range((size_bytes - len(text)) // 10)]
    return (text + ",".join(unknown) + "}").encode().ljust(size_bytes)


def listing(size_bytes: int, name: str, item: str, **known: Any) -> bytes:
    """Return an object of this size whose member `name` is a list of the same item over and over."""
    text = json.dumps({**known, name: []})[:-2]
    items = ",".join([item] * ((size_bytes - len(text) - 2) // (len(item) + 1)))
    return f"{text}{items}]}}".encode().ljust(size_bytes)


def within(size_bytes: int, name: str, opening: str, closing: str, **known: Any) -> bytes:
    """Return an object of this size whose member `name` nests as deeply as fits."""
    text = json.dumps({**known, name: 0})[:-2]
    depth = (size_bytes - len(text) - 2) // (len(opening) + len(closing))
    return f"{text}{opening * depth}1{closing * depth}}}".encode().ljust(size_bytes)


def escapes(size_bytes: int, **known: Any) -> bytes:
    """Return an object of this size with one long text that is all escapes."""
    text = json.dumps({**known, "name": ""})[:-2]
    return (text + "\\u0041" * ((size_bytes - len(text) - 2) // 6) + '"}').encode().ljust(size_bytes)


@dataclass(frozen=True)
class Send:
    """A request whose body can have any size."""

    path: str
    make: Callable[[Tenant, int], bytes]

    async def __call__(self, api: Api, tenant: Tenant, size_bytes: int) -> Answer:
        return await api.post(self.path, content=self.make(tenant, size_bytes), headers=HEADERS)


def intent_of(tenant: Tenant) -> dict[str, Any]:
    body = tenant.code_body()
    del body["intent"]
    return body


# The bodies sent in the security review, and others of that kind.
HOSTILE: dict[str, Send] = {
    "unknown members in an acceptance": Send("/v1/member-invitations/accept", lambda _, size: members(size)),
    "unknown members in an organisation": Send("/v1/organizations", lambda _, size: members(size)),
    "wrong scopes": Send(
        "/v1/api-keys",
        lambda tenant, size: listing(size, "scopes", '"a"', **tenant.query, project_id=tenant.project_id),
    ),
    "right scopes": Send(
        "/v1/api-keys",
        lambda tenant, size: listing(size, "scopes", '"codes:read"', **tenant.query, project_id=tenant.project_id),
    ),
}
HOSTILE_ISSUANCE: dict[str, Send] = {
    "unknown members": Send("/v1/codes", lambda tenant, size: members(size, **tenant.code_body())),
    "unknown members of the intent": Send(
        "/v1/codes",
        lambda tenant, size: (
            json.dumps({**intent_of(tenant), "intent": 7}).encode().replace(b": 7}", b": %s}" % members(size - 1000))
        ),
    ),
    "values": Send("/v1/codes", lambda tenant, size: listing(size, "intent", "1", **intent_of(tenant))),
    "lists": Send("/v1/codes", lambda tenant, size: listing(size, "intent", "[]", **intent_of(tenant))),
    "levels of lists": Send("/v1/codes", lambda tenant, size: within(size, "intent", "[", "]", **intent_of(tenant))),
    "levels of objects": Send(
        "/v1/codes/recover", lambda tenant, size: within(size, "intent", '{"a":', "}", **intent_of(tenant))
    ),
    "no JSON": Send("/v1/codes", lambda _, size: (b"[]," * size)[:size]),
    "open brackets": Send("/v1/codes/batch", lambda _, size: b"[" * size),
}
VALID = Send("/v1/codes", lambda tenant, size: json.dumps(tenant.code_body()).encode().ljust(size))


@pytest.mark.parametrize("send", HOSTILE.values(), ids=list(HOSTILE))
async def test_a_mebibyte_is_not_parsed_where_the_limit_is_64_kib(
    api: Api, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, send: Send
) -> None:
    monkeypatch.setattr(bodies, "parse_json", lambda *_args, **_options: pytest.fail("it was parsed"))
    answer = await send(api, tenant, LARGE)
    assert (answer.status, answer.code) == (413, "payload_too_large")
    assert len(answer.body) < KIBIBYTE


@pytest.mark.parametrize(
    ("send", "size_bytes"),
    [*((send, SMALL) for send in HOSTILE.values()), *((send, LARGE) for send in HOSTILE_ISSUANCE.values())],
    ids=[*HOSTILE, *HOSTILE_ISSUANCE],
)
async def test_a_hostile_body_gets_a_short_answer(
    api: Api, tenant: Tenant, rival: Rival, faults_found: list[int], send: Send, size_bytes: int
) -> None:
    """131,000 unknown members were answered with 10 MB, a list of 250,000 texts with 35 MB."""
    answer = await send(api, tenant, size_bytes)
    assert answer.status in {400, 422}, answer.body[:300]
    assert len(answer.body) < ANSWER_BYTES_MAX
    assert len(answer.json.get("errors", ())) <= 20
    assert sum(faults_found) <= 64, "the model stops early"
    assert await rival.rows("SELECT 1 FROM codes UNION ALL SELECT 1 FROM api_keys") == []


@pytest.mark.parametrize("name", ["values", "lists", "levels of lists", "levels of objects"])
async def test_an_intent_that_is_too_large_is_still_distinguished_from_other_faults(
    api: Api, tenant: Tenant, name: str
) -> None:
    headers = {"idempotency-key": "of-a-hostile-request"}
    api = Api(api.app, api.clock)
    api._client.headers.update(headers)
    answer = await HOSTILE_ISSUANCE[name](api, tenant, LARGE)
    assert (answer.status, answer.code) == (422, "intent_not_canonical")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/intent"]


@pytest.mark.parametrize("name", ["unknown members", "values", "levels of lists"])
async def test_strangers_learn_nothing_by_a_hostile_body(api: Api, name: str) -> None:
    """The tenant is checked before the shape of the rest, whatever that is."""
    nowhere = Tenant(api, "org_" + "A" * 22, "prj_" + "A" * 22)
    assert (await HOSTILE_ISSUANCE[name](api, nowhere, LARGE)).code == "organization_not_found"


async def test_a_used_key_is_checked_before_a_hostile_body(api: Api, tenant: Tenant) -> None:
    headers = {"idempotency-key": "of-a-request-that-came"}
    issued = await api.post("/v1/codes", json=tenant.code_body(), headers=headers)
    assert issued.status == 201
    body = listing(LARGE, "intent", "1", **intent_of(tenant))
    answer = await api.post("/v1/codes", content=body, headers={**headers, **HEADERS})
    assert (answer.status, answer.code) == (409, "idempotency_conflict")


def raw(request: Send, tenant: Tenant, size_bytes: int) -> RawRequest:
    return RawRequest("POST", request.path, headers=OPERATOR).with_body(
        HEADERS["content-type"], request.make(tenant, size_bytes)
    )


@pytest.mark.parametrize(
    ("size_bytes", "sends"), [(SMALL, HOSTILE), (LARGE, HOSTILE_ISSUANCE)], ids=["64 KiB", "a mebibyte"]
)
async def test_a_hostile_body_costs_no_more_than_a_valid_one(
    api: Api, tenant: Tenant, size_bytes: int, sends: dict[str, Send]
) -> None:
    """About the same, in one run on one machine; it used to be up to a thousand times as much."""
    hostile = {name: raw(send, tenant, size_bytes) for name, send in sends.items()}
    assert await find_costly(api.app, raw(VALID, tenant, size_bytes), hostile) == {}


def fill(operation: Operation, tenant: Tenant) -> RawRequest:
    """Return a request to the operation in the tenant's organisation, with ids that belong to nothing besides."""
    ids = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}
    path = re.sub(r"{(\w+)}", lambda found: ids.get(found[1], "of-nothing"), operation.path)
    return RawRequest(operation.method, path, headers=OPERATOR)


async def test_no_route_decodes_what_is_hostile_in_the_head_of_a_request(api: Api, tenant: Tenant) -> None:
    """Every route of Core read its query and its cookies, whether it has any or not, with 5 to 15 ms for one."""
    costly = {}
    for operation in [*list_operations(), *OTHER_ROUTES]:
        request = fill(operation, tenant)
        if operation.access["roles"] and "{organization_id}" not in operation.path:
            request = request.with_query(f"organization_id={tenant.organization_id}".encode())
        hostile = {name: make(request) for name, make in HOSTILE_HEADS.items()}
        costly |= {(str(operation), name): s for name, s in (await find_costly(api.app, pad(request), hostile)).items()}
    assert costly == {}


@pytest.mark.parametrize("size_bytes", [SMALL, LARGE])
async def test_a_hostile_body_costs_no_more_than_a_valid_one_on_any_route(
    api: Api, tenant: Tenant, size_bytes: int
) -> None:
    """JSON, and forms, which only one route reads."""
    bodies = {
        "members": (HEADERS["content-type"], members(size_bytes, **tenant.in_project)),
        "escapes": (HEADERS["content-type"], escapes(size_bytes, **tenant.in_project)),
        "a form": (FORM_TYPE, make_hostile_form(size_bytes, payment_id="")),
        "fields": (FORM_TYPE, (b"%69d=" + b"%41" * 20 + b"&") * (size_bytes // 66)),
        "as many fields as may be": (FORM_TYPE, b"&".join([b"%69d=" + b"%41" * 120] * 64)),
    }
    hostile = {
        f"{name} to {operation}": fill(operation, tenant).with_body(*body)
        for operation in list_operations()
        if operation.method != "GET"
        for name, body in bodies.items()
    }
    assert await find_costly(api.app, raw(VALID, tenant, size_bytes), hostile) == {}


@pytest.mark.parametrize(("size_bytes", "is_beside"), [(SMALL, False), (SMALL + 1, True), (LARGE, True)])
async def test_a_large_body_is_parsed_beside_the_event_loop(
    api: Api, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, size_bytes: int, *, is_beside: bool
) -> None:
    threads: list[int] = []
    parse = bodies.parse_json

    def parse_and_tell(data: bytes, **options: Any) -> Any:
        threads.append(threading.get_ident())
        return parse(data, **options)

    monkeypatch.setattr(bodies, "parse_json", parse_and_tell)
    assert (await VALID(api, tenant, size_bytes)).status == 201
    assert [thread != threading.get_ident() for thread in threads] == [is_beside]


async def test_health_is_answered_between_hostile_bodies(api: Api, tenant: Tenant) -> None:
    """One request used to delay it by 8.5 s. What counts is how long the loop is held at a time."""
    sends = [*HOSTILE_ISSUANCE.values()] * 2
    hostile = asyncio.gather(*(send(api, tenant, LARGE) for send in sends))
    probe = api.other(token=None)
    statuses, longest_s, before_s = [], 0.0, time.thread_time()
    while not hostile.done():
        statuses.append((await probe.get("/healthz")).status)
        await asyncio.sleep(0)  # A request inside this process need not wait for anything.
        now_s = time.thread_time()
        longest_s, before_s = max(longest_s, now_s - before_s), now_s
    assert {answer.status for answer in await hostile} <= {400, 422}
    assert statuses.count(200) == len(statuses) > len(sends)
    # The processor time of this thread between two responses, while 16 requests of 1 MiB are made and answered in it.
    assert longest_s < 1


async def test_between_two_large_bodies_every_other_request_goes_on(
    api: Api, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred that arrive together would hold the loop a hundred times as long as one."""
    turns: list[str] = []
    parse = bodies.parse_json

    def note_and_parse(data: bytes, **options: Any) -> Any:
        turns.append("parsed")
        return parse(data, **options)

    async def note_turns() -> None:
        while turns.count("parsed") < 5:
            turns.append("turn")
            await asyncio.sleep(0)

    monkeypatch.setattr(bodies, "parse_json", note_and_parse)
    await asyncio.gather(note_turns(), *(VALID(api, tenant, SMALL // 4) for _ in range(5)))
    assert "parsed parsed" not in " ".join(turns)

"""`POST /v1/codes`: what may be issued, what comes back, and that a refusal or a cut leaves nothing."""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from core_app import Answer, Api, Rival, Tenant
from soundmark_sdk import read_key_set, verify_signed_code

from soundmark.kit.canonical import canonicalize
from soundmark.kit.timestamps import format_timestamp

HEADERS = {"content-type": "application/json"}


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    return await api.given_tenant()


async def issue(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/codes", json=tenant.wanted_code(**changes))


async def issue_text(tenant: Tenant, old: str, new: str) -> Answer:
    """The valid body with one piece of its text exchanged, for what no JSON writer would write."""
    text = json.dumps(tenant.wanted_code(intent={"type": "link", "action": "open", "resource": {"n": 0}}))
    assert text.count(old) == 1
    body = text.replace(old, new).encode("utf-8", "surrogateescape")
    return await tenant.api.post("/v1/codes", content=body, headers=HEADERS)


def intent_of(value: Any) -> dict[str, Any]:
    return {"type": "link", "action": "open", "resource": {"value": value}}


def pointers(answer: Answer) -> list[str]:
    assert (answer.status, answer.code) == (422, "validation_failed"), answer.body
    return [error["pointer"] for error in answer.json["errors"]]


async def stored(rival: Rival) -> int:
    """How many Codes and broadcasts there are."""
    return len(await rival.rows("SELECT 1 FROM codes UNION ALL SELECT 1 FROM broadcasts"))


async def test_the_answer_is_the_whole_code(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    answer = await issue(tenant, expires_at=format_timestamp(now + timedelta(days=1)))
    assert answer.status == 201
    code = answer.json
    signed = code["signed_code"]
    facts = {
        "xr_id": code["xr_id"],
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "campaign_id": None,
        "issuer": "Radio Nordlicht",
        "issued_at": format_timestamp(now),
        "expires_at": format_timestamp(now + timedelta(days=1)),
        "intent": tenant.wanted_code()["intent"],
    }
    assert code == facts | {
        "broadcast_token": code["broadcast_token"],
        "broadcast_frame": f"XRC1:{code['broadcast_token']}",
        "status": "active",
        "revoked_at": None,
        "audience_enabled": False,
        "audience_integration_id": None,
        "signed_code": signed,
    }
    assert signed == facts | {
        "version": 1,
        "policy": {"audience_measurement": False, "audience_integration_id": None},
        "token_digest": signed["token_digest"],
        "key_id": signed["key_id"],
        "signature": signed["signature"],
    }
    assert re.fullmatch(r"xr_[A-Za-z0-9_-]{22}", code["xr_id"])
    assert re.fullmatch(r"brd_[A-Za-z0-9_-]{16}", code["broadcast_token"])


async def test_the_record_verifies_with_the_published_keys(api: Api, tenant: Tenant) -> None:
    code = await tenant.given_code()
    keys = read_key_set((await api.get("/v1/keys")).body)
    record = verify_signed_code(code["signed_code"], keys, token=code["broadcast_token"], now=api.clock.now())
    assert record.xr_id == code["xr_id"]


async def test_the_answer_is_what_the_detail_answers(api: Api, tenant: Tenant) -> None:
    code = await tenant.given_code()
    assert (await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json == code


async def test_an_issued_code_can_be_resolved(api: Api, tenant: Tenant) -> None:
    code = await tenant.given_code()
    answer = await api.resolve(code["broadcast_token"])
    assert (answer.status, answer.json["xr_id"], answer.json["intent"]) == (200, code["xr_id"], code["intent"])


async def test_forty_at_once_are_forty_codes(tenant: Tenant, rival: Rival) -> None:
    codes = await asyncio.gather(*(tenant.given_code() for _ in range(40)))
    assert len({code["xr_id"] for code in codes}) == 40
    assert len({code["broadcast_token"] for code in codes}) == 40
    assert await stored(rival) == 80


@pytest.mark.parametrize("issuer", ["a", "x" * 160, "😀" * 160, " Radio ", "Rund­funk\u2028"], ids=ascii)
async def test_an_issuer_has_1_to_160_characters(tenant: Tenant, issuer: str) -> None:
    answer = await issue(tenant, issuer=issuer)
    assert (answer.status, answer.json["issuer"]) == (201, issuer)


@pytest.mark.parametrize("issuer", ["", "x" * 161, "a\0b", "a\nb", "a\x7f", None, 1, True, ["Radio"], {}], ids=ascii)
async def test_another_issuer_is_refused(tenant: Tenant, rival: Rival, issuer: Any) -> None:
    assert pointers(await issue(tenant, issuer=issuer)) == ["/issuer"]
    assert await stored(rival) == 0


@pytest.mark.parametrize("missing", ["organization_id", "project_id", "issuer", "expires_at", "intent"])
async def test_a_required_member_is_required(api: Api, tenant: Tenant, missing: str) -> None:
    body = tenant.wanted_code()
    del body[missing]
    assert pointers(await api.post("/v1/codes", json=body)) == [f"/{missing}"]


@pytest.mark.parametrize("missing", ["type", "action", "resource"])
async def test_a_member_of_the_intent_is_required(tenant: Tenant, missing: str) -> None:
    intent = intent_of(1)
    del intent[missing]
    assert pointers(await issue(tenant, intent=intent)) == [f"/intent/{missing}"]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"id": "xr_own"}, "/id"),
        ({"xr_id": "xr_own"}, "/xr_id"),
        ({"status": "active"}, "/status"),
        ({"policy": {}}, "/policy"),
        ({"metadata": {}}, "/metadata"),
        ({"a/b~c": 1}, "/a~1b~0c"),
        ({"intent": intent_of(1) | {"more": 1}}, "/intent/more"),
        ({"audience": {"enabled": False, "more": 1}}, "/audience/more"),
    ],
    ids=ascii,
)
async def test_an_unknown_member_is_refused(
    tenant: Tenant, rival: Rival, changes: dict[str, Any], pointer: str
) -> None:
    assert pointers(await issue(tenant, **changes)) == [pointer]
    assert await stored(rival) == 0


@pytest.mark.parametrize(
    ("expires_at", "read_as"),
    [
        ("2999-01-01T00:00:00Z", "2999-01-01T00:00:00.000Z"),
        ("2999-01-01t00:00:00z", "2999-01-01T00:00:00.000Z"),
        ("2999-01-01T01:30:00+01:30", "2999-01-01T00:00:00.000Z"),
        ("2998-12-31T14:00:00.5-10:00", "2999-01-01T00:00:00.500Z"),
        ("2999-01-01T00:00:00-00:00", "2999-01-01T00:00:00.000Z"),
        ("2999-01-01T00:00:00.123456789Z", "2999-01-01T00:00:00.123Z"),
        ("2996-02-29T00:00:00Z", "2996-02-29T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
async def test_an_expiry_is_any_rfc_3339_time_and_comes_back_in_utc(
    tenant: Tenant, rival: Rival, expires_at: str, read_as: str
) -> None:
    answer = await issue(tenant, expires_at=expires_at)
    assert (answer.status, answer.json["expires_at"], answer.json["signed_code"]["expires_at"]) == (
        201,
        read_as,
        read_as,
    )
    assert [format_timestamp(at) for (at,) in await rival.rows("SELECT expires_at FROM codes")] == [read_as]


@pytest.mark.parametrize(
    "expires_at",
    [
        "2999-01-01T00:00:00",
        "2999-01-01",
        "2999-01-01 00:00:00Z",
        "2999-01-01T00:00Z",
        "29990101T000000Z",
        "2999-W01-1T00:00:00Z",
        "2999-01-01T00:00:00+0100",
        "2999-01-01T00:00:00+24:00",
        "2999-01-01T00:00:00+01:60",
        "2999-01-01T24:00:00Z",
        "2998-12-31T23:59:60Z",
        "2999-02-29T00:00:00Z",
        "2999-13-01T00:00:00Z",
        "9999-12-31T23:59:59.999-00:01",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "+12999-01-01T00:00:00Z",
        "２９９９-01-01T00:00:00Z",
        " 2999-01-01T00:00:00Z",
        "2999-01-01T00:00:00Z\n",
        "2999-01-01T00:00:00.Z",
        "",
        "tomorrow",
        None,
        32503680000,
        32503680000.5,
        True,
        [],
        {},
    ],
    ids=ascii,
)
async def test_another_expiry_is_refused(tenant: Tenant, rival: Rival, expires_at: Any) -> None:
    assert pointers(await issue(tenant, expires_at=expires_at)) == ["/expires_at"]
    assert await stored(rival) == 0


@pytest.mark.parametrize("ahead_ms", [-86_400_000, -1, 0])
async def test_an_expiry_lies_in_the_future(api: Api, tenant: Tenant, rival: Rival, ahead_ms: int) -> None:
    """Exactly now is not the future: such a Code would never be active."""
    now = api.clock.freeze()
    answer = await issue(tenant, expires_at=format_timestamp(now + timedelta(milliseconds=ahead_ms)))
    assert pointers(answer) == ["/expires_at"]
    assert await stored(rival) == 0


async def test_a_millisecond_ahead_is_the_future(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    assert (await issue(tenant, expires_at=format_timestamp(now + timedelta(milliseconds=1)))).status == 201


async def test_less_than_a_millisecond_ahead_is_now(api: Api, tenant: Tenant) -> None:
    """What is stored and signed is cut to milliseconds, so that is what is judged."""
    now = api.clock.freeze()
    assert pointers(await issue(tenant, expires_at=f"{now:%Y-%m-%dT%H:%M:%S}.000999Z")) == ["/expires_at"]


async def test_expiry_is_judged_after_the_wait_for_the_project(api: Api, tenant: Tenant, rival: Rival) -> None:
    """API v1, "Issuance ordering": the requested expiry is rechecked after any lock wait."""
    expires_at = format_timestamp(api.clock.freeze() + timedelta(seconds=60))
    async with rival.holding("SELECT 1 FROM projects WHERE id = %s FOR UPDATE", tenant.project_id):
        issuing = await rival.while_waiting(issue(tenant, expires_at=expires_at))
        api.clock.advance(seconds=60)
    assert pointers(await issuing) == ["/expires_at"]
    assert await stored(rival) == 0


def nested(depth: int) -> dict[str, Any]:
    """An intent of this many levels: itself, its resource, and lists."""
    value: Any = []
    for _ in range(depth - 3):
        value = [value]
    return intent_of(value)


def sized(size_bytes: int, filler: str = "x") -> dict[str, Any]:
    """An intent whose canonical form has this many bytes."""
    rest = size_bytes - len(canonicalize(intent_of("")))
    assert rest % len(filler.encode()) == 0
    return intent_of(filler * (rest // len(filler.encode())))


EMPTY_BYTES = len(canonicalize(intent_of("")))
CANONICAL: dict[str, dict[str, Any]] = {
    "32 levels": nested(32),
    "16 KiB": sized(16 * 1024),
    "16 KiB of what JSON escapes twice as long": intent_of('"' * ((16 * 1024 - EMPTY_BYTES) // 2)),
    "an empty resource": {"type": "t", "action": "a", "resource": {}},
    "labels of 160 characters": {"type": "😀" * 160, "action": "x" * 160, "resource": {}},
    "labels with control characters": {"type": "\0", "action": "\n", "resource": {}},
    "non-ASCII names and values": intent_of({"ä€😀": "\u2028\ufeffe\u0301", "": "", "\ue000": 1}),
    "a null character": intent_of({"\0": "\0"}),
    "the largest integers": intent_of([2**53 - 1, -(2**53) + 1, 0]),
    "floats": intent_of([0.1, -2.5, 1e21, 1e300, 5e-324, 1.7976931348623157e308]),
    "literals": intent_of([None, True, False]),
    "names of our own members": intent_of({"type": {"resource": {}}, "__proto__": {}, "signature": ""}),
}


@pytest.mark.parametrize("intent", CANONICAL.values(), ids=list(CANONICAL))
async def test_an_intent_comes_back_as_it_was_given(api: Api, tenant: Tenant, intent: dict[str, Any]) -> None:
    answer = await issue(tenant, intent=intent)
    assert answer.status == 201, answer.body
    resolved = await api.resolve(answer.json["broadcast_token"])
    for where in (answer.json, answer.json["signed_code"], resolved.json):
        assert canonicalize(where["intent"]) == canonicalize(intent)


NOT_CANONICAL: dict[str, dict[str, Any]] = {
    "33 levels": nested(33),
    "200 levels": nested(200),
    "16 KiB and a byte": sized(16 * 1024 + 1),
    "too many two-byte characters": intent_of("ä" * ((16 * 1024 - EMPTY_BYTES) // 2 + 1)),
    "too much of what is escaped": intent_of("\0" * 3000),
    "too many values": intent_of([0] * 8200),
    "too long a name": intent_of({"x" * 16 * 1024: 0}),
    "an integer beyond 2^53": intent_of(2**53),
    "an integer below -2^53": intent_of(-(2**53)),
    "a whole float beyond 2^53": intent_of(1e20),
    "such an integer in a label": intent_of(1) | {"type": 2**53},
    "such an integer instead of a resource": intent_of(1) | {"resource": 2**60},
}


@pytest.mark.parametrize("intent", NOT_CANONICAL.values(), ids=list(NOT_CANONICAL))
async def test_an_intent_without_a_canonical_form_is_refused(
    tenant: Tenant, rival: Rival, intent: dict[str, Any]
) -> None:
    answer = await issue(tenant, intent=intent)
    assert (answer.status, answer.code) == (422, "intent_not_canonical")
    assert await stored(rival) == 0


@pytest.mark.parametrize(
    "number",
    ["9007199254740993", "-1e400", "1" * 5000, "1e16", "[" * 400 + "]" * 400],
    ids=lambda number: str(number)[:20],
)
async def test_a_number_or_depth_that_cannot_be_held_is_not_canonical(tenant: Tenant, number: str) -> None:
    answer = await issue_text(tenant, '"n": 0', f'"n": {number}')
    assert (answer.status, answer.code) == (422, "intent_not_canonical")


@pytest.mark.parametrize("spelling", ["-0", "-0.0", "0e5", "1e-400"])
async def test_every_spelling_of_zero_is_zero(tenant: Tenant, spelling: str) -> None:
    answer = await issue_text(tenant, '"n": 0', f'"n": {spelling}')
    assert (answer.status, repr(answer.json["intent"]["resource"]["n"])) == (201, "0")


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 0, "n": 0}',
        '{"n": 0, "\\u006e": 1}',
        '{"n": [{"a": 1, "a": 1}]}',
        '{"n": NaN}',
        '{"n": Infinity}',
        '{"n": -Infinity}',
        '{"n": "\\ud800"}',
        '{"n": "\\udc00\\ud800"}',
        '{"\\udfff": 0}',
        '{"n": "\udcff"}',
        '{"n": "\udced\udca0\udc80"}',
        '{"n": "\n"}',
        '{"n": 01}',
        '{"n": .5}',
        '{"n": 0,}',
        '{"n": 0',
        "{'n': 0}",
        '{"n": 0 /* */}',
    ],
    ids=ascii,
)
async def test_what_is_no_i_json_is_malformed(tenant: Tenant, rival: Rival, text: str) -> None:
    answer = await issue_text(tenant, '{"n": 0}', text)
    assert (answer.status, answer.code) == (400, "malformed_json")
    assert await stored(rival) == 0


async def test_a_member_given_twice_is_malformed(tenant: Tenant) -> None:
    answer = await issue_text(tenant, '"issuer": ', '"issuer": "Another", "issuer": ')
    assert (answer.status, answer.code) == (400, "malformed_json")


async def test_a_surrogate_pair_is_one_character(tenant: Tenant) -> None:
    answer = await issue_text(tenant, '{"n": 0}', '{"n": "\\ud83d\\ude00"}')
    assert (answer.status, answer.json["intent"]["resource"]) == (201, {"n": "😀"})


async def test_a_number_outside_the_intent_is_a_wrong_value(tenant: Tenant) -> None:
    assert pointers(await issue(tenant, issuer=2**53)) == ["/issuer"]


@pytest.mark.parametrize("label", ["type", "action"])
@pytest.mark.parametrize("value", ["", "x" * 161, None, 1, True, [], {}], ids=ascii)
async def test_a_label_has_1_to_160_characters(tenant: Tenant, rival: Rival, label: str, value: Any) -> None:
    assert pointers(await issue(tenant, intent=intent_of(1) | {label: value})) == [f"/intent/{label}"]
    assert await stored(rival) == 0


@pytest.mark.parametrize("resource", [None, 1, "x", [], True], ids=ascii)
async def test_a_resource_is_an_object(tenant: Tenant, resource: Any) -> None:
    assert pointers(await issue(tenant, intent=intent_of(1) | {"resource": resource})) == ["/intent/resource"]


@pytest.mark.parametrize("intent", [None, 1, "x", [], True], ids=ascii)
async def test_an_intent_is_an_object(tenant: Tenant, intent: Any) -> None:
    assert pointers(await issue(tenant, intent=intent)) == ["/intent"]


@pytest.mark.parametrize("project_id", ["prj_" + "A" * 22, "", "prj_", "nope", "prj_\0", "ü", "prj_" + "A" * 200])
async def test_an_unknown_project_is_not_found(tenant: Tenant, rival: Rival, project_id: str) -> None:
    answer = await issue(tenant, project_id=project_id)
    assert (answer.status, answer.code) == (404, "project_not_found")
    assert await stored(rival) == 0


@pytest.mark.parametrize("project_id", [None, 1, [], {}], ids=ascii)
async def test_a_project_is_named_by_a_text(tenant: Tenant, project_id: Any) -> None:
    assert pointers(await issue(tenant, project_id=project_id)) == ["/project_id"]


async def test_a_project_that_goes_while_the_code_is_issued_leaves_nothing(tenant: Tenant, rival: Rival) -> None:
    """Whoever deletes the project first wins; the insert that waits for it must not become a fault of ours."""
    async with rival.committing("DELETE FROM projects WHERE id = %s", tenant.project_id):
        issuing = await rival.while_waiting(issue(tenant))
    answer = await issuing
    assert (answer.status, answer.code) == (404, "project_not_found")
    assert await stored(rival) == 0


@pytest.mark.parametrize("campaign_id", ["cmp_" + "A" * 22, "", "cmp_\0", "prj_" + "A" * 22])
async def test_a_campaign_that_is_not_there_is_not_found(tenant: Tenant, rival: Rival, campaign_id: str) -> None:
    answer = await issue(tenant, campaign_id=campaign_id)
    assert (answer.status, answer.code) == (404, "campaign_not_found")
    assert await stored(rival) == 0


@pytest.mark.parametrize("campaign_id", [1, [], {}, True], ids=ascii)
async def test_a_campaign_is_named_by_a_text(tenant: Tenant, campaign_id: Any) -> None:
    assert pointers(await issue(tenant, campaign_id=campaign_id)) == ["/campaign_id"]


@pytest.mark.parametrize("integration_id", ["int_" + "A" * 22, "", "int_\0", "nope"])
async def test_an_integration_that_is_not_there_is_not_found(tenant: Tenant, rival: Rival, integration_id: str) -> None:
    answer = await issue(tenant, audience={"enabled": True, "integration_id": integration_id})
    assert (answer.status, answer.code) == (404, "integration_not_found")
    assert await stored(rival) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"audience": {"enabled": False}},
        {"audience": {"enabled": False, "integration_id": None}},
        {"audience": None},
        {"campaign_id": None},
    ],
    ids=ascii,
)
async def test_nothing_optional_is_the_same_as_leaving_it_out(tenant: Tenant, changes: dict[str, Any]) -> None:
    answer = await issue(tenant, **changes)
    assert (answer.status, answer.json["audience_enabled"], answer.json["campaign_id"]) == (201, False, None)


@pytest.mark.parametrize(
    ("audience", "pointer"),
    [
        ({"enabled": True}, "/audience"),
        ({"enabled": True, "integration_id": None}, "/audience"),
        ({"enabled": False, "integration_id": "int_" + "A" * 22}, "/audience"),
        ({}, "/audience/enabled"),
        ({"integration_id": "int_" + "A" * 22}, "/audience/enabled"),
        ({"enabled": None}, "/audience/enabled"),
        ({"enabled": 1}, "/audience/enabled"),
        ({"enabled": "true"}, "/audience/enabled"),
        ({"enabled": True, "integration_id": 1}, "/audience/integration_id"),
        ([], "/audience"),
        (True, "/audience"),
    ],
    ids=ascii,
)
async def test_another_audience_is_refused(tenant: Tenant, rival: Rival, audience: Any, pointer: str) -> None:
    assert pointers(await issue(tenant, audience=audience)) == [pointer]
    assert await stored(rival) == 0


@pytest.mark.parametrize("body", [b"[]", b"null", b'"Radio"', b"7", b"true"])
async def test_a_body_that_is_no_object_is_refused(api: Api, body: bytes) -> None:
    answer = await api.post("/v1/codes", content=body, headers=HEADERS)
    assert (answer.status, answer.code) == (422, "validation_failed")


async def test_more_than_a_mebibyte_is_refused(tenant: Tenant, rival: Rival) -> None:
    answer = await issue(tenant, intent=intent_of("x" * 1024 * 1024))
    assert (answer.status, answer.code) == (413, "payload_too_large")
    assert await stored(rival) == 0


async def test_every_fault_of_a_body_is_named_at_once(tenant: Tenant) -> None:
    answer = await issue(tenant, issuer="", expires_at="tomorrow", intent=intent_of(1) | {"type": ""}, more=1)
    assert sorted(pointers(answer)) == ["/expires_at", "/intent/type", "/issuer", "/more"]


LOCKS: dict[str, Callable[[Tenant], tuple[str, tuple[str, ...]]]] = {
    "before the project is looked up": lambda _: ("LOCK TABLE projects IN ACCESS EXCLUSIVE MODE", ()),
    "before the broadcast is written": lambda _: ("LOCK TABLE broadcasts IN EXCLUSIVE MODE", ()),
    "before the Code is written": lambda _: ("LOCK TABLE codes IN EXCLUSIVE MODE", ()),
    "before the project is held": lambda tenant: (
        "SELECT 1 FROM projects WHERE id = %s FOR UPDATE",
        (tenant.project_id,),
    ),
}


@pytest.mark.parametrize("moment", LOCKS)
async def test_an_issuance_cut_before_its_commit_leaves_nothing(tenant: Tenant, rival: Rival, moment: str) -> None:
    """The server ends the connection, as it does when either process dies; the next issuance works."""
    statement, params = LOCKS[moment](tenant)
    async with rival.holding(statement, *params):
        issuing = await rival.while_waiting(issue(tenant))
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND {}"
        assert await rival.run(ended.format("wait_event_type = 'Lock'")) == 1
        answer = await issuing
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await stored(rival) == 0
    assert (await issue(tenant)).status == 201
    assert await stored(rival) == 2


async def test_a_code_is_not_there_before_its_commit(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Neither half of it: the broadcast is written already while the Code waits."""
    async with rival.holding("LOCK TABLE codes IN EXCLUSIVE MODE"):
        issuing = await rival.while_waiting(issue(tenant))
        assert await stored(rival) == 0
        assert (await api.get("/v1/codes", params=tenant.query)).json["data"] == []
    code = (await issuing).json
    assert (await api.resolve(code["broadcast_token"])).status == 200


async def test_what_was_issued_is_stored_as_it_was_signed(tenant: Tenant, rival: Rival) -> None:
    """The payload is the canonical text of the record without its signature, and nothing else holds the intent."""
    code = await tenant.given_code()
    signed = dict(code["signed_code"])
    del signed["signature"]
    ((payload, issued_at, key_id),) = await rival.rows(
        "SELECT payload, issued_at, key_id FROM broadcasts JOIN codes ON broadcast_token = token"
    )
    assert json.loads(payload) == signed
    assert (payload, key_id) == (canonicalize(signed, depth_max=33, size_max_bytes=2**15), signed["key_id"])
    assert isinstance(issued_at, datetime)
    assert format_timestamp(issued_at) == signed["issued_at"]

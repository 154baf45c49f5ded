"""The intent in `POST /v1/codes`: an intent with a canonical form is issued unchanged, any other is refused."""

import json
from typing import Any

import pytest
from support.api.core_client import Answer, Api, pointers
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.canonical import canonicalize


async def issue(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/codes", json=tenant.code_body(**changes))


async def issue_text(tenant: Tenant, old: str, new: str) -> Answer:
    """Send the valid body with a piece of its text replaced, for texts that no JSON writer produces."""
    text = json.dumps(tenant.code_body(intent={"type": "link", "action": "open", "resource": {"n": 0}}))
    assert text.count(old) == 1
    body = text.replace(old, new).encode("utf-8", "surrogateescape")
    return await tenant.api.post("/v1/codes", content=body, headers={"content-type": "application/json"})


def intent_of(value: Any) -> dict[str, Any]:
    return {"type": "link", "action": "open", "resource": {"value": value}}


async def stored(rival: Rival) -> int:
    """Return the numbers of Codes and broadcasts."""
    return len(await rival.rows("SELECT 1 FROM codes UNION ALL SELECT 1 FROM broadcasts"))


def nested(depth: int) -> dict[str, Any]:
    """Return an intent of this many levels: itself, its resource, and lists."""
    value: Any = []
    for _ in range(depth - 3):
        value = [value]
    return intent_of(value)


def sized(size_bytes: int, filler: str = "x") -> dict[str, Any]:
    """Return an intent whose canonical form has this many bytes."""
    rest = size_bytes - len(canonicalize(intent_of("")))
    assert rest % len(filler.encode()) == 0
    return intent_of(filler * (rest // len(filler.encode())))


EMPTY_BYTES = len(canonicalize(intent_of("")))
CANONICAL: dict[str, dict[str, Any]] = {
    "32 levels": nested(32),
    "16 KiB": sized(16 * 1024),
    "labels with control characters": {"type": "\0", "action": "\n", "resource": {}},
    "non-ASCII names and values": intent_of({"ä€😀": "\u2028\ufeffe\u0301", "": "", "\ue000": 1}),
    "the largest integers": intent_of([2**53 - 1, -(2**53) + 1, 0]),
    "floats": intent_of([0.1, -2.5, 1e21, 1e300, 5e-324, 1.7976931348623157e308]),
    "names of our own members": intent_of({"type": {"resource": {}}, "__proto__": {}, "signature": ""}),
}


@pytest.mark.parametrize("intent", CANONICAL.values(), ids=list(CANONICAL))
async def test_an_intent_is_returned_unchanged(api: Api, tenant: Tenant, intent: dict[str, Any]) -> None:
    answer = await issue(tenant, intent=intent)
    assert answer.status == 201, answer.body
    resolved = await api.resolve(answer.json["broadcast_token"])
    for where in (answer.json, answer.json["signed_code"], resolved.json):
        assert canonicalize(where["intent"]) == canonicalize(intent)


NOT_CANONICAL: dict[str, dict[str, Any]] = {
    "33 levels": nested(33),
    "16 KiB and a byte": sized(16 * 1024 + 1),
    "too many two-byte characters": intent_of("ä" * ((16 * 1024 - EMPTY_BYTES) // 2 + 1)),
    "too many values": intent_of([0] * 8200),
    "too long a name": intent_of({"x" * 16 * 1024: 0}),
    "an integer beyond 2^53": intent_of(2**53),
    "such an integer in a label": intent_of(1) | {"type": 2**53},
}


@pytest.mark.parametrize("intent", NOT_CANONICAL.values(), ids=list(NOT_CANONICAL))
async def test_an_intent_without_a_canonical_form_is_refused(
    tenant: Tenant, rival: Rival, intent: dict[str, Any]
) -> None:
    answer = await issue(tenant, intent=intent)
    assert (answer.status, answer.code) == (422, "intent_not_canonical")
    (error,) = answer.json["errors"]
    assert error["location"] == "body"
    assert error["pointer"].startswith("/intent")
    assert await stored(rival) == 0


@pytest.mark.parametrize(
    "number",
    ["9007199254740993", "-1e400", "[" * 400 + "]" * 400],
    ids=lambda number: str(number)[:20],
)
async def test_a_number_or_depth_that_cannot_be_held_is_not_canonical(tenant: Tenant, number: str) -> None:
    answer = await issue_text(tenant, '"n": 0', f'"n": {number}')
    assert (answer.status, answer.code) == (422, "intent_not_canonical")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [("body", "/intent")]


@pytest.mark.parametrize("spelling", ["-0", "1e-400"])
async def test_every_spelling_of_zero_is_zero(tenant: Tenant, spelling: str) -> None:
    answer = await issue_text(tenant, '"n": 0', f'"n": {spelling}')
    assert (answer.status, repr(answer.json["intent"]["resource"]["n"])) == (201, "0")


@pytest.mark.parametrize(
    "text",
    ['{"n": [{"a": 1, "a": 1}]}', '{"n": NaN}', '{"n": "\\ud800"}', '{"n": "\udcff"}', '{"n": 0'],
    ids=ascii,
)
async def test_text_that_is_not_i_json_is_malformed(tenant: Tenant, rival: Rival, text: str) -> None:
    answer = await issue_text(tenant, '{"n": 0}', text)
    assert (answer.status, answer.code) == (400, "malformed_json")
    assert await stored(rival) == 0


async def test_a_surrogate_pair_is_one_character(tenant: Tenant) -> None:
    answer = await issue_text(tenant, '{"n": 0}', '{"n": "\\ud83d\\ude00"}')
    assert (answer.status, answer.json["intent"]["resource"]) == (201, {"n": "😀"})


async def test_a_number_outside_the_intent_is_a_wrong_value(tenant: Tenant) -> None:
    assert pointers(await issue(tenant, issuer=2**53)) == ["/issuer"]


@pytest.mark.parametrize("label", ["type", "action"])
@pytest.mark.parametrize("value", ["", "x" * 161, 1], ids=ascii)
async def test_a_label_has_1_to_160_characters(tenant: Tenant, rival: Rival, label: str, value: Any) -> None:
    assert pointers(await issue(tenant, intent=intent_of(1) | {label: value})) == [f"/intent/{label}"]
    assert await stored(rival) == 0


@pytest.mark.parametrize("resource", [None, []], ids=ascii)
async def test_a_resource_is_an_object(tenant: Tenant, resource: Any) -> None:
    assert pointers(await issue(tenant, intent=intent_of(1) | {"resource": resource})) == ["/intent/resource"]


@pytest.mark.parametrize("intent", [None, []], ids=ascii)
async def test_an_intent_is_an_object(tenant: Tenant, intent: Any) -> None:
    assert pointers(await issue(tenant, intent=intent)) == ["/intent"]


@pytest.mark.parametrize("missing", ["type", "action", "resource"])
async def test_a_member_of_the_intent_is_required(tenant: Tenant, missing: str) -> None:
    intent = intent_of(1)
    del intent[missing]
    assert pointers(await issue(tenant, intent=intent)) == [f"/intent/{missing}"]

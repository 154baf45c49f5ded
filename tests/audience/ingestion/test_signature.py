"""The publisher's signature over the raw bytes of an event, and one answer to everybody without it."""

import json
from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.client import AudienceApi, audience_settings, running_audience
from support.audience.event_publisher import Publisher, make_publisher, new_id
from support.database.rival import Rival

from soundmark.audience.hot import pending_event
from soundmark.kit.crypto.secret import Secret


def alike(answer: Answer) -> Any:
    """Return everything in a response except the request id."""
    document = {name: value for name, value in answer.json.items() if name != "request_id"}
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    return answer.status, document, {**headers, "content-length": ""}


async def unauthenticated(source: Publisher, body: Any, **headers: str) -> Answer:
    answer = await source.deliver(body, **headers)
    assert (answer.status, answer.json["code"]) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    return answer


@pytest.mark.parametrize(
    "signature",
    [
        *("", "sha256=", "sha256=" + "0" * 64, "sha256=" + "0" * 63, "sha256=" + "0" * 65, "sha256=" + "g" * 64),
        *("sha1=" + "0" * 40, "0" * 64, "Bearer x"),
    ],
)
async def test_a_wrong_signature_is_refused(audience: AudienceApi, audience_rival: Rival, signature: str) -> None:
    source = await make_publisher(audience)

    await unauthenticated(source, source.event(), **{"X-Svc-Signature": signature})

    assert await audience_rival.rows("SELECT count(*) FROM event_months") == [(0,)], "a stranger leaves no trace"


async def test_a_missing_signature_is_refused(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    stranger = AudienceApi(audience.app, audience.clock, credential=None)
    body = json.dumps(source.event()).encode()

    answer = await stranger.call("POST", "/v1/events", content=body, headers={"Content-Type": "application/json"})

    assert (answer.status, answer.json["code"]) == (401, "unauthenticated")


async def test_the_internal_credential_is_no_signature(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()

    answer = await audience.call("POST", "/v1/events", content=body, headers={"Content-Type": "application/json"})

    assert answer.status == 401


async def test_two_signatures_are_refused(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()
    signature = ("X-Svc-Signature", source.signature(body))
    sent = [("Content-Type", "application/json"), signature, signature]

    answer = await audience.call("POST", "/v1/events", content=body, headers=sent)

    assert answer.status == 401


async def test_hexadecimal_digits_may_be_upper_case(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()
    digits = source.signature(body).removeprefix("sha256=").upper()

    assert (await source.deliver(body, **{"X-Svc-Signature": "sha256=" + digits})).status == 201


async def test_every_byte_is_signed(audience: AudienceApi) -> None:
    """The same JSON with one more space is another text."""
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()

    await unauthenticated(source, body + b" ", **{"X-Svc-Signature": source.signature(body)})


async def test_the_prefix_belongs_to_the_key(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()
    signature = source.signature(body, source.integration.hmac_secret.removeprefix("xhm_"))

    await unauthenticated(source, body, **{"X-Svc-Signature": signature})


async def test_another_integrations_secret_is_refused(audience: AudienceApi) -> None:
    source, other = await make_publisher(audience), await make_publisher(audience)
    body = json.dumps(source.event()).encode()

    await unauthenticated(source, body, **{"X-Svc-Signature": other.signature(body)})


async def test_unknown_malformed_and_missing_integrations_get_the_same_answer(audience: AudienceApi) -> None:
    """Nobody learns which integrations exist, not even from a wrong event of theirs."""
    source = await make_publisher(audience)
    event = source.event()
    without = {name: value for name, value in event.items() if name != "integration_id"}
    bodies: list[Any] = [
        {**event, "integration_id": new_id("int_")},
        {**event, "integration_id": "int_'; --"},
        {**event, "integration_id": 7},
        {**event, "integration_id": None},
        {**event, "integration_id": "int_" + "a" * 15_000},
        {**event, "integration_id": new_id("int_"), "country": "nowhere"},
        without,
        b"[]",
        b"7",
        b"null",
    ]

    answers = [await unauthenticated(source, body) for body in bodies]
    answers.append(await unauthenticated(source, event, **{"X-Svc-Signature": "sha256=" + "0" * 64}))
    answers.append(await unauthenticated(source, {**event, "country": 7}, **{"X-Svc-Signature": "nonsense"}))

    assert len({repr(alike(answer)) for answer in answers}) == 1


async def test_only_its_publisher_learns_what_is_wrong_with_an_event(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    body = json.dumps({**source.event(), "country": "nowhere"}).encode()

    await unauthenticated(source, body, **{"X-Svc-Signature": "sha256=" + "0" * 64})
    assert (await source.deliver(body)).status == 422


@pytest.mark.parametrize("integration", ["its own", "unknown", "missing"])
@pytest.mark.parametrize("shape", ["usual", "another", "none"])
async def test_without_a_valid_signature_nothing_else_of_an_event_is_read(
    audience: AudienceApi, monkeypatch: pytest.MonkeyPatch, integration: str, shape: str
) -> None:
    """Reading a shape costs more than checking a signature, and an unsigned sender may not learn about it."""
    source = await make_publisher(audience)
    assert (await source.deliver()).status == 201, "this process knows the integration"
    event: Any = {"usual": source.event(), "another": {**source.event(), "é": 1}, "none": {"integration_id": 7}}[shape]
    match integration:
        case "its own":
            event["integration_id"] = source.integration.id
        case "unknown":
            event["integration_id"] = new_id("int_")
        case "missing":
            event.pop("integration_id", None)
    read: list[object] = []
    proved: list[object] = []
    monkeypatch.setattr(pending_event, "read_event", read.append)
    monkeypatch.setattr(pending_event, "refusal_of_proof", lambda *given: proved.append(given))

    await unauthenticated(source, event, **{"X-Svc-Signature": "sha256=" + "0" * 64})

    assert (read, proved) == ([], [])


async def test_a_rotated_secret_is_refused_at_once(audience: AudienceApi) -> None:
    """Although this process verified with it a moment ago."""
    source = await make_publisher(audience)
    assert (await source.deliver()).status == 201
    body = json.dumps(source.event()).encode()
    old = source.signature(body)

    rotated = await source.integration.change("secret")

    await unauthenticated(source, body, **{"X-Svc-Signature": old})
    new = source.signature(body, rotated.json["hmac_secret"])
    assert (await source.deliver(body, **{"X-Svc-Signature": new})).status == 201


async def test_a_refusal_links_to_its_explanation(audience_url: Secret) -> None:
    """At Core: for an event, which anybody may publish, and for a caller that is not Core."""
    async with running_audience(audience_settings(audience_url, base_url="https://core.example")) as audience:
        source = await make_publisher(audience)
        stranger = AudienceApi(audience.app, audience.clock, None)
        answers = [await source.deliver({}), await stranger.call("GET", "/v1/integrations")]
    assert [answer.status for answer in answers] == [401, 401]
    assert {answer.json["type"] for answer in answers} == {"https://core.example/problems/unauthenticated"}

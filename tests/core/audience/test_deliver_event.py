"""`POST /v1/events` at Core: the same bytes go to Audience, and only its public answers come back."""

import asyncio
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from support.api.core_client import Answer
from support.api.core_settings import AUDIENCE_CREDENTIAL
from support.audience.event_delivery import deliver_event, make_event, sign_body
from support.audience.event_publisher import new_id
from support.audience.faults import FAULTS, core_beside, failing_audience
from support.database.rival import Rival
from support.outside.misbehaving_server import answer, misbehaving_server
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

# To an event, 401 is an ordinary answer of Audience; to Core's own calls it is a failure.
EVENT_FAULTS = sorted(FAULTS.keys() - {"our credential unknown"})
RECORDED = {"event_id": "evt_" + "e" * 22, "status": "recorded"}
JSON = {"Content-Type": "application/json"}
PROBLEM = "application/problem+json"


async def heard(tenant: Tenant, integration: dict[str, Any]) -> dict[str, Any]:
    """Return an event of a receiver that heard a Code and resolved it."""
    code = await tenant.make_code(audience={"enabled": True, "integration_id": integration["id"]})
    return await make_event(tenant, code)


async def test_an_event_of_a_resolved_code_is_recorded(tenant: Tenant, measuring: Rival) -> None:
    """The whole path, with the proof from the resolution."""
    integration = await tenant.make_integration()
    event = await heard(tenant, integration)

    first = await deliver_event(tenant.api, event, integration["hmac_secret"])
    retry = await deliver_event(tenant.api, event, integration["hmac_secret"])

    assert (first.status, first.json) == (201, {"event_id": event["event_id"], "status": "recorded"})
    assert (retry.status, retry.json) == (200, {"event_id": event["event_id"], "status": "duplicate"})
    assert await measuring.rows("SELECT count(*) FROM events") == [(1,)]


async def test_refusals_of_audience_become_problems_of_core(tenant: Tenant) -> None:
    integration = await tenant.make_integration()
    secret = integration["hmac_secret"]
    event = await heard(tenant, integration)

    async def code_of(body: Any, **headers: str) -> tuple[int, str]:
        refused = await deliver_event(tenant.api, body, secret, **headers)
        return refused.status, refused.code

    assert await code_of(event, **{"X-Svc-Signature": "sha256=" + "0" * 64}) == (401, "unauthenticated")
    assert await code_of(b"{") == (400, "malformed_json")
    assert await code_of({**event, "proof": {**event["proof"], "signature": "A" * 86}}) == (422, "proof_invalid")
    await deliver_event(tenant.api, event, secret)
    assert await code_of({**event, "country": None}) == (409, "event_conflict")
    assert await code_of({**event, "event_id": new_id("evt_")}) == (409, "proof_replayed")


async def test_a_wrong_member_is_named(tenant: Tenant) -> None:
    integration = await tenant.make_integration()
    event = {**await heard(tenant, integration), "country": "nowhere", "device": "x"}

    refused = await deliver_event(tenant.api, event, integration["hmac_secret"])

    assert (refused.status, refused.code) == (422, "validation_failed")
    assert {error["pointer"] for error in refused.json["errors"]} == {"/country", "/device"}


async def test_a_parameter_is_refused_after_the_signature_was_checked(tenant: Tenant, measuring: Rival) -> None:
    """At Core and at Audience alike, and nothing is recorded."""
    integration = await tenant.make_integration()
    event = await heard(tenant, integration)
    body = json.dumps(event).encode()
    path = "/v1/events?dry_run=true&%C3%A4=1"

    async def sent(secret: str) -> Answer:
        headers = {**JSON, "X-Svc-Signature": sign_body(body, secret), "X-Svc-Organization-Id": "org_of_nobody"}
        return await tenant.api.other(token=None).post(path, content=body, headers=headers)

    assert (await sent("of somebody else")).code == "unauthenticated"
    refused = await sent(integration["hmac_secret"])
    assert (refused.status, refused.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in refused.json["errors"]] == [
        ("query", "/dry_run"),
        ("query", "/ä"),
    ]
    assert await measuring.rows("SELECT count(*) FROM events") == [(0,)]
    assert (await deliver_event(tenant.api, event, integration["hmac_secret"])).status == 201


async def test_an_exhausted_quota_says_when_to_retry(tenant: Tenant, measuring: Rival) -> None:
    integration = await tenant.make_integration()
    await deliver_event(tenant.api, await heard(tenant, integration), integration["hmac_secret"])
    await measuring.run("UPDATE event_months SET events = 100")

    refused = await deliver_event(tenant.api, await heard(tenant, integration), integration["hmac_secret"])

    assert (refused.status, refused.code) == (429, "event_quota_exceeded")
    assert int(refused.headers["retry-after"]) > 0


@pytest.mark.parametrize("signature", [b"sha256=\xe9", b"sha256=\t" + b"0" * 64, b""])
async def test_a_malformed_signature_is_refused(tenant: Tenant, signature: bytes) -> None:
    """Also a header that no HTTP client would send."""
    integration = await tenant.make_integration()
    body = json.dumps(await heard(tenant, integration)).encode()
    stranger = tenant.api.other(token=None, peer="203.0.113.7")

    headers = [(b"Content-Type", b"application/json"), (b"X-Svc-Signature", signature)]
    refused = await stranger.call("POST", "/v1/events", content=body, headers=headers)

    assert (refused.status, refused.code) == (401, "unauthenticated")


async def test_the_parameters_of_the_content_type_do_not_matter(tenant: Tenant) -> None:
    integration = await tenant.make_integration()
    body = json.dumps(await heard(tenant, integration)).encode()
    signature = sign_body(body, integration["hmac_secret"])
    stranger = tenant.api.other(token=None, peer="203.0.113.7")

    headers = [(b"Content-Type", b"application/json; charset=\xe9"), (b"X-Svc-Signature", signature.encode())]
    done = await stranger.call("POST", "/v1/events", content=body, headers=headers)

    assert done.status == 201


async def test_a_body_larger_than_an_event_is_not_forwarded(database_url: Secret, clock: FakeClock) -> None:
    async with (
        misbehaving_server(answer(b"{}")) as server,
        core_beside(server.url, database_url, clock) as core,
    ):
        refused = await deliver_event(core, b" " * (16 * 1024 + 1), "secret")
        other_type = await deliver_event(core, b"{}", "secret", **{"Content-Type": "text/plain"})

        assert (refused.status, refused.code) == (413, "payload_too_large")
        assert (other_type.status, other_type.code) == (415, "unsupported_media_type")
        assert server.requests == []


async def test_bytes_and_signature_arrive_as_they_were_sent(database_url: Secret, clock: FakeClock) -> None:
    """Neither parsed nor rewritten: the signature covers every byte. Our credential names Core as the forwarder."""
    body = b' {"b" : 1,\n"a":"\xc3\xa4\\u00e4" } '
    behave = answer(json.dumps(RECORDED).encode(), status="201 Created")
    async with misbehaving_server(behave) as server, core_beside(server.url, database_url, clock) as core:
        done = await deliver_event(core, body, "secret", **{"X-Request-Id": "of-the-publisher"})

        assert (done.status, done.json) == (201, RECORDED)
        head, _, sent = server.requests[0].partition(b"\r\n\r\n")
        assert sent == body
        lines = head.lower().split(b"\r\n")
        signature = hmac.new(b"secret", body, hashlib.sha256).hexdigest().encode()
        assert lines[0] == b"post /v1/events http/1.1"
        assert b"x-svc-signature: sha256=" + signature in lines
        assert b"x-request-id: of-the-publisher" in lines
        assert b"authorization: bearer " + AUDIENCE_CREDENTIAL.encode() in lines
        assert {b"x-svc-caller: soundmark-core", b"x-svc-timeout-ms: 1000"} <= set(lines)
        assert not any(line.startswith((b"cookie", b"x-forwarded-for")) for line in lines)


@pytest.mark.parametrize("fault", EVENT_FAULTS)
async def test_a_failing_audience_is_unavailable(fault: str, database_url: Secret, clock: FakeClock) -> None:
    """Within the deadline, whatever it does, and Core's other routes are not affected."""
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as core:
        began_s = time.monotonic()
        delivering = asyncio.create_task(deliver_event(core, b"{}", "secret"))
        others = await asyncio.gather(*(core.get("/v1/organizations") for _ in range(3)))
        refused = await delivering

    assert (refused.status, refused.code) == (503, "audience_unavailable")
    assert time.monotonic() - began_s < 10
    assert [other.status for other in others] == [200] * 3


@pytest.mark.parametrize(
    ("status", "media_type", "document"),
    [
        ("200 OK", "application/json", RECORDED),
        ("201 Created", "application/json", {**RECORDED, "status": "duplicate"}),
        ("201 Created", "application/json", {"event_id": "evt_short", "status": "recorded"}),
        ("409 Conflict", PROBLEM, {"code": "proof_invalid"}),
        ("409 Conflict", PROBLEM, {"code": ["event_conflict"]}),
        ("403 No", PROBLEM, {"code": "forbidden"}),
    ],
)
async def test_an_undeclared_answer_is_not_passed_on(
    database_url: Secret, clock: FakeClock, status: str, media_type: str, document: dict[str, Any]
) -> None:
    behave = answer(json.dumps(document).encode(), status=status, media_type=media_type)
    async with misbehaving_server(behave) as server, core_beside(server.url, database_url, clock) as core:
        refused = await deliver_event(core, b"{}", "secret")

    assert (refused.status, refused.code) == (503, "audience_unavailable")


async def test_malformed_errors_are_left_out(database_url: Secret, clock: FakeClock) -> None:
    document = {"code": "validation_failed", "errors": ["x", {"pointer": 7}, {"pointer": "/a", "message": "wrong"}]}
    behave = answer(json.dumps(document).encode(), status="422 No", media_type=PROBLEM)
    async with misbehaving_server(behave) as server, core_beside(server.url, database_url, clock) as core:
        refused = await deliver_event(core, b"{}", "secret")

    assert refused.json["errors"] == [{"location": "body", "pointer": "/a", "message": "wrong"}]

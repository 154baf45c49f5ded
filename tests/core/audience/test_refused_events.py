"""Refused events that Core forwards are limited by the address that sent them to Core."""

import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.outside.misbehaving_server import answer, misbehaving_server
from support.processes.running_apps import running_core

from soundmark.kit.crypto.secret import Secret

LIMIT, WINDOW_S = 3, 10
PROBLEM = "application/problem+json"
REFUSED = answer(b'{"code": "unauthenticated"}', status="401 No", media_type=PROBLEM)
NO_JSON = answer(b'{"code": "malformed_json"}', status="400 No", media_type=PROBLEM)
NO_EVENT = answer(b'{"code": "validation_failed"}', status="422 No", media_type=PROBLEM)


@contextlib.asynccontextmanager
async def beside(behave: Any, database_url: Secret) -> AsyncIterator[tuple[Api, Any]]:
    """Run a Core that allows three refusals in ten seconds, beside an Audience."""
    async with misbehaving_server(behave) as server:
        changes = {"refusal_rate_limit": LIMIT, "refusal_rate_window_s": WINDOW_S, "trusted_proxies": "10.0.0.0/8"}
        async with running_core(core_settings(database_url, audience_url=server.url, **changes)) as api:
            yield api, server


async def deliver(api: Api, peer: str = "203.0.113.7", **headers: str) -> Answer:
    body = json.dumps({"integration_id": "int_" + "i" * 22}).encode()
    signature = "sha256=" + hmac.new(b"secret", body, hashlib.sha256).hexdigest()
    sent = {"Content-Type": "application/json", "X-Svc-Signature": signature, **headers}
    return await api.other(token=None, peer=peer).post("/v1/events", content=body, headers=sent)


async def test_after_one_refusal_too_many_nothing_of_this_sender_is_forwarded(database_url: Secret) -> None:
    async with beside(REFUSED, database_url) as (api, server):
        found = [(await deliver(api)).status for _ in range(LIMIT + 2)]
        waiting = await deliver(api)
        elsewhere = await deliver(api, "203.0.113.8")
        handed_on = len(server.requests)
        api.clock.advance(seconds=WINDOW_S)
        later = await deliver(api)

    assert found == [401] * LIMIT + [429] * 2
    assert (waiting.code, elsewhere.status, later.status) == ("rate_limited", 401, 401)
    assert 1 <= int(waiting.headers["retry-after"]) <= WINDOW_S
    assert handed_on == LIMIT + 2, "the one too many, and that from elsewhere"


async def test_broken_json_counts_and_a_wrong_shape_from_a_known_publisher_does_not(database_url: Secret) -> None:
    for behave, expected in ((NO_JSON, [400] * LIMIT + [429]), (NO_EVENT, [422] * (LIMIT + 1))):
        async with beside(behave, database_url) as (api, _):
            assert [(await deliver(api)).status for _ in range(LIMIT + 1)] == expected


async def test_the_sender_behind_a_trusted_proxy_is_counted(database_url: Secret) -> None:
    forwarded = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    async with beside(REFUSED, database_url) as (api, _):
        for _ in range(LIMIT + 1):
            await deliver(api, "10.0.0.1", **forwarded)

        assert (await deliver(api, "203.0.113.9")).status == 429
        assert (await deliver(api, "10.0.0.1")).status == 401


async def test_refused_events_and_refused_credentials_are_counted_apart(database_url: Secret) -> None:
    """A publisher's backend issues Codes from the address that it delivers events from."""
    async with beside(REFUSED, database_url) as (api, _):
        for _ in range(LIMIT + 1):
            await deliver(api, "127.0.0.1")

        assert (await deliver(api, "127.0.0.1")).status == 429
        assert (await api.get("/v1/organizations")).status == 200

"""Refused credentials are limited by client IP address; accepted ones are not counted."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.outside.redis_server import running_redis
from support.processes.running_apps import running_core

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits import shared_server

LIMIT, WINDOW_S = 3, 10
UNKNOWN = "brd_" + "u" * 16
WRONG: dict[str, str | None] = {
    "none": None,
    "an unknown API key": "xak_" + "k" * 43,
    "no API key": "xak_short",
    "a wrong operator token": "xop_" + "x" * 43,
    "no access token": "nonsense",
}


def settings(database_url: Secret, **changes: Any) -> Any:
    return core_settings(database_url, refusal_rate_limit=LIMIT, refusal_rate_window_s=WINDOW_S, **changes)


@pytest.fixture
async def limited(database_url: Secret) -> AsyncIterator[Api]:
    """A Core that allows three refusals in ten seconds."""
    async with running_core(settings(database_url)) as api:
        yield api


async def ask(api: Api, *, token: str | None = None, peer: str = "203.0.113.7", **options: Any) -> Answer:
    return await api.other(token=token, peer=peer).get("/v1/organizations", **options)


async def statuses(api: Api, count: int, **options: Any) -> list[int]:
    return [(await ask(api, **options)).status for _ in range(count)]


@pytest.mark.parametrize("credential", sorted(WRONG))
async def test_after_one_refusal_too_many_the_address_has_to_wait(limited: Api, credential: str) -> None:
    found = await statuses(limited, LIMIT + 1, token=WRONG[credential])

    assert found == [401] * LIMIT + [429]
    refused = await ask(limited, token=WRONG[credential])
    assert (refused.status, refused.code) == (429, "rate_limited")
    assert 1 <= int(refused.headers["retry-after"]) <= WINDOW_S


async def test_a_valid_credential_has_to_wait_too_until_the_window_ends(limited: Api) -> None:
    """Otherwise the first response other than 429 would confirm a guessed credential."""
    assert (await limited.get("/v1/organizations")).status == 200
    await statuses(limited, LIMIT + 1, peer="127.0.0.1")

    refused = await limited.get("/v1/organizations")
    assert (refused.status, refused.code) == (429, "rate_limited")

    limited.clock.advance(seconds=WINDOW_S)
    assert (await limited.get("/v1/organizations")).status == 200


async def test_refusals_within_the_limit_delay_nobody(limited: Api) -> None:
    await statuses(limited, LIMIT, peer="127.0.0.1")

    assert (await limited.get("/v1/organizations")).status == 200


async def test_accepted_requests_are_not_counted(limited: Api) -> None:
    for _ in range(3 * LIMIT):
        assert (await limited.get("/v1/organizations")).status == 200
    # Nor are refusals of a known caller.
    for _ in range(3 * LIMIT):
        assert (await limited.get("/v1/projects", params={"organization_id": "org_unknown"})).status == 404
    assert (await limited.get("/v1/organizations")).status == 200


async def test_waiting_requests_do_not_prolong_the_window(limited: Api) -> None:
    await statuses(limited, LIMIT + 1)
    for _ in range(WINDOW_S - 1):
        limited.clock.advance(seconds=1)
        assert (await ask(limited)).status == 429
    limited.clock.advance(seconds=1)
    assert (await ask(limited)).status == 401


async def test_public_operations_are_not_limited(limited: Api) -> None:
    await statuses(limited, LIMIT + 1)
    stranger = limited.other(token=None, peer="203.0.113.7")

    assert (await stranger.resolve(UNKNOWN)).status == 404
    assert (await stranger.get("/v1/keys")).status == 200
    assert (await stranger.get("/healthz")).status == 200


async def test_every_route_that_needs_a_credential_shares_the_limit(limited: Api) -> None:
    stranger = limited.other(token=None, peer="203.0.113.7")
    await statuses(limited, LIMIT + 1)

    found = [
        await stranger.post("/v1/codes", json={}),
        await stranger.get("/v1/usage", params={"organization_id": "org_x"}),
        await stranger.post("/v1/organizations", content=b"{"),
    ]

    assert [(answer.status, answer.code) for answer in found] == [(429, "rate_limited")] * 3


async def test_another_address_is_not_limited(limited: Api) -> None:
    await statuses(limited, LIMIT + 1, peer="2001:db8:1:2::1")

    assert (await ask(limited, peer="2001:db8:1:2:ffff::9")).status == 429, "one subscriber"
    assert (await ask(limited, peer="2001:db8:1:3::1")).status == 401
    assert (await ask(limited, peer="203.0.113.8")).status == 401
    assert (await limited.get("/v1/organizations")).status == 200


async def test_a_forwarded_header_counts_from_a_trusted_proxy_only(database_url: Secret) -> None:
    forwarded = {"X-Forwarded-For": "198.51.100.1, 203.0.113.9"}
    async with running_core(settings(database_url, trusted_proxies="10.0.0.0/8")) as api:
        await statuses(api, LIMIT + 1, peer="10.0.0.1", headers=forwarded)
        # The same client through another proxy, with other text left of its address.
        other = {"X-Forwarded-For": "192.0.2.1, 203.0.113.9"}
        assert (await ask(api, peer="10.0.0.2", headers=other)).status == 429
        assert (await ask(api, peer="203.0.113.9")).status == 429
        assert (await ask(api, peer="10.0.0.1")).status == 401
        # From anybody else the header has no meaning.
        assert await statuses(api, LIMIT + 1, peer="203.0.113.20", headers=forwarded) == [401] * LIMIT + [429]


async def test_many_at_once_are_each_counted_once(limited: Api) -> None:
    answers = await asyncio.gather(*(ask(limited) for _ in range(20)))

    assert sorted(answer.status for answer in answers) == [401] * LIMIT + [429] * (20 - LIMIT)


async def test_processes_share_the_count_through_redis(database_url: Secret, monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid credential waits at every process, even at one that refused nothing."""
    monkeypatch.setattr(shared_server, "_TIMEOUT_S", 10)  # A quarter of a second may pass on a busy machine.
    async with running_redis() as redis:
        shared = settings(database_url, rate_limit_url=redis.url)
        async with running_core(shared) as one, running_core(shared) as other:
            assert await statuses(one, LIMIT, peer="127.0.0.1") == [401] * LIMIT
            assert (await other.get("/v1/organizations")).status == 200
            assert (await ask(other, peer="127.0.0.1")).status == 429

            assert [(await api.get("/v1/organizations")).status for api in (one, other)] == [429, 429]
            assert (await ask(other, peer="203.0.113.8")).status == 401

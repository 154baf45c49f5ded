"""Faults of the identity provider, and how Core handles them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from support.identity.oidc_access import AGAIN_S, FRESH_S, IMPATIENCE_S, impatient, is_accepted
from support.identity.oidc_issuer import CLIENT_ID, DISCOVERY, JWKS, OidcIssuer, make_issuer_key
from support.outside import misbehaving_server
from support.outside.misbehaving_server import Behaviour, answer
from support.processes.fake_clock import FakeClock

from soundmark.core.access.oidc import OidcAccess
from soundmark.core.problems import IdentityProviderUnavailable
from soundmark.kit.http.outbound import issuer_keys
from soundmark.kit.http.outbound.fetching import Fetcher, FetchFailed


def key_set(*keys: Any) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


FAULTS: dict[str, Callable[[], Behaviour]] = {
    "silent": lambda: misbehaving_server.silent,
    "slow headers": lambda: misbehaving_server.slow_headers,
    "slow body": lambda: misbehaving_server.dripping,
    "without an end": lambda: misbehaving_server.endless,
    "10 MB": lambda: answer(b'{"keys": [' + b" " * 10_000_000 + key_set(make_issuer_key("first").jwk)[10:]),
    "empty": lambda: answer(b""),
    "malformed": lambda: answer(b'{"keys": ['),
    "not an object": lambda: answer(b"[]"),
    "an empty object": lambda: answer(b"{}"),
    "an empty set": lambda: answer(key_set()),
    "a broken set": lambda: answer(key_set({"kty": "RSA", "kid": "first"})),
    "keys for encryption": lambda: answer(key_set({**make_issuer_key("first").jwk, "use": "enc"})),
    "error": lambda: answer(key_set(make_issuer_key("first").jwk), status="500 Internal Server Error"),
    "elsewhere": lambda: misbehaving_server.raw(b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"),
    "garbage": lambda: misbehaving_server.raw(b"\0\1\2\r\n\r\n"),
    "hangs up": lambda: misbehaving_server.raw(b""),
    "compressed": lambda: misbehaving_server.raw(
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\n\x1f\x8b\x08"
    ),
}


@pytest.mark.parametrize("path", [DISCOVERY, JWKS], ids=["discovery", "jwks"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_last_good_set_is_kept_whatever_the_issuer_answers(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock, fault: str, path: str
) -> None:
    token = issuer.token(exp=9e9)
    assert await is_accepted(access, token)
    issuer.behaviour[path] = FAULTS[fault]()
    unknown = issuer.token(by=make_issuer_key("second", number=1), exp=9e9)
    with impatient(access):
        for _ in range(2):
            with pytest.raises(IdentityProviderUnavailable):
                await access.user_of(unknown)
        for _ in range(2):
            clock.advance(seconds=FRESH_S + 1)
            assert await is_accepted(access, token)
        if access._keys._reading is not None:
            await access._keys._reading
    issuer.behaviour.clear()
    issuer.keys = [make_issuer_key("second", number=1)]
    clock.advance(seconds=AGAIN_S + 1)
    assert await is_accepted(access, unknown), "it is asked again"
    assert not await is_accepted(access, token)


@pytest.mark.parametrize("path", [DISCOVERY, JWKS], ids=["discovery", "jwks"])
@pytest.mark.parametrize("fault", list(FAULTS)[::5])
async def test_without_any_set_no_token_can_be_judged(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock, fault: str, path: str
) -> None:
    issuer.behaviour[path] = FAULTS[fault]()
    for _ in range(2):
        with impatient(access), pytest.raises(IdentityProviderUnavailable):
            await access.user_of(issuer.token())
    issuer.behaviour.clear()
    clock.advance(seconds=1)
    assert await is_accepted(access, issuer.token())


async def test_an_issuer_that_is_down_is_missed_only_without_keys(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock
) -> None:
    token = issuer.token(exp=9e9)
    async with issuer.down():
        with pytest.raises(IdentityProviderUnavailable):
            await access.user_of(token)
    clock.advance(seconds=1)
    assert await is_accepted(access, token)
    async with issuer.down():
        clock.advance(hours=1)
        assert await is_accepted(access, token)
        with pytest.raises(IdentityProviderUnavailable):
            await access.user_of(issuer.token(by=make_issuer_key("second", number=1)))


async def test_an_unknown_key_while_the_issuer_is_down_is_not_refused(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock
) -> None:
    """It may be a new key: an outage must not sign out a person who has just signed in."""
    assert await is_accepted(access, issuer.token())
    new = make_issuer_key("second", number=1)
    async with issuer.down():
        for _ in range(3):
            with pytest.raises(IdentityProviderUnavailable):
                await access.user_of(issuer.token(by=new))
            clock.advance(seconds=AGAIN_S / 2)
        # Tokens that can be judged without the issuer still are.
        assert not await is_accepted(access, issuer.token(by=new, padding="x" * 10 * 1024))
        assert not await is_accepted(access, issuer.token(azp="other"))
    issuer.keys.append(new)
    clock.advance(seconds=AGAIN_S)
    assert await is_accepted(access, issuer.token(by=new))
    assert not await is_accepted(access, issuer.token(by=make_issuer_key("third", number=1)))


async def test_a_caller_waits_for_only_one_reading(access: OidcAccess, issuer: OidcIssuer, clock: FakeClock) -> None:
    """The set is old and the `kid` unknown: each causes a reading, and one reading serves both."""
    assert await is_accepted(access, issuer.token())
    issuer.behaviour[DISCOVERY] = misbehaving_server.raw(b"")
    clock.advance(seconds=FRESH_S)
    requested = len(issuer.requested)
    with pytest.raises(IdentityProviderUnavailable):
        await access.user_of(issuer.token(by=make_issuer_key("second", number=1)))
    assert issuer.requested[requested:] == [DISCOVERY]


async def test_nobody_waits_twice_for_an_issuer_that_is_slow(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock
) -> None:
    token = issuer.token(exp=9e9)
    assert await is_accepted(access, token)
    issuer.behaviour[JWKS] = misbehaving_server.silent
    clock.advance(seconds=FRESH_S)
    with impatient(access):
        assert await is_accepted(access, token)  # This one waited until the deadline.
    clock.advance(seconds=AGAIN_S)
    assert await is_accepted(access, token)
    assert access._keys._reading is not None, "it is asked again all the same, and that is not over yet"


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://other.example"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": 7},
        {"jwks_uri": "http://192.0.2.1/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://127.0.0.1:99999/"},
        {"jwks_uri": "https://\0"},
    ],
    ids=str,
)
async def test_a_discovery_document_of_another_issuer_is_ignored(
    access: OidcAccess, issuer: OidcIssuer, discovery: dict[str, Any]
) -> None:
    issuer.discovery = discovery
    with pytest.raises(IdentityProviderUnavailable):
        await access.user_of(issuer.token())
    assert issuer.readings_count == 0


@pytest.mark.parametrize(
    ("named", "logged"),
    [
        ("https://other.example/realms/x", "https://other.example/realms/x"),
        (
            "https://other.example/\n2026-01-01 [info] forged\x1b[31m ü",
            "https://other.example/?2026-01-01 [info] forged?[31m ?",
        ),
        ("https://" + "x" * 1000, "https://" + "x" * 247),
        (None, None),
        (7, None),
        (["https://other.example"], None),
    ],
    ids=str,
)
async def test_the_log_names_both_issuers_where_they_differ(
    access: OidcAccess, issuer: OidcIssuer, named: Any, logged: str | None
) -> None:
    issuer.discovery = {"issuer": named}
    with structlog.testing.capture_logs() as events, pytest.raises(IdentityProviderUnavailable):
        await access.user_of(issuer.token())
    (event,) = events
    assert event == {
        "event": "issuer_keys_not_read",
        "log_level": "warning",
        "reason": "names_another_issuer",
        "configured": issuer.url,
        "named": logged,
    }


async def test_an_issuer_with_a_slash_at_its_end(issuer: OidcIssuer, clock: FakeClock) -> None:
    """Tokens spell it with the slash; its discovery document is below it all the same."""
    named = issuer.url + "/"
    issuer.discovery = {"issuer": named}
    access = OidcAccess(named, CLIENT_ID, clock)
    assert await is_accepted(access, issuer.token(iss=named))
    assert not await is_accepted(access, issuer.token())
    await access.aclose()


async def test_it_stops_while_it_reads(issuer: OidcIssuer, clock: FakeClock) -> None:
    issuer.behaviour[DISCOVERY] = misbehaving_server.silent
    access = OidcAccess(issuer.url, CLIENT_ID, clock, timeout_s=60)
    waiting = asyncio.create_task(access.user_of(issuer.token()))
    while not issuer.requested:  # noqa: ASYNC110 - the event happens in the server
        await asyncio.sleep(0)
    reading = access._keys._reading
    assert reading is not None
    await access.aclose()
    assert reading.cancelled()
    assert access._keys._fetcher._client._client.is_closed
    with pytest.raises((asyncio.CancelledError, IdentityProviderUnavailable)):
        await waiting


async def test_a_deadline_covers_both_documents_and_is_named_in_the_log(access: OidcAccess, issuer: OidcIssuer) -> None:
    """A header now and then is within the time of each wait, and would hold the request for ever."""
    issuer.behaviour[JWKS] = misbehaving_server.slow_headers
    with impatient(access), structlog.testing.capture_logs() as events, pytest.raises(IdentityProviderUnavailable):
        await access.user_of(issuer.token())
    assert [(event["event"], event["reason"]) for event in events] == [("issuer_keys_not_read", "deadline")]


async def test_a_check_of_the_issuer_has_the_deadline_too_and_closes_its_connections(
    issuer: OidcIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetchers: list[Fetcher] = []

    class SeenFetcher(Fetcher):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "timeout_s": 30})
            fetchers.append(self)

    monkeypatch.setattr(issuer_keys, "Fetcher", SeenFetcher)
    monkeypatch.setattr(issuer_keys, "TIMEOUT_S", IMPATIENCE_S)
    issuer.behaviour[JWKS] = misbehaving_server.slow_headers
    with pytest.raises(FetchFailed, match="deadline"):
        await issuer_keys.check_issuer(issuer.url)
    assert fetchers[0]._client._client.is_closed


@pytest.mark.parametrize(("bytes_count", "is_read"), [(256 * 1024, True), (256 * 1024 + 1, False)])
async def test_a_document_has_256_kibibytes_at_most(
    access: OidcAccess, issuer: OidcIssuer, bytes_count: int, *, is_read: bool
) -> None:
    issuer.behaviour[JWKS] = answer(json.dumps({"keys": [issuer.keys[0].jwk]}).encode().ljust(bytes_count))
    if is_read:
        assert await is_accepted(access, issuer.token())
        return
    with pytest.raises(IdentityProviderUnavailable):
        await access.user_of(issuer.token())

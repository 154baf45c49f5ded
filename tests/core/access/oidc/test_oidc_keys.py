"""When the issuer's keys are fetched."""

import asyncio

import pytest
import structlog
from support.identity.oidc_access import AGAIN_S, FRESH_S, is_accepted
from support.identity.oidc_issuer import DISCOVERY, JWKS, OidcIssuer, make_issuer_key
from support.processes.fake_clock import FakeClock

from soundmark.core.access.oidc import OidcAccess
from soundmark.kit.http.outbound.issuer_keys import IssuerKeys, IssuerUnavailable


class StillClock(FakeClock):
    """A clock whose monotonic time passes only when a test says so."""

    at_s = 1000.0

    def monotonic_s(self) -> float:
        return self.at_s


async def test_waiting_callers_share_one_fetch_of_the_keys(access: OidcAccess, issuer: OidcIssuer) -> None:
    token = issuer.token()
    assert all(await asyncio.gather(*(is_accepted(access, token) for _ in range(50))))
    assert issuer.requested == [DISCOVERY, JWKS]


async def test_a_caller_who_leaves_does_not_disturb_the_others(access: OidcAccess, issuer: OidcIssuer) -> None:
    token = issuer.token()
    leaving = asyncio.create_task(is_accepted(access, token))
    staying = asyncio.create_task(is_accepted(access, token))
    while not issuer.requested:  # noqa: ASYNC110 - the event happens in the server
        await asyncio.sleep(0)
    leaving.cancel()
    assert await staying
    assert issuer.readings_count == 1


async def test_a_new_key_is_found_at_once(access: OidcAccess, issuer: OidcIssuer) -> None:
    old = issuer.token()
    assert await is_accepted(access, old)
    issuer.keys.append(make_issuer_key("second", number=1))
    new = issuer.token()
    assert all(await asyncio.gather(*(is_accepted(access, new) for _ in range(20))))
    assert issuer.readings_count == 2
    assert await is_accepted(access, old)


async def test_a_flood_of_forged_key_ids_causes_one_fetch_in_ten_seconds(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock
) -> None:
    token = issuer.token()
    assert await is_accepted(access, token)
    for round_number in range(3):
        forged = [issuer.signed(issuer.claims(), kid=f"forged-{round_number}-{number}") for number in range(50)]
        assert not any(await asyncio.gather(*(is_accepted(access, one) for one in forged)))
        assert not any([await is_accepted(access, one) for one in forged[:5]])
        assert issuer.readings_count == 2 + round_number
        clock.advance(seconds=AGAIN_S - 1)
        assert not await is_accepted(access, forged[0])
        assert issuer.readings_count == 2 + round_number
        clock.advance(seconds=1)
    assert await is_accepted(access, token)


async def test_a_withdrawn_key_fails_once_the_set_is_read_again(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock
) -> None:
    token = issuer.token(exp=9e9)
    assert await is_accepted(access, token)
    issuer.keys = [make_issuer_key("second", number=1)]
    clock.advance(seconds=FRESH_S - 1)
    assert await is_accepted(access, token)
    clock.advance(seconds=1)
    assert not await is_accepted(access, token)
    assert issuer.readings_count == 2, "for its age; that the kid is unknown now is the same reading's answer"


async def test_a_withdrawn_key_fails_after_another_token_caused_a_fetch(access: OidcAccess, issuer: OidcIssuer) -> None:
    old = issuer.token()
    assert await is_accepted(access, old)
    issuer.keys = [make_issuer_key("second", number=1)]
    assert await is_accepted(access, issuer.token())
    assert not await is_accepted(access, old)


async def test_the_keys_are_fetched_at_the_start(access: OidcAccess, issuer: OidcIssuer) -> None:
    access.start()
    assert access._keys._reading is not None
    await access._keys._reading
    assert issuer.requested == [DISCOVERY, JWKS]
    async with issuer.down():
        assert await is_accepted(access, issuer.token())


async def test_a_set_that_is_three_minutes_old_is_read_again_and_after_a_failure_every_ten_seconds(
    issuer: OidcIssuer,
) -> None:
    clock = StillClock()
    keys = IssuerKeys(issuer.url, clock)
    assert await keys.find("first", "RS256") is not None
    clock.at_s += FRESH_S
    assert await keys.find("first", "RS256") is not None
    assert issuer.readings_count == 2
    clock.at_s += FRESH_S
    async with issuer.down():
        assert await keys.find("first", "RS256") is not None
    clock.at_s += AGAIN_S - 1
    assert await keys.find("first", "RS256") is not None
    assert keys._reading is None
    clock.at_s += 1
    assert await keys.find("first", "RS256") is not None
    clock.at_s += 1
    # It waits for the read that is in progress, and for one that began after its question.
    assert await keys.find("unknown", "RS256") is None
    assert issuer.readings_count == 4
    await keys.aclose()


async def test_an_unknown_key_is_searched_for_once_in_exactly_ten_seconds(issuer: OidcIssuer) -> None:
    clock = StillClock()
    keys = IssuerKeys(issuer.url, clock)
    assert await keys.find("unknown", "RS256") is None
    assert issuer.readings_count == 1, "the first read of the set answers the question too"
    for readings_count in (2, 3):
        clock.at_s += AGAIN_S
        assert await keys.find("unknown", "RS256") is None
        assert issuer.readings_count == readings_count
    await keys.aclose()


async def test_without_a_set_the_issuer_is_asked_again_after_exactly_a_second(issuer: OidcIssuer) -> None:
    clock = StillClock()
    keys = IssuerKeys(issuer.url, clock)
    async with issuer.down():
        with pytest.raises(IssuerUnavailable):
            await keys.find("first", "RS256")
    clock.at_s += 0.5
    with pytest.raises(IssuerUnavailable):
        await keys.find("first", "RS256")
    clock.at_s += 0.5
    assert await keys.find("first", "RS256") is not None
    await keys.aclose()


async def test_the_log_says_when_the_keys_have_changed(
    access: OidcAccess, issuer: OidcIssuer, clock: FakeClock
) -> None:
    with structlog.testing.capture_logs() as events:
        assert await is_accepted(access, issuer.token(exp=9e9))
        issuer.keys.append(make_issuer_key("second", number=1))
        for _ in range(2):
            clock.advance(seconds=FRESH_S)
            assert await is_accepted(access, issuer.token(exp=9e9))
    assert [(event["event"], event["keys"]) for event in events] == [
        ("issuer_keys_changed", 1),
        ("issuer_keys_changed", 2),
    ]

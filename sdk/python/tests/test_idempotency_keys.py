"""Idempotency keys that the caller chooses, and requests that are refused before they are sent."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from soundmark_sdk.client import (
    ApiProblem,
    Intent,
    IssueRequest,
)

from .issuing_service import (
    ISSUE_REQUEST,
    IssuingService,
    answer_with,
    fail_to_issue,
    lose_answer,
    lose_request,
    make_client,
    make_problem,
    stay_silent,
)
from .stand_ins import FakeClock


async def test_a_receipt_of_another_request_is_a_conflict(issuing: IssuingService, clock: FakeClock) -> None:
    key = "playout-2026-11-20"
    async with make_client(issuing, clock) as client:
        await client.codes.issue_batch(ISSUE_REQUEST, 1, idempotency_key=key)
        failure = await fail_to_issue(issuing, client, idempotency_key=key)
    assert isinstance(failure, ApiProblem)
    assert (failure.code, failure.unsettled) == ("idempotency_conflict", None)
    assert issuing.state.issued == 1


async def test_the_callers_own_key_returns_the_same_code_again(issuing: IssuingService, clock: FakeClock) -> None:
    async with make_client(issuing, clock) as client:
        codes = [await client.codes.issue(ISSUE_REQUEST, idempotency_key="playout-2026-11-20") for _ in range(2)]
    assert codes[0] == codes[1]
    assert issuing.state.issued == 1


async def test_using_the_callers_own_key_again_does_not_renew_its_age(
    issuing: IssuingService, clock: FakeClock
) -> None:
    """The service counts 24 hours from the first request; with a later start, the client would issue twice."""
    key = "playout-2026-11-20"
    issuing.add_faults(lose_answer, lose_request, lose_request, lose_request)
    async with make_client(issuing, clock, attempts_max=2) as client:
        first = (await fail_to_issue(issuing, client, idempotency_key=key)).unsettled
        clock.advance(timedelta(hours=22).total_seconds())
        assert (await fail_to_issue(issuing, client, idempotency_key=key)).unsettled == first
        clock.advance(timedelta(hours=1).total_seconds())
        assert await client.codes.list_unsettled() == ()


async def test_a_refusal_with_the_callers_own_key_settles_no_earlier_request(
    issuing: IssuingService, clock: FakeClock
) -> None:
    key = "playout-2026-11-20"
    issuing.add_faults(lose_answer, lose_request, answer_with(make_problem(401, "unauthenticated")))
    async with make_client(issuing, clock, attempts_max=2) as client:
        first = (await fail_to_issue(issuing, client, idempotency_key=key)).unsettled
        assert first is not None
        assert (await fail_to_issue(issuing, client, idempotency_key=key)).unsettled == first
        assert await client.codes.list_unsettled() == (first,)


async def test_an_unsettled_idempotency_key_accepts_no_other_request(issuing: IssuingService, clock: FakeClock) -> None:
    key = "playout-2026-11-20"
    issuing.add_faults(lose_answer, lose_request)
    async with make_client(issuing, clock, attempts_max=2) as client:
        first = (await fail_to_issue(issuing, client, idempotency_key=key)).unsettled
        with pytest.raises(ValueError, match="left without an answer"):
            await client.codes.issue_batch(ISSUE_REQUEST, 1, idempotency_key=key)
        assert await client.codes.list_unsettled() == (first,)
        await client.codes.issue(ISSUE_REQUEST, idempotency_key=key)
        assert await client.codes.list_unsettled() == ()
    assert issuing.state.issued == 1


async def test_an_idempotency_key_in_use_is_refused(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(stay_silent)
    async with make_client(issuing, clock) as client:
        calling = asyncio.create_task(client.codes.issue(ISSUE_REQUEST, idempotency_key="playout-2026-11-20"))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="in progress"):
            await client.codes.issue(ISSUE_REQUEST, idempotency_key="playout-2026-11-20")
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)


@pytest.mark.parametrize("key", ["", "x" * 15, "x" * 129, "with a space in it", "line\r\nX-Other: header-x", "é" * 16])
async def test_a_malformed_idempotency_key_is_not_sent(issuing: IssuingService, clock: FakeClock, key: str) -> None:
    async with make_client(issuing, clock) as client:
        with pytest.raises(ValueError, match="idempotency key"):
            await client.codes.issue(ISSUE_REQUEST, idempotency_key=key)
    assert issuing.routes == []


@pytest.mark.parametrize(
    "resource",
    [{"n": float("nan")}, {"n": 2**53}, {"s": {1}}, {"text": "\ud800"}, {"x": "x" * 17_000}],
    ids=["nan", "too large a number", "a set", "a surrogate", "too long"],
)
async def test_an_intent_without_a_canonical_form_is_not_sent(
    issuing: IssuingService, clock: FakeClock, resource: Any
) -> None:
    request = IssueRequest(issuer="R", expires_at=ISSUE_REQUEST.expires_at, intent=Intent("link", "open", resource))
    async with make_client(issuing, clock) as client:
        with pytest.raises(ValueError, match="canonical"):
            await client.codes.issue(request)
    assert issuing.routes == []


async def test_a_time_without_a_zone_is_not_sent(issuing: IssuingService, clock: FakeClock) -> None:
    request = IssueRequest(
        issuer="R", expires_at=ISSUE_REQUEST.expires_at.replace(tzinfo=None), intent=ISSUE_REQUEST.intent
    )
    async with make_client(issuing, clock) as client:
        with pytest.raises(ValueError, match="time zone"):
            await client.codes.issue(request)
    assert issuing.routes == []

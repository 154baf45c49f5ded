"""Issuing exactly once, whatever happens to the connection."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk.client import (
    AnswerMalformed,
    ApiProblem,
    AsyncClient,
    Client,
    ClientFailure,
    Intent,
    IssueRequest,
    MemoryRecoveryStore,
    ServiceUnreachable,
)
from soundmark_sdk.client.api_connection import ANSWER_BYTES_MAX

from .issuing_service import (
    BATCH,
    BATCH_RECOVER,
    CREDENTIAL,
    ISSUE,
    ISSUE_REQUEST,
    RECOVER,
    Fault,
    IssuingService,
    answer_half,
    answer_honestly,
    answer_with,
    lose_answer,
    lose_request,
    make_problem,
    perform_and_answer_with,
    stay_silent,
)
from .stand_ins import FakeClock, make_response


def make_client(service: IssuingService, clock: FakeClock, **settings: Any) -> AsyncClient:
    return AsyncClient(service.url, CREDENTIAL, clock=clock, **{"timeout_s": 5, **settings})


async def fail(service: IssuingService, client: AsyncClient, **options: Any) -> ClientFailure:
    with pytest.raises(ClientFailure) as failure:
        await client.codes.issue(ISSUE_REQUEST, **options)
    assert CREDENTIAL not in str(failure.value) + repr(failure.value)
    assert len(service.keys) == 1
    return failure.value


async def test_each_issuance_has_its_own_key_and_is_forgotten_after_its_answer(
    issuing: IssuingService, clock: FakeClock
) -> None:
    async with make_client(issuing, clock) as client:
        first, second = await client.codes.issue(ISSUE_REQUEST), await client.codes.issue(ISSUE_REQUEST)
        assert await client.codes.list_unsettled() == ()
    assert (first.xr_id, second.xr_id) == ("xr_" + "0" * 22, "xr_" + "0" * 21 + "1")
    assert issuing.routes == [ISSUE, ISSUE]
    one, other = (request.key for request in issuing.state.requests)
    assert one is not None
    assert (len(one), one != other) == (43, True)
    sent = json.loads(issuing.state.requests[0].body)
    assert sent["expires_at"] == "2027-01-01T00:00:00.000Z"
    assert sent["intent"]["resource"] == {"url": "https://example.org/é"}
    assert issuing.state.requests[0].headers["authorization"] == f"Bearer {CREDENTIAL}"


@pytest.mark.parametrize(
    "fault",
    [
        lose_answer,
        answer_half,
        perform_and_answer_with(make_response(503)),
        perform_and_answer_with(make_response(500)),
        perform_and_answer_with(make_response(201, b'{"xr_id": 1}')),
    ],
    ids=["cut", "half", "503", "500", "garbled"],
)
async def test_an_answer_that_is_lost_after_the_commit_is_recovered(
    issuing: IssuingService, clock: FakeClock, fault: Fault
) -> None:
    issuing.add_faults(fault)
    async with make_client(issuing, clock) as client:
        code = await client.codes.issue(ISSUE_REQUEST)
        assert await client.codes.list_unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.routes == [ISSUE, RECOVER]
    assert issuing.state.issued == 1
    assert len({request.body for request in issuing.state.requests}) == len(issuing.keys) == 1


@pytest.mark.parametrize("fault", [lose_request, answer_with(make_response(503))], ids=["cut", "503"])
async def test_an_issuance_that_never_took_place_is_repeated_under_the_same_key(
    issuing: IssuingService, clock: FakeClock, fault: Fault
) -> None:
    issuing.add_faults(fault)
    async with make_client(issuing, clock) as client:
        await client.codes.issue(ISSUE_REQUEST)
    assert issuing.routes == [ISSUE, RECOVER, ISSUE]
    assert issuing.state.issued == 1
    assert len(issuing.keys) == 1
    assert len(clock.slept_s) == 2  # The repeat follows at once, after a pause of 0 seconds.
    assert clock.slept_s[1] == 0


async def test_a_slow_service_is_asked_again(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(stay_silent)
    async with make_client(issuing, clock, timeout_s=2) as client:
        await client.codes.issue(ISSUE_REQUEST)
    assert issuing.routes == [ISSUE, RECOVER]
    assert issuing.state.issued == 1


async def test_whatever_happens_to_each_request_it_issues_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(lose_request, lose_request, answer_honestly, lose_answer, answer_half, answer_honestly)
    async with make_client(issuing, clock, attempts_max=10) as client:
        await client.codes.issue(ISSUE_REQUEST)
    assert issuing.routes == [ISSUE, RECOVER, RECOVER, ISSUE, RECOVER, RECOVER]
    assert issuing.state.issued == 1
    assert len(issuing.keys) == 1


FAULTS = st.sampled_from(
    [
        answer_honestly,
        lose_request,
        lose_answer,
        answer_half,
        answer_with(make_response(503)),
        perform_and_answer_with(make_response(500)),
        answer_with(make_problem(429, "rate_limited")),
    ]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(FAULTS, max_size=8))
async def test_whatever_happens_to_a_call_and_its_repeat_it_issues_once(faults: list[Fault]) -> None:
    """Property: a caller who calls again until there is an answer has one Code, and the service issued one."""
    with IssuingService() as service:
        service.add_faults(*faults)
        async with make_client(service, FakeClock(), attempts_max=3) as client:
            code = None
            while code is None:
                left = None
                try:
                    code = await client.codes.issue(ISSUE_REQUEST)
                except ClientFailure as failure:
                    left = failure.unsettled
                assert await client.codes.list_unsettled() == (() if left is None else (left,))
        assert (code.xr_id, service.state.issued) == ("xr_" + "0" * 22, 1)


async def test_a_batch_is_recovered_whole(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(lose_answer)
    async with make_client(issuing, clock) as client:
        batch = await client.codes.issue_batch(ISSUE_REQUEST, 100)
    assert len({code.xr_id for code in batch.data}) == 100
    assert issuing.routes == [BATCH, BATCH_RECOVER]
    assert issuing.state.issued == 100


def test_blocking_code_recovers_as_well(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(lose_answer)
    with Client(issuing.url, CREDENTIAL, clock=clock) as client:
        assert client.codes.issue(ISSUE_REQUEST).xr_id == "xr_" + "0" * 22
        assert client.codes.list_unsettled() == ()
    assert issuing.routes == [ISSUE, RECOVER]


async def test_a_pause_that_the_service_asks_for_is_honoured(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(
        answer_with(make_problem(429, "rate_limited", Retry_After="7")),
        answer_with(make_problem(503, "database_unavailable", Retry_After="3")),
    )
    async with make_client(issuing, clock) as client:
        await client.codes.issue(ISSUE_REQUEST)
    assert issuing.routes == [ISSUE, ISSUE, RECOVER, ISSUE]
    assert clock.slept_s == [7, 3, 0]


async def test_a_pause_that_is_too_long_ends_it_at_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(answer_with(make_problem(503, "database_unavailable", Retry_After="31")))
    async with make_client(issuing, clock) as client:
        failure = await fail(issuing, client)
        (kept,) = await client.codes.list_unsettled()
    assert isinstance(failure, ApiProblem)
    assert failure.retry_after_s == 31
    assert failure.unsettled == kept
    assert clock.slept_s == []


async def test_attempts_are_limited_and_an_unknown_result_stays_unsettled(
    issuing: IssuingService, clock: FakeClock
) -> None:
    issuing.add_faults(lose_answer, *[lose_request] * 20)
    async with make_client(issuing, clock, attempts_max=4) as client:
        failure = await fail(issuing, client)
        assert isinstance(failure, ServiceUnreachable)
        assert issuing.routes == [ISSUE, RECOVER, RECOVER, RECOVER]
        issuing.state.faults.clear()
        assert failure.unsettled is not None
        (code,) = await client.codes.resume(failure.unsettled)
        assert await client.codes.list_unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.state.issued == 1


async def test_the_same_call_finishes_an_unsettled_issuance(issuing: IssuingService, clock: FakeClock) -> None:
    """The caller can only call again, so a repeated call must not get a second key."""
    issuing.add_faults(lose_answer, *[lose_request] * 3)
    async with make_client(issuing, clock, attempts_max=4) as client:
        await fail(issuing, client)
        await client.codes.issue(ISSUE_REQUEST)
        assert issuing.state.issued == 1
        assert len(issuing.keys) == 1
        await client.codes.issue(ISSUE_REQUEST)
    assert issuing.state.issued == 2
    assert len(issuing.keys) == 2


async def test_a_different_call_is_a_different_issuance(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(lose_answer, *[lose_request] * 3)
    async with make_client(issuing, clock, attempts_max=4) as client:
        await fail(issuing, client)
        await client.codes.issue_batch(ISSUE_REQUEST, 1)
    assert len(issuing.keys) == 2
    assert issuing.state.issued == 2


async def test_two_concurrent_calls_are_two_issuances(issuing: IssuingService, clock: FakeClock) -> None:
    """An issuance in progress is not left over, even if another call has the same body."""
    async with make_client(issuing, clock) as client:
        codes = await asyncio.gather(*(client.codes.issue(ISSUE_REQUEST) for _ in range(5)))
    assert len({code.xr_id for code in codes}) == len(issuing.keys) == 5


async def test_a_cancelled_call_leaves_its_issuance_unsettled(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(stay_silent)
    async with make_client(issuing, clock) as client:
        calling = asyncio.create_task(client.codes.issue(ISSUE_REQUEST))
        while not issuing.state.receipts:  # noqa: ASYNC110 - the event happens in the other thread
            await asyncio.sleep(0.005)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        (kept,) = await client.codes.list_unsettled()
        (code,) = await client.codes.recover(kept)
        assert await client.codes.list_unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.routes == [ISSUE, RECOVER]


async def test_an_exhausted_quota_is_not_retried(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(answer_with(make_problem(429, "quota_exceeded", Retry_After="1")))
    async with make_client(issuing, clock) as client:
        failure = await fail(issuing, client)
        assert await client.codes.list_unsettled() == ()
    assert isinstance(failure, ApiProblem)
    assert (failure.status, failure.code, failure.retry_after_s, failure.unsettled) == (429, "quota_exceeded", 1, None)
    assert issuing.routes == [ISSUE]


@pytest.mark.parametrize("code", ["validation_failed", "campaign_archived", "forbidden", "unauthenticated"])
async def test_a_refusal_of_the_first_request_settles_the_issuance(
    issuing: IssuingService, clock: FakeClock, code: str
) -> None:
    issuing.add_faults(answer_with(make_problem(409, code)))
    async with make_client(issuing, clock) as client:
        assert (await fail(issuing, client)).unsettled is None
        assert await client.codes.list_unsettled() == ()
    assert issuing.routes == [ISSUE]


@pytest.mark.parametrize("code", ["quota_exceeded", "campaign_not_open", "validation_failed"])
async def test_a_refusal_after_the_key_was_looked_up_settles_the_issuance(
    issuing: IssuingService, clock: FakeClock, code: str
) -> None:
    issuing.add_faults(lose_request, answer_honestly, answer_with(make_problem(409, code)))
    async with make_client(issuing, clock) as client:
        assert (await fail(issuing, client)).unsettled is None
    assert issuing.routes == [ISSUE, RECOVER, ISSUE]


@pytest.mark.parametrize("code", ["unauthenticated", "forbidden", "organization_not_found", "idempotency_conflict"])
async def test_a_refusal_that_says_nothing_about_the_first_request_settles_nothing(
    issuing: IssuingService, clock: FakeClock, code: str
) -> None:
    """For example a key that was revoked in between: the result of the first request stays unknown."""
    issuing.add_faults(lose_answer, answer_with(make_problem(409, code)))
    async with make_client(issuing, clock) as client:
        failure = await fail(issuing, client)
        assert failure.unsettled is not None
        await client.codes.forget(failure.unsettled)
        assert await client.codes.list_unsettled() == ()
    assert isinstance(failure, ApiProblem)
    assert failure.code == code
    assert issuing.routes == [ISSUE, RECOVER]


async def test_a_receipt_of_another_request_is_a_conflict(issuing: IssuingService, clock: FakeClock) -> None:
    key = "playout-2026-11-20"
    async with make_client(issuing, clock) as client:
        await client.codes.issue_batch(ISSUE_REQUEST, 1, idempotency_key=key)
        failure = await fail(issuing, client, idempotency_key=key)
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
        first = (await fail(issuing, client, idempotency_key=key)).unsettled
        clock.advance(timedelta(hours=22).total_seconds())
        assert (await fail(issuing, client, idempotency_key=key)).unsettled == first
        clock.advance(timedelta(hours=1).total_seconds())
        assert await client.codes.list_unsettled() == ()


async def test_a_refusal_with_the_callers_own_key_settles_no_earlier_request(
    issuing: IssuingService, clock: FakeClock
) -> None:
    key = "playout-2026-11-20"
    issuing.add_faults(lose_answer, lose_request, answer_with(make_problem(401, "unauthenticated")))
    async with make_client(issuing, clock, attempts_max=2) as client:
        first = (await fail(issuing, client, idempotency_key=key)).unsettled
        assert first is not None
        assert (await fail(issuing, client, idempotency_key=key)).unsettled == first
        assert await client.codes.list_unsettled() == (first,)


async def test_an_unsettled_idempotency_key_accepts_no_other_request(issuing: IssuingService, clock: FakeClock) -> None:
    key = "playout-2026-11-20"
    issuing.add_faults(lose_answer, lose_request)
    async with make_client(issuing, clock, attempts_max=2) as client:
        first = (await fail(issuing, client, idempotency_key=key)).unsettled
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


async def test_without_a_connection_nothing_is_sent_or_remembered(clock: FakeClock) -> None:
    async with AsyncClient("http://127.0.0.1:9", CREDENTIAL, clock=clock, attempts_max=3) as client:
        with pytest.raises(ServiceUnreachable) as failure:
            await client.codes.issue(ISSUE_REQUEST)
        assert await client.codes.list_unsettled() == ()
    assert (failure.value.was_sent, failure.value.unsettled) == (False, None)
    assert len(clock.slept_s) == 2


async def test_an_endless_answer_leaves_the_issuance_unsettled(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(*[perform_and_answer_with(make_response(201, b" " * (ANSWER_BYTES_MAX + 1)))] * 2)
    async with make_client(issuing, clock, attempts_max=2) as client:
        failure = await fail(issuing, client)
        assert failure.unsettled is not None
    assert isinstance(failure, AnswerMalformed)
    assert issuing.routes == [ISSUE, RECOVER]


async def test_an_issuance_is_forgotten_after_23_hours(issuing: IssuingService, clock: FakeClock) -> None:
    """The service forgets after 24 hours, and a repeat after that would issue again."""
    issuing.add_faults(lose_answer, lose_request)
    store = MemoryRecoveryStore()
    async with make_client(issuing, clock, attempts_max=2, recovery=store) as client:
        kept = (await fail(issuing, client)).unsettled
        assert kept is not None
        clock.advance(timedelta(hours=23).total_seconds() - 2)
        assert await client.codes.list_unsettled() == (kept,)
        clock.advance(2)
        assert await client.codes.list_unsettled() == store.list_unsettled() == ()
        for finish in (client.codes.resume, client.codes.recover):
            with pytest.raises(ValueError, match="too old"):
                await finish(kept)
        await client.codes.issue(ISSUE_REQUEST)
    assert len(issuing.keys) == 2


async def test_an_issuance_at_another_service_is_not_finished_here(issuing: IssuingService, clock: FakeClock) -> None:
    store = MemoryRecoveryStore()
    issuing.add_faults(lose_answer, lose_request)
    async with make_client(issuing, clock, attempts_max=2, recovery=store) as client:
        kept = (await fail(issuing, client)).unsettled
    assert kept is not None
    with IssuingService() as other:
        async with make_client(other, clock, recovery=store) as client:
            assert await client.codes.list_unsettled() == ()
            with pytest.raises(ValueError, match="another service"):
                await client.codes.resume(kept)
            await client.codes.issue(ISSUE_REQUEST)
        assert other.routes == [ISSUE]
    assert kept.idempotency_key not in other.keys


async def test_recovering_an_issuance_that_never_took_place_issues_nothing(
    issuing: IssuingService, clock: FakeClock
) -> None:
    issuing.add_faults(lose_request, lose_request)
    async with make_client(issuing, clock, attempts_max=2) as client:
        kept = (await fail(issuing, client)).unsettled
        assert kept is not None
        with pytest.raises(ApiProblem, match="code_issue_not_found"):
            await client.codes.recover(kept)
        assert issuing.state.issued == 0
        assert await client.codes.list_unsettled() == (kept,)
        await client.codes.resume(kept)
    assert issuing.state.issued == 1


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


async def test_a_credential_that_cannot_be_sent_leaves_nothing_behind(issuing: IssuingService) -> None:
    async with AsyncClient(issuing.url, lambda: "two words") as client:
        with pytest.raises(ValueError, match="credential") as failure:
            await client.codes.issue(ISSUE_REQUEST)
        assert await client.codes.list_unsettled() == ()
    assert "two words" not in str(failure.value)
    assert issuing.routes == []

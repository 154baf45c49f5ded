"""Issuing exactly once, whatever happens to the connection."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk.client import (
    ApiProblem,
    Client,
    ClientFailure,
    ServiceUnreachable,
)

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
    fail_to_issue,
    lose_answer,
    lose_request,
    make_client,
    make_problem,
    perform_and_answer_with,
    stay_silent,
)
from .stand_ins import FakeClock, make_response


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
        failure = await fail_to_issue(issuing, client)
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
        failure = await fail_to_issue(issuing, client)
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
        await fail_to_issue(issuing, client)
        await client.codes.issue(ISSUE_REQUEST)
        assert issuing.state.issued == 1
        assert len(issuing.keys) == 1
        await client.codes.issue(ISSUE_REQUEST)
    assert issuing.state.issued == 2
    assert len(issuing.keys) == 2


async def test_a_different_call_is_a_different_issuance(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(lose_answer, *[lose_request] * 3)
    async with make_client(issuing, clock, attempts_max=4) as client:
        await fail_to_issue(issuing, client)
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

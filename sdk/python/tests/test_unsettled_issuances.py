"""An issuance whose result is unknown: what settles it, and when it is given up."""

from datetime import timedelta

import pytest
from soundmark_sdk.client import (
    AnswerMalformed,
    ApiProblem,
    AsyncClient,
    MemoryRecoveryStore,
    ServiceUnreachable,
)
from soundmark_sdk.client.api_connection import ANSWER_BYTES_MAX

from .issuing_service import (
    CREDENTIAL,
    ISSUE,
    ISSUE_REQUEST,
    RECOVER,
    IssuingService,
    answer_honestly,
    answer_with,
    fail_to_issue,
    lose_answer,
    lose_request,
    make_client,
    make_problem,
    perform_and_answer_with,
)
from .stand_ins import FakeClock, make_response


async def test_an_exhausted_quota_is_not_retried(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.add_faults(answer_with(make_problem(429, "quota_exceeded", Retry_After="1")))
    async with make_client(issuing, clock) as client:
        failure = await fail_to_issue(issuing, client)
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
        assert (await fail_to_issue(issuing, client)).unsettled is None
        assert await client.codes.list_unsettled() == ()
    assert issuing.routes == [ISSUE]


@pytest.mark.parametrize("code", ["quota_exceeded", "campaign_not_open", "validation_failed", "organization_suspended"])
async def test_a_refusal_after_the_key_was_looked_up_settles_the_issuance(
    issuing: IssuingService, clock: FakeClock, code: str
) -> None:
    issuing.add_faults(lose_request, answer_honestly, answer_with(make_problem(409, code)))
    async with make_client(issuing, clock) as client:
        assert (await fail_to_issue(issuing, client)).unsettled is None
    assert issuing.routes == [ISSUE, RECOVER, ISSUE]


@pytest.mark.parametrize("code", ["unauthenticated", "forbidden", "organization_not_found", "idempotency_conflict"])
async def test_a_refusal_that_says_nothing_about_the_first_request_settles_nothing(
    issuing: IssuingService, clock: FakeClock, code: str
) -> None:
    """For example a key that was revoked in between: the result of the first request stays unknown."""
    issuing.add_faults(lose_answer, answer_with(make_problem(409, code)))
    async with make_client(issuing, clock) as client:
        failure = await fail_to_issue(issuing, client)
        assert failure.unsettled is not None
        await client.codes.forget(failure.unsettled)
        assert await client.codes.list_unsettled() == ()
    assert isinstance(failure, ApiProblem)
    assert failure.code == code
    assert issuing.routes == [ISSUE, RECOVER]


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
        failure = await fail_to_issue(issuing, client)
        assert failure.unsettled is not None
    assert isinstance(failure, AnswerMalformed)
    assert issuing.routes == [ISSUE, RECOVER]


async def test_an_issuance_is_forgotten_after_23_hours(issuing: IssuingService, clock: FakeClock) -> None:
    """The service forgets after 24 hours, and a repeat after that would issue again."""
    issuing.add_faults(lose_answer, lose_request)
    store = MemoryRecoveryStore()
    async with make_client(issuing, clock, attempts_max=2, recovery=store) as client:
        kept = (await fail_to_issue(issuing, client)).unsettled
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
        kept = (await fail_to_issue(issuing, client)).unsettled
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
        kept = (await fail_to_issue(issuing, client)).unsettled
        assert kept is not None
        with pytest.raises(ApiProblem, match="code_issue_not_found"):
            await client.codes.recover(kept)
        assert issuing.state.issued == 0
        assert await client.codes.list_unsettled() == (kept,)
        await client.codes.resume(kept)
    assert issuing.state.issued == 1


async def test_a_credential_that_cannot_be_sent_leaves_nothing_behind(issuing: IssuingService) -> None:
    async with AsyncClient(issuing.url, lambda: "two words") as client:
        with pytest.raises(ValueError, match="credential") as failure:
            await client.codes.issue(ISSUE_REQUEST)
        assert await client.codes.list_unsettled() == ()
    assert "two words" not in str(failure.value)
    assert issuing.routes == []

"""Issuing exactly once, whatever becomes of the connection."""

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
    MemoryRecoveryStore,
    ServiceUnreachable,
    Wish,
)
from soundmark_sdk.client.exchange import ANSWER_BYTES_MAX

from .issuing_service import (
    BATCH,
    BATCH_RECOVER,
    CREDENTIAL,
    ISSUE,
    RECOVER,
    WISH,
    Fault,
    IssuingService,
    half,
    honest,
    lost_after,
    lost_before,
    problem,
    says,
    says_after,
    silent,
)
from .stand_ins import FakeClock, http


def client_of(service: IssuingService, clock: FakeClock, **settings: Any) -> AsyncClient:
    return AsyncClient(service.url, CREDENTIAL, clock=clock, **{"timeout_s": 5, **settings})


async def fail(service: IssuingService, client: AsyncClient, **options: Any) -> ClientFailure:
    with pytest.raises(ClientFailure) as failure:
        await client.codes.issue(WISH, **options)
    assert CREDENTIAL not in str(failure.value) + repr(failure.value)
    assert len(service.keys) == 1
    return failure.value


async def test_an_issuance_carries_a_key_of_its_own_and_is_forgotten_once_answered(
    issuing: IssuingService, clock: FakeClock
) -> None:
    async with client_of(issuing, clock) as client:
        first, second = await client.codes.issue(WISH), await client.codes.issue(WISH)
        assert await client.codes.unsettled() == ()
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
    [lost_after, half, says_after(http(503)), says_after(http(500)), says_after(http(201, b'{"xr_id": 1}'))],
    ids=["cut", "half", "503", "500", "garbled"],
)
async def test_an_answer_that_is_lost_after_the_commit_is_recovered(
    issuing: IssuingService, clock: FakeClock, fault: Fault
) -> None:
    issuing.befall(fault)
    async with client_of(issuing, clock) as client:
        code = await client.codes.issue(WISH)
        assert await client.codes.unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.routes == [ISSUE, RECOVER]
    assert issuing.state.issued == 1
    assert len({request.body for request in issuing.state.requests}) == len(issuing.keys) == 1


@pytest.mark.parametrize("fault", [lost_before, says(http(503))], ids=["cut", "503"])
async def test_an_issuance_that_never_took_place_is_repeated_under_the_same_key(
    issuing: IssuingService, clock: FakeClock, fault: Fault
) -> None:
    issuing.befall(fault)
    async with client_of(issuing, clock) as client:
        await client.codes.issue(WISH)
    assert issuing.routes == [ISSUE, RECOVER, ISSUE]
    assert issuing.state.issued == 1
    assert len(issuing.keys) == 1
    assert len(clock.slept_s) == 2  # The repeat follows at once: a pause of nothing.
    assert clock.slept_s[1] == 0


async def test_a_service_that_is_too_slow_is_asked_again(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(silent)
    async with client_of(issuing, clock, timeout_s=2) as client:
        await client.codes.issue(WISH)
    assert issuing.routes == [ISSUE, RECOVER]
    assert issuing.state.issued == 1


async def test_whatever_befalls_each_request_it_is_issued_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(lost_before, lost_before, honest, lost_after, half, honest)
    async with client_of(issuing, clock, attempts_max=10) as client:
        await client.codes.issue(WISH)
    assert issuing.routes == [ISSUE, RECOVER, RECOVER, ISSUE, RECOVER, RECOVER]
    assert issuing.state.issued == 1
    assert len(issuing.keys) == 1


FAULTS = st.sampled_from(
    [honest, lost_before, lost_after, half, says(http(503)), says_after(http(500)), says(problem(429, "rate_limited"))]
)


@settings(deadline=None, max_examples=60)
@given(st.lists(FAULTS, max_size=8))
async def test_whatever_befalls_a_call_and_its_repeat_it_is_issued_once(faults: list[Fault]) -> None:
    """Property: a caller who calls again until there is an answer has one Code, and the service issued one."""
    with IssuingService() as service:
        service.befall(*faults)
        async with client_of(service, FakeClock(), attempts_max=3) as client:
            code = None
            while code is None:
                left = None
                try:
                    code = await client.codes.issue(WISH)
                except ClientFailure as failure:
                    left = failure.unsettled
                assert await client.codes.unsettled() == (() if left is None else (left,))
        assert (code.xr_id, service.state.issued) == ("xr_" + "0" * 22, 1)


async def test_a_batch_is_recovered_whole(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(lost_after)
    async with client_of(issuing, clock) as client:
        batch = await client.codes.issue_batch(WISH, 100)
    assert len({code.xr_id for code in batch.data}) == 100
    assert issuing.routes == [BATCH, BATCH_RECOVER]
    assert issuing.state.issued == 100


def test_blocking_code_recovers_as_well(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(lost_after)
    with Client(issuing.url, CREDENTIAL, clock=clock) as client:
        assert client.codes.issue(WISH).xr_id == "xr_" + "0" * 22
        assert client.codes.unsettled() == ()
    assert issuing.routes == [ISSUE, RECOVER]


async def test_a_pause_that_the_service_asks_for_is_kept(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(
        says(problem(429, "rate_limited", Retry_After="7")), says(problem(503, "database_unavailable", Retry_After="3"))
    )
    async with client_of(issuing, clock) as client:
        await client.codes.issue(WISH)
    assert issuing.routes == [ISSUE, ISSUE, RECOVER, ISSUE]
    assert clock.slept_s == [7, 3, 0]


async def test_a_pause_that_is_too_long_ends_it_at_once(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(says(problem(503, "database_unavailable", Retry_After="31")))
    async with client_of(issuing, clock) as client:
        failure = await fail(issuing, client)
        (kept,) = await client.codes.unsettled()
    assert isinstance(failure, ApiProblem)
    assert failure.retry_after_s == 31
    assert failure.unsettled == kept
    assert clock.slept_s == []


async def test_attempts_are_bounded_and_what_is_not_known_stays_remembered(
    issuing: IssuingService, clock: FakeClock
) -> None:
    issuing.befall(lost_after, *[lost_before] * 20)
    async with client_of(issuing, clock, attempts_max=4) as client:
        failure = await fail(issuing, client)
        assert isinstance(failure, ServiceUnreachable)
        assert issuing.routes == [ISSUE, RECOVER, RECOVER, RECOVER]
        issuing.state.faults.clear()
        assert failure.unsettled is not None
        (code,) = await client.codes.resume(failure.unsettled)
        assert await client.codes.unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.state.issued == 1


async def test_the_same_call_again_finishes_what_was_left(issuing: IssuingService, clock: FakeClock) -> None:
    """Never a second key for one intent of the caller, who may do nothing but call again."""
    issuing.befall(lost_after, *[lost_before] * 3)
    async with client_of(issuing, clock, attempts_max=4) as client:
        await fail(issuing, client)
        await client.codes.issue(WISH)
        assert issuing.state.issued == 1
        assert len(issuing.keys) == 1
        await client.codes.issue(WISH)
    assert issuing.state.issued == 2
    assert len(issuing.keys) == 2


async def test_another_call_is_another_issuance(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(lost_after, *[lost_before] * 3)
    async with client_of(issuing, clock, attempts_max=4) as client:
        await fail(issuing, client)
        await client.codes.issue_batch(WISH, 1)
    assert len(issuing.keys) == 2
    assert issuing.state.issued == 2


async def test_two_calls_at_once_are_two_issuances(issuing: IssuingService, clock: FakeClock) -> None:
    """What is under way is nobody's left-over, however equal it is."""
    async with client_of(issuing, clock) as client:
        codes = await asyncio.gather(*(client.codes.issue(WISH) for _ in range(5)))
    assert len({code.xr_id for code in codes}) == len(issuing.keys) == 5


async def test_a_call_that_is_cancelled_is_left_over(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(silent)
    async with client_of(issuing, clock) as client:
        calling = asyncio.create_task(client.codes.issue(WISH))
        while not issuing.state.receipts:  # noqa: ASYNC110 - the event happens in the other thread
            await asyncio.sleep(0.005)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        (kept,) = await client.codes.unsettled()
        (code,) = await client.codes.recover(kept)
        assert await client.codes.unsettled() == ()
    assert code.xr_id == "xr_" + "0" * 22
    assert issuing.routes == [ISSUE, RECOVER]


async def test_a_quota_that_is_used_up_is_not_tried_again(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(says(problem(429, "quota_exceeded", Retry_After="1")))
    async with client_of(issuing, clock) as client:
        failure = await fail(issuing, client)
        assert await client.codes.unsettled() == ()
    assert isinstance(failure, ApiProblem)
    assert (failure.status, failure.code, failure.retry_after_s, failure.unsettled) == (429, "quota_exceeded", 1, None)
    assert issuing.routes == [ISSUE]


@pytest.mark.parametrize("code", ["validation_failed", "campaign_archived", "forbidden", "unauthenticated"])
async def test_what_is_refused_at_first_is_settled(issuing: IssuingService, clock: FakeClock, code: str) -> None:
    issuing.befall(says(problem(409, code)))
    async with client_of(issuing, clock) as client:
        assert (await fail(issuing, client)).unsettled is None
        assert await client.codes.unsettled() == ()
    assert issuing.routes == [ISSUE]


@pytest.mark.parametrize("code", ["quota_exceeded", "campaign_not_open", "validation_failed"])
async def test_a_repeat_that_is_refused_after_its_key_was_looked_up_is_settled(
    issuing: IssuingService, clock: FakeClock, code: str
) -> None:
    issuing.befall(lost_before, honest, says(problem(409, code)))
    async with client_of(issuing, clock) as client:
        assert (await fail(issuing, client)).unsettled is None
    assert issuing.routes == [ISSUE, RECOVER, ISSUE]


@pytest.mark.parametrize("code", ["unauthenticated", "forbidden", "organization_not_found", "idempotency_conflict"])
async def test_a_refusal_that_says_nothing_of_the_first_request_settles_nothing(
    issuing: IssuingService, clock: FakeClock, code: str
) -> None:
    """A key that was revoked between the two, say: what the first request did is as unknown as before."""
    issuing.befall(lost_after, says(problem(409, code)))
    async with client_of(issuing, clock) as client:
        failure = await fail(issuing, client)
        assert failure.unsettled is not None
        await client.codes.forget(failure.unsettled)
        assert await client.codes.unsettled() == ()
    assert isinstance(failure, ApiProblem)
    assert failure.code == code
    assert issuing.routes == [ISSUE, RECOVER]


async def test_a_receipt_of_another_request_is_a_conflict_and_no_second_key(
    issuing: IssuingService, clock: FakeClock
) -> None:
    key = "playout-2026-11-20"
    async with client_of(issuing, clock) as client:
        await client.codes.issue_batch(WISH, 1, idempotency_key=key)
        failure = await fail(issuing, client, idempotency_key=key)
    assert isinstance(failure, ApiProblem)
    assert (failure.code, failure.unsettled) == ("idempotency_conflict", None)
    assert issuing.state.issued == 1


async def test_a_key_of_the_callers_own_answers_the_same_again(issuing: IssuingService, clock: FakeClock) -> None:
    async with client_of(issuing, clock) as client:
        codes = [await client.codes.issue(WISH, idempotency_key="playout-2026-11-20") for _ in range(2)]
    assert codes[0] == codes[1]
    assert issuing.state.issued == 1


async def test_a_key_of_the_callers_own_is_no_younger_for_being_used_again(
    issuing: IssuingService, clock: FakeClock
) -> None:
    """The service counts its 24 hours from the first request: what is remembered as newer would be issued twice."""
    key = "playout-2026-11-20"
    issuing.befall(lost_after, lost_before, lost_before, lost_before)
    async with client_of(issuing, clock, attempts_max=2) as client:
        first = (await fail(issuing, client, idempotency_key=key)).unsettled
        clock.advance(timedelta(hours=22).total_seconds())
        assert (await fail(issuing, client, idempotency_key=key)).unsettled == first
        clock.advance(timedelta(hours=1).total_seconds())
        assert await client.codes.unsettled() == ()


async def test_a_refusal_under_a_key_of_the_callers_own_settles_nothing_of_before(
    issuing: IssuingService, clock: FakeClock
) -> None:
    key = "playout-2026-11-20"
    issuing.befall(lost_after, lost_before, says(problem(401, "unauthenticated")))
    async with client_of(issuing, clock, attempts_max=2) as client:
        first = (await fail(issuing, client, idempotency_key=key)).unsettled
        assert first is not None
        assert (await fail(issuing, client, idempotency_key=key)).unsettled == first
        assert await client.codes.unsettled() == (first,)


async def test_a_key_that_was_left_without_an_answer_takes_no_other_request(
    issuing: IssuingService, clock: FakeClock
) -> None:
    key = "playout-2026-11-20"
    issuing.befall(lost_after, lost_before)
    async with client_of(issuing, clock, attempts_max=2) as client:
        first = (await fail(issuing, client, idempotency_key=key)).unsettled
        with pytest.raises(ValueError, match="left without an answer"):
            await client.codes.issue_batch(WISH, 1, idempotency_key=key)
        assert await client.codes.unsettled() == (first,)
        await client.codes.issue(WISH, idempotency_key=key)
        assert await client.codes.unsettled() == ()
    assert issuing.state.issued == 1


async def test_a_key_that_is_in_use_is_refused(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(silent)
    async with client_of(issuing, clock) as client:
        calling = asyncio.create_task(client.codes.issue(WISH, idempotency_key="playout-2026-11-20"))
        await asyncio.sleep(0)
        with pytest.raises(ValueError, match="under way"):
            await client.codes.issue(WISH, idempotency_key="playout-2026-11-20")
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)


@pytest.mark.parametrize("key", ["", "x" * 15, "x" * 129, "with a space in it", "line\r\nX-Other: header-x", "é" * 16])
async def test_what_is_no_key_is_not_sent(issuing: IssuingService, clock: FakeClock, key: str) -> None:
    async with client_of(issuing, clock) as client:
        with pytest.raises(ValueError, match="idempotency key"):
            await client.codes.issue(WISH, idempotency_key=key)
    assert issuing.routes == []


async def test_without_a_connection_nothing_was_sent_and_nothing_stays(clock: FakeClock) -> None:
    async with AsyncClient("http://127.0.0.1:9", CREDENTIAL, clock=clock, attempts_max=3) as client:
        with pytest.raises(ServiceUnreachable) as failure:
            await client.codes.issue(WISH)
        assert await client.codes.unsettled() == ()
    assert (failure.value.was_sent, failure.value.unsettled) == (False, None)
    assert len(clock.slept_s) == 2


async def test_an_endless_answer_is_given_up_and_stays_remembered(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(*[says_after(http(201, b" " * (ANSWER_BYTES_MAX + 1)))] * 2)
    async with client_of(issuing, clock, attempts_max=2) as client:
        failure = await fail(issuing, client)
        assert failure.unsettled is not None
    assert isinstance(failure, AnswerMalformed)
    assert issuing.routes == [ISSUE, RECOVER]


async def test_what_is_23_hours_old_is_forgotten(issuing: IssuingService, clock: FakeClock) -> None:
    """The service forgets after 24, and a repeat would then issue a second time."""
    issuing.befall(lost_after, lost_before)
    store = MemoryRecoveryStore()
    async with client_of(issuing, clock, attempts_max=2, recovery=store) as client:
        kept = (await fail(issuing, client)).unsettled
        assert kept is not None
        clock.advance(timedelta(hours=23).total_seconds() - 2)
        assert await client.codes.unsettled() == (kept,)
        clock.advance(2)
        assert await client.codes.unsettled() == store.unsettled() == ()
        for finish in (client.codes.resume, client.codes.recover):
            with pytest.raises(ValueError, match="too old"):
                await finish(kept)
        await client.codes.issue(WISH)
    assert len(issuing.keys) == 2


async def test_what_was_sent_to_another_service_is_not_finished_here(issuing: IssuingService, clock: FakeClock) -> None:
    store = MemoryRecoveryStore()
    issuing.befall(lost_after, lost_before)
    async with client_of(issuing, clock, attempts_max=2, recovery=store) as client:
        kept = (await fail(issuing, client)).unsettled
    assert kept is not None
    with IssuingService() as other:
        async with client_of(other, clock, recovery=store) as client:
            assert await client.codes.unsettled() == ()
            with pytest.raises(ValueError, match="another service"):
                await client.codes.resume(kept)
            await client.codes.issue(WISH)
        assert other.routes == [ISSUE]
    assert kept.idempotency_key not in other.keys


async def test_a_recovery_of_what_never_took_place_issues_nothing(issuing: IssuingService, clock: FakeClock) -> None:
    issuing.befall(lost_before, lost_before)
    async with client_of(issuing, clock, attempts_max=2) as client:
        kept = (await fail(issuing, client)).unsettled
        assert kept is not None
        with pytest.raises(ApiProblem, match="code_issue_not_found"):
            await client.codes.recover(kept)
        assert issuing.state.issued == 0
        assert await client.codes.unsettled() == (kept,)
        await client.codes.resume(kept)
    assert issuing.state.issued == 1


@pytest.mark.parametrize(
    "resource",
    [{"n": float("nan")}, {"n": 2**53}, {"s": {1}}, {"text": "\ud800"}, {"x": "x" * 17_000}],
    ids=["nan", "too large a number", "a set", "a surrogate", "too long"],
)
async def test_what_has_no_canonical_form_is_not_sent(issuing: IssuingService, clock: FakeClock, resource: Any) -> None:
    wish = Wish(issuer="R", expires_at=WISH.expires_at, intent=Intent("link", "open", resource))
    async with client_of(issuing, clock) as client:
        with pytest.raises(ValueError, match="canonical"):
            await client.codes.issue(wish)
    assert issuing.routes == []


async def test_a_time_without_a_zone_is_not_sent(issuing: IssuingService, clock: FakeClock) -> None:
    wish = Wish(issuer="R", expires_at=WISH.expires_at.replace(tzinfo=None), intent=WISH.intent)
    async with client_of(issuing, clock) as client:
        with pytest.raises(ValueError, match="time zone"):
            await client.codes.issue(wish)
    assert issuing.routes == []


async def test_a_credential_that_cannot_be_sent_leaves_nothing_behind(issuing: IssuingService) -> None:
    async with AsyncClient(issuing.url, lambda: "two words") as client:
        with pytest.raises(ValueError, match="credential") as failure:
            await client.codes.issue(WISH)
        assert await client.codes.unsettled() == ()
    assert "two words" not in str(failure.value)
    assert issuing.routes == []

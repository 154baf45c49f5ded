import json
from typing import Any

import httpx2
import pytest
from soundmark_sdk import AsyncReceiver, Receiver, ReceiverFailure

from .issuer import TOKEN


def answering(status: int, sent: list[httpx2.Request]) -> httpx2.MockTransport:
    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(status, json={}, headers={"Retry-After": "60"})

    return httpx2.MockTransport(answer)


async def test_a_report_is_sent_once_with_what_the_person_wrote() -> None:
    sent: list[httpx2.Request] = []
    async with AsyncReceiver("https://core.test", transport=answering(202, sent)) as receiver:
        await receiver.report_abuse(TOKEN, "malware", "It offers an update.", contact="me@example.org")
        await receiver.report_abuse(TOKEN, "spam")
    assert [(request.method, request.url.path) for request in sent] == [("POST", "/v1/abuse-reports")] * 2
    first, second = [json.loads(request.content) for request in sent]
    words = {"text": "It offers an update.", "contact": "me@example.org"}
    assert first == {"token": TOKEN, "category": "malware", **words}
    assert second == {"token": TOKEN, "category": "spam", "text": "", "contact": None}


def test_blocking_code_reports_too() -> None:
    sent: list[httpx2.Request] = []
    with Receiver("https://core.test", transport=answering(202, sent)) as receiver:
        receiver.report_abuse(TOKEN, "other", "Strange.")
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [(429, "rate_limited"), (503, "temporarily_unavailable"), (422, "unverifiable"), (200, "unverifiable")],
)
async def test_a_refusal_has_its_reason_and_is_not_repeated(status: int, reason: str) -> None:
    sent: list[httpx2.Request] = []
    async with AsyncReceiver("https://core.test", transport=answering(status, sent)) as receiver:
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.report_abuse(TOKEN, "spam")
    assert (failure.value.reason, len(sent)) == (reason, 1)


async def test_without_an_answer_it_is_a_failure_of_the_network() -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("PLANTED")

    async with AsyncReceiver("https://core.test", transport=httpx2.MockTransport(fail)) as receiver:
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.report_abuse(TOKEN, "spam")
    assert failure.value.reason == "network"


@pytest.mark.parametrize("words", [{"text": "a" * 2001}, {"contact": ""}, {"contact": "a" * 255}])
async def test_what_is_too_long_is_refused_without_a_request(words: dict[str, Any]) -> None:
    sent: list[httpx2.Request] = []
    async with AsyncReceiver("https://core.test", transport=answering(202, sent)) as receiver:
        with pytest.raises(ValueError, match="must have"):
            await receiver.report_abuse(TOKEN, "spam", **words)
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.report_abuse("nonsense", "spam")
    assert (failure.value.reason, sent) == ("code_unavailable", [])

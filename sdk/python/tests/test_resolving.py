import asyncio
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from soundmark_sdk import AsyncReceiver, Receiver, ReceiverFailure, Resolution
from soundmark_sdk.receiver.resolver import BODY_BYTES_MAX

from .issuer import INTENT, MEASURED, NOW, TOKEN, XR_ID, Issuer, compact
from .stand_ins import FakeClock, Service, make_response

RESOLVE = f"/v1/resolve/{TOKEN}"


async def resolve(service: Service, clock: FakeClock, **settings: Any) -> Resolution:
    async with AsyncReceiver(service.url, clock=clock, **settings) as receiver:
        return await receiver.resolve(TOKEN)


async def fail(service: Service, clock: FakeClock, **settings: Any) -> ReceiverFailure:
    with pytest.raises(ReceiverFailure) as failure:
        await resolve(service, clock, **settings)
    assert "server text" not in "".join(traceback.format_exception(failure.value))
    return failure.value


async def test_a_genuine_answer_becomes_an_intent(service: Service, clock: FakeClock) -> None:
    resolution = await resolve(service, clock)
    assert (resolution.xr_id, resolution.intent.resource) == (XR_ID, INTENT["resource"])
    assert service.paths() == [RESOLVE, "/v1/keys"]
    assert service.received[0].headers["x-svc-resolution-proof"] == "ed25519-v1"


def test_blocking_code_gets_the_same_result(service: Service, clock: FakeClock) -> None:
    with Receiver(service.url, clock=clock) as receiver:
        assert receiver.resolve(TOKEN).xr_id == XR_ID
        service.resolve = make_response(410)
        with pytest.raises(ReceiverFailure) as failure:
            receiver.resolve(TOKEN)
    assert failure.value.reason == "expired"


def test_a_closed_receiver_refuses_calls(service: Service) -> None:
    receiver = Receiver(service.url)
    receiver.close()
    receiver.close()
    with pytest.raises(RuntimeError, match="closed"):
        receiver.resolve(TOKEN)


async def test_a_closed_asyncio_receiver_refuses_and_does_not_connect(service: Service, clock: FakeClock) -> None:
    receiver = AsyncReceiver(service.url, clock=clock)
    await receiver.resolve(TOKEN)
    request_count = len(service.received)
    await receiver.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await receiver.resolve(TOKEN)
    assert len(service.received) == request_count


def test_a_receiver_that_is_closing_refuses_calls(service: Service) -> None:
    """The call would reach a loop that is about to stop, and would wait for ever."""
    errors: list[str] = []

    def resolve_late() -> None:
        try:
            receiver.resolve(TOKEN)
        except RuntimeError as error:
            errors.append(str(error))

    class Closing(httpx2.AsyncHTTPTransport):
        async def aclose(self) -> None:
            await asyncio.to_thread(resolve_late)
            await super().aclose()

    receiver = Receiver(service.url, transport=Closing())
    receiver.close()
    assert errors == ["This receiver is closed."]
    assert service.received == []


def test_closing_ends_the_wait_of_another_thread(service: Service) -> None:
    arrived = threading.Event()

    def silent() -> Iterator[bytes]:
        arrived.set()
        service.stopping.wait()
        yield b""

    service.resolve = silent()
    receiver = Receiver(service.url, timeout_s=60)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            receiver.resolve(TOKEN)
        except RuntimeError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    arrived.wait()
    receiver.close()
    waiting.join()
    assert [str(error) for error in errors] == ["This receiver was closed."]


def test_an_interrupt_ends_the_wait_and_the_receiver_still_works(
    service: Service, clock: FakeClock, issuer: Issuer
) -> None:
    """Ctrl-C while the service is silent; the fake service sends it after the request has arrived."""

    def interrupt() -> Iterator[bytes]:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        service.stopping.wait()
        yield b""

    service.resolve = [interrupt(), make_response(200, compact(issuer.answer()))]
    with Receiver(service.url, clock=clock, timeout_s=60) as receiver:
        with pytest.raises(KeyboardInterrupt):
            receiver.resolve(TOKEN)
        assert receiver.resolve(TOKEN).xr_id == XR_ID


def test_threads_may_share_a_receiver(service: Service, clock: FakeClock) -> None:
    found: list[str] = []
    with Receiver(service.url, clock=clock) as receiver:
        threads = [threading.Thread(target=lambda: found.append(receiver.resolve(TOKEN).xr_id)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [XR_ID] * 8
    assert service.paths().count("/v1/keys") == 1


async def test_the_request_reveals_nothing_about_the_receiver(
    service: Service, clock: FakeClock, issuer: Issuer
) -> None:
    """No cookie comes back, and two receivers send the same bytes."""
    service.resolve = make_response(200, compact(issuer.answer()), Set_Cookie="id=1; Path=/")
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        await receiver.resolve(TOKEN)
    assert [sorted(request.headers) for request in service.received if request.path == RESOLVE] == [
        ["accept", "accept-encoding", "host", "user-agent", "x-svc-resolution-proof"]
    ] * 2


@pytest.mark.parametrize(
    ("status", "reason", "retryable"),
    [
        (404, "code_unavailable", False),
        (410, "expired", False),
        (429, "rate_limited", True),
        (500, "temporarily_unavailable", True),
        (502, "temporarily_unavailable", True),
        (503, "temporarily_unavailable", True),
        (599, "temporarily_unavailable", True),
        (201, "unverifiable", False),
        (204, "unverifiable", False),
        (304, "unverifiable", False),
        (400, "unverifiable", False),
        (401, "unverifiable", False),
        (422, "unverifiable", False),
    ],
)
async def test_every_status_but_200_is_a_failure_without_the_servers_words(
    service: Service, clock: FakeClock, status: int, reason: str, retryable: bool
) -> None:
    """Even a genuine answer is not read with another status."""
    service.resolve = make_response(status, b"" if status in {204, 304} else compact(Issuer().answer()))
    failure = await fail(service, clock)
    assert (failure.reason, failure.retryable) == (reason, retryable)
    assert len(service.received) == (3 if retryable else 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(service: Service, clock: FakeClock, issuer: Issuer, status: int) -> None:
    service.resolve = make_response(status, compact(issuer.answer()), Location=f"{service.url}{RESOLVE}")
    assert (await fail(service, clock)).reason == "unverifiable"
    assert service.paths() == [RESOLVE]


async def test_a_redirect_to_a_malformed_address_is_not_a_network_failure(service: Service, clock: FakeClock) -> None:
    service.resolve = make_response(302, Location="https://[/server text")
    assert (await fail(service, clock)).reason == "unverifiable"


@pytest.mark.parametrize("token", ["", "brd_short", TOKEN + "x", f"{TOKEN}\n", "brd_/../../v1/keysxx", "XRC1:" + TOKEN])
async def test_a_malformed_token_causes_no_request(service: Service, clock: FakeClock, token: str) -> None:
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(token)
    assert failure.value.reason == "code_unavailable"
    assert service.received == []


@pytest.mark.parametrize("pattern", [0x01, 0x40])
async def test_every_byte_flipped_by_a_lying_server_yields_no_intent(
    service: Service, clock: FakeClock, issuer: Issuer, pattern: int
) -> None:
    """End to end over a real socket: every flip is `unverifiable`, and the keys are not fetched each time."""
    body = compact(issuer.answer(policy=MEASURED, measurement_proof=issuer.proof()))
    reasons = []
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        for place in range(len(body)):
            service.resolve = make_response(200, body[:place] + bytes([body[place] ^ pattern]) + body[place + 1 :])
            with pytest.raises(ReceiverFailure) as failure:
                await receiver.resolve(TOKEN)
            reasons.append(failure.value.reason)
        service.resolve = make_response(200, body)
        assert (await receiver.resolve(TOKEN)).xr_id == XR_ID
    assert set(reasons) == {"unverifiable"}
    assert service.paths().count("/v1/keys") == 2


async def test_every_byte_flipped_in_the_keys_yields_no_intent(
    service: Service, clock: FakeClock, issuer: Issuer
) -> None:
    body = issuer.key_set()
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        for place in range(len(body)):
            altered = body[:place] + bytes([body[place] ^ 0x01]) + body[place + 1 :]
            service.keys = make_response(200, altered, Cache_Control="max-age=0")
            with pytest.raises(ReceiverFailure) as failure:
                await receiver.resolve(TOKEN)
            assert failure.value.reason == "unverifiable", altered


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b"<html>server text</html>", b'"server text"'])
async def test_an_answer_of_another_shape_is_refused(service: Service, clock: FakeClock, body: bytes) -> None:
    service.resolve = make_response(200, body)
    assert (await fail(service, clock)).reason == "unverifiable"


async def test_the_preview_answer_without_an_envelope_is_refused(
    service: Service, clock: FakeClock, issuer: Issuer
) -> None:
    service.resolve = make_response(200, compact(issuer.answer_to(issuer.payload(), resolution_proof=...)))
    assert (await fail(service, clock)).reason == "unverifiable"


async def test_an_expired_envelope_is_refused_not_called_an_expired_code(service: Service, clock: FakeClock) -> None:
    clock.advance(241)
    assert (await fail(service, clock)).reason == "unverifiable"


async def test_an_endless_body_is_cut_off(service: Service, clock: FakeClock) -> None:
    sent = []

    def endless() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        while len(sent) < 10_000:
            sent.append(len(b" " * 4096))
            yield b" " * 4096

    service.resolve = endless()
    assert (await fail(service, clock)).reason == "unverifiable"
    # The kernel buffers some bytes before the receiver hangs up, but the service offered 40 MB.
    assert BODY_BYTES_MAX < sum(sent) < 40_000_000


async def test_a_body_of_exactly_the_maximum_size_is_read(service: Service, clock: FakeClock, issuer: Issuer) -> None:
    body = compact(issuer.answer())
    service.resolve = make_response(200, body + b" " * (BODY_BYTES_MAX - len(body)))
    assert (await resolve(service, clock)).xr_id == XR_ID
    service.resolve = make_response(200, body + b" " * (BODY_BYTES_MAX - len(body) + 1))
    assert (await fail(service, clock)).reason == "unverifiable"


async def test_a_compressed_body_is_refused(service: Service, clock: FakeClock, issuer: Issuer) -> None:
    service.resolve = make_response(200, compact(issuer.answer()), Content_Encoding="gzip")
    assert (await fail(service, clock)).reason == "unverifiable"
    assert service.received[0].headers["accept-encoding"] == "identity"


def send_slowly(service: Service, start: bytes, drop: bytes) -> Iterator[bytes]:
    yield start
    while not service.stopping.wait(0.02):
        yield drop


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
    ids=["silence", "headers", "body", "chunks"],
)
@pytest.mark.parametrize("blocking", [False, True])
async def test_a_server_that_sends_slowly_cannot_hold_a_receiver(
    service: Service, clock: FakeClock, start: bytes, drop: bytes, blocking: bool
) -> None:
    """Each byte arrives well within any timeout of a single read; only the timeout of the whole request ends it."""
    service.resolve = send_slowly(service, start, drop)
    began_s = time.monotonic()
    if blocking:
        with Receiver(service.url, clock=clock, timeout_s=0.3) as receiver, pytest.raises(ReceiverFailure) as failure:
            await asyncio.to_thread(receiver.resolve, TOKEN)
        reason = failure.value.reason
    else:
        reason = (await fail(service, clock, timeout_s=0.3)).reason
    assert reason == "network"
    # Far above the timeout, for a busy machine, and far below the time that the server would take.
    assert time.monotonic() - began_s < 20


@pytest.mark.parametrize(
    "response",
    [b"", b"server text\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nX"],
)
async def test_a_broken_response_is_a_network_failure(service: Service, clock: FakeClock, response: bytes) -> None:
    service.resolve = response
    failure = await fail(service, clock)
    assert (failure.reason, failure.retryable) == ("network", False)
    assert len(service.received) == 1


async def test_a_missing_service_is_a_network_failure(issuer: Issuer, clock: FakeClock) -> None:
    with Service(issuer) as gone:
        pass
    assert (await fail(gone, clock)).reason == "network"


async def test_a_busy_service_gets_a_retry(service: Service, clock: FakeClock, issuer: Issuer) -> None:
    service.resolve = [make_response(503), make_response(429), make_response(200, compact(issuer.answer()))]
    assert (await resolve(service, clock)).xr_id == XR_ID
    assert service.paths() == [RESOLVE] * 3 + ["/v1/keys"]
    assert 0.125 <= clock.slept_s[0] <= 0.25
    assert 0.25 <= clock.slept_s[1] <= 0.5


@pytest.mark.parametrize("retry_after", ["4", format_datetime(NOW.replace(microsecond=0) + timedelta(seconds=4.5))])
async def test_retry_after_is_honoured(service: Service, clock: FakeClock, issuer: Issuer, retry_after: str) -> None:
    service.resolve = [make_response(429, Retry_After=retry_after), make_response(200, compact(issuer.answer()))]
    await resolve(service, clock)
    assert clock.slept_s[0] >= 3.5


async def test_a_pause_beyond_the_budget_is_not_started(service: Service, clock: FakeClock) -> None:
    service.resolve = make_response(429, Retry_After="11")
    failure = await fail(service, clock)
    assert (failure.reason, failure.retry_after_s) == ("rate_limited", 11)
    assert (clock.slept_s, len(service.received)) == ([], 1)


async def test_attempts_and_waits_are_settings(service: Service, clock: FakeClock) -> None:
    service.resolve = make_response(503, Retry_After="11")
    await fail(service, clock, attempts_max=2, retry_wait_max_s=30)
    assert (clock.slept_s, len(service.received)) == ([11], 2)


@pytest.mark.parametrize("settings", [{"timeout_s": 0}, {"attempts_max": 0}, {"retry_wait_max_s": -1}])
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least"):
        Receiver("https://api.example.org", **settings)


@pytest.mark.parametrize(
    ("keys", "reason", "request_count"),
    [
        (make_response(404), "unverifiable", 1),
        (make_response(410), "unverifiable", 1),
        (make_response(302, Location="/v1/other"), "unverifiable", 1),
        (make_response(200, b"server text"), "unverifiable", 1),
        (make_response(200, b'{"keys":[]}'), "unverifiable", 2),
        (make_response(503), "temporarily_unavailable", 3),
        (make_response(429), "rate_limited", 3),
        (b"", "network", 1),
    ],
)
async def test_without_keys_there_is_no_intent(
    service: Service, clock: FakeClock, keys: bytes, reason: str, request_count: int
) -> None:
    service.keys = keys
    assert (await fail(service, clock)).reason == reason
    assert service.paths().count("/v1/keys") == request_count

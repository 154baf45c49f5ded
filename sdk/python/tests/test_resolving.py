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
from soundmark_sdk.http_exchange import BODY_BYTES_MAX

from .issuer import INTENT, MEASURED, NOW, TOKEN, XR_ID, Issuer, compact
from .stand_ins import FakeClock, Service, http

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
    assert service.asked[0].headers["x-svc-resolution-proof"] == "ed25519-v1"


def test_blocking_code_gets_the_same(service: Service, clock: FakeClock) -> None:
    with Receiver(service.url, clock=clock) as receiver:
        assert receiver.resolve(TOKEN).xr_id == XR_ID
        service.resolve = http(410)
        with pytest.raises(ReceiverFailure) as failure:
            receiver.resolve(TOKEN)
    assert failure.value.reason == "expired"


def test_a_closed_receiver_says_so(service: Service) -> None:
    receiver = Receiver(service.url)
    receiver.close()
    receiver.close()
    with pytest.raises(RuntimeError, match="closed"):
        receiver.resolve(TOKEN)


async def test_a_closed_asyncio_receiver_says_so_and_connects_no_more(service: Service, clock: FakeClock) -> None:
    receiver = AsyncReceiver(service.url, clock=clock)
    await receiver.resolve(TOKEN)
    asked_count = len(service.asked)
    await receiver.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await receiver.resolve(TOKEN)
    assert len(service.asked) == asked_count


def test_a_receiver_that_is_closing_takes_nothing_more(service: Service) -> None:
    """It would be handed to a loop that is about to stop, and whoever asked would wait for ever."""
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
    assert service.asked == []


def test_closing_ends_what_another_thread_waits_for(service: Service) -> None:
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
    """Ctrl-C while the service is silent: asked for by the service itself, once the request has arrived."""

    def interrupting() -> Iterator[bytes]:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        service.stopping.wait()
        yield b""

    service.resolve = [interrupting(), http(200, compact(issuer.answer()))]
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


async def test_the_request_tells_nothing_about_the_receiver(service: Service, clock: FakeClock, issuer: Issuer) -> None:
    """No cookie comes back, and two receivers send the same bytes."""
    service.resolve = http(200, compact(issuer.answer()), Set_Cookie="id=1; Path=/")
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        await receiver.resolve(TOKEN)
        await receiver.resolve(TOKEN)
    assert [sorted(asked.headers) for asked in service.asked if asked.path == RESOLVE] == [
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
    """Not even a genuine answer is read under another status."""
    service.resolve = http(status, b"" if status in {204, 304} else compact(Issuer().answer()))
    failure = await fail(service, clock)
    assert (failure.reason, failure.retryable) == (reason, retryable)
    assert len(service.asked) == (3 if retryable else 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(service: Service, clock: FakeClock, issuer: Issuer, status: int) -> None:
    service.resolve = http(status, compact(issuer.answer()), Location=f"{service.url}{RESOLVE}")
    assert (await fail(service, clock)).reason == "unverifiable"
    assert service.paths() == [RESOLVE]


async def test_a_redirect_to_nonsense_is_no_network_trouble(service: Service, clock: FakeClock) -> None:
    service.resolve = http(302, Location="https://[/server text")
    assert (await fail(service, clock)).reason == "unverifiable"


@pytest.mark.parametrize("token", ["", "brd_short", TOKEN + "x", f"{TOKEN}\n", "brd_/../../v1/keysxx", "XRC1:" + TOKEN])
async def test_what_is_no_token_is_not_even_asked_about(service: Service, clock: FakeClock, token: str) -> None:
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(token)
    assert failure.value.reason == "code_unavailable"
    assert service.asked == []


@pytest.mark.parametrize("pattern", [0x01, 0x40])
async def test_every_byte_that_a_lying_server_flips_yields_no_intent(
    service: Service, clock: FakeClock, issuer: Issuer, pattern: int
) -> None:
    """End to end, over a real socket: the outcome of every flip is `unverifiable`, and the keys are not hammered."""
    body = compact(issuer.answer(policy=MEASURED, measurement_proof=issuer.proof()))
    reasons = []
    async with AsyncReceiver(service.url, clock=clock) as receiver:
        for place in range(len(body)):
            service.resolve = http(200, body[:place] + bytes([body[place] ^ pattern]) + body[place + 1 :])
            with pytest.raises(ReceiverFailure) as failure:
                await receiver.resolve(TOKEN)
            reasons.append(failure.value.reason)
        service.resolve = http(200, body)
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
            service.keys = http(200, altered, Cache_Control="max-age=0")
            with pytest.raises(ReceiverFailure) as failure:
                await receiver.resolve(TOKEN)
            assert failure.value.reason == "unverifiable", altered


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b"<html>server text</html>", b'"server text"'])
async def test_an_answer_that_is_no_answer_is_refused(service: Service, clock: FakeClock, body: bytes) -> None:
    service.resolve = http(200, body)
    assert (await fail(service, clock)).reason == "unverifiable"


async def test_the_preview_answer_without_an_envelope_is_refused(
    service: Service, clock: FakeClock, issuer: Issuer
) -> None:
    service.resolve = http(200, compact(issuer.answer_to(issuer.payload(), resolution_proof=...)))
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
    # What the kernel had taken before we hung up is not ours to bound, but 40 MB were on offer.
    assert BODY_BYTES_MAX < sum(sent) < 40_000_000


async def test_a_body_of_exactly_the_ceiling_is_read(service: Service, clock: FakeClock, issuer: Issuer) -> None:
    body = compact(issuer.answer())
    service.resolve = http(200, body + b" " * (BODY_BYTES_MAX - len(body)))
    assert (await resolve(service, clock)).xr_id == XR_ID
    service.resolve = http(200, body + b" " * (BODY_BYTES_MAX - len(body) + 1))
    assert (await fail(service, clock)).reason == "unverifiable"


async def test_a_compressed_body_is_refused(service: Service, clock: FakeClock, issuer: Issuer) -> None:
    service.resolve = http(200, compact(issuer.answer()), Content_Encoding="gzip")
    assert (await fail(service, clock)).reason == "unverifiable"
    assert service.asked[0].headers["accept-encoding"] == "identity"


def dripping(service: Service, start: bytes, drop: bytes) -> Iterator[bytes]:
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
async def test_a_server_that_drips_cannot_hold_a_receiver(
    service: Service, clock: FakeClock, start: bytes, drop: bytes, blocking: bool
) -> None:
    """Each drop comes well within any limit for a single read; only the whole request has a deadline."""
    service.resolve = dripping(service, start, drop)
    began_s = time.monotonic()
    if blocking:
        with Receiver(service.url, clock=clock, timeout_s=0.3) as receiver, pytest.raises(ReceiverFailure) as failure:
            await asyncio.to_thread(receiver.resolve, TOKEN)
        reason = failure.value.reason
    else:
        reason = (await fail(service, clock, timeout_s=0.3)).reason
    assert reason == "network"
    # Far above the deadline, for a busy machine, and far below what the server had in mind.
    assert time.monotonic() - began_s < 20


@pytest.mark.parametrize(
    "response",
    [b"", b"server text\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nX"],
)
async def test_a_broken_exchange_is_network_trouble(service: Service, clock: FakeClock, response: bytes) -> None:
    service.resolve = response
    failure = await fail(service, clock)
    assert (failure.reason, failure.retryable) == ("network", False)
    assert len(service.asked) == 1


async def test_a_service_that_is_not_there_is_network_trouble(issuer: Issuer, clock: FakeClock) -> None:
    with Service(issuer) as gone:
        pass
    assert (await fail(gone, clock)).reason == "network"


async def test_a_busy_service_is_asked_again(service: Service, clock: FakeClock, issuer: Issuer) -> None:
    service.resolve = [http(503), http(429), http(200, compact(issuer.answer()))]
    assert (await resolve(service, clock)).xr_id == XR_ID
    assert service.paths() == [RESOLVE] * 3 + ["/v1/keys"]
    assert 0.125 <= clock.slept_s[0] <= 0.25
    assert 0.25 <= clock.slept_s[1] <= 0.5


@pytest.mark.parametrize("retry_after", ["4", format_datetime(NOW.replace(microsecond=0) + timedelta(seconds=4.5))])
async def test_retry_after_is_honoured(service: Service, clock: FakeClock, issuer: Issuer, retry_after: str) -> None:
    service.resolve = [http(429, Retry_After=retry_after), http(200, compact(issuer.answer()))]
    await resolve(service, clock)
    assert clock.slept_s[0] >= 3.5


async def test_a_wait_beyond_the_budget_is_not_begun(service: Service, clock: FakeClock) -> None:
    service.resolve = http(429, Retry_After="11")
    failure = await fail(service, clock)
    assert (failure.reason, failure.retry_after_s) == ("rate_limited", 11)
    assert (clock.slept_s, len(service.asked)) == ([], 1)


async def test_attempts_and_waits_are_settings(service: Service, clock: FakeClock) -> None:
    service.resolve = http(503, Retry_After="11")
    await fail(service, clock, attempts_max=2, retry_wait_max_s=30)
    assert (clock.slept_s, len(service.asked)) == ([11], 2)


@pytest.mark.parametrize("settings", [{"timeout_s": 0}, {"attempts_max": 0}, {"retry_wait_max_s": -1}])
def test_senseless_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least"):
        Receiver("https://api.example.org", **settings)


@pytest.mark.parametrize(
    ("keys", "reason", "asked_count"),
    [
        (http(404), "unverifiable", 1),
        (http(410), "unverifiable", 1),
        (http(302, Location="/v1/other"), "unverifiable", 1),
        (http(200, b"server text"), "unverifiable", 1),
        (http(200, b'{"keys":[]}'), "unverifiable", 2),
        (http(503), "temporarily_unavailable", 3),
        (http(429), "rate_limited", 3),
        (b"", "network", 1),
    ],
)
async def test_without_keys_there_is_no_intent(
    service: Service, clock: FakeClock, keys: bytes, reason: str, asked_count: int
) -> None:
    service.keys = keys
    assert (await fail(service, clock)).reason == reason
    assert service.paths().count("/v1/keys") == asked_count

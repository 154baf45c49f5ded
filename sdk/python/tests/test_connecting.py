"""What is said where no connection is made: the address, and why; at once."""

import ssl
from contextlib import closing
from socket import create_server, gaierror

import httpx2
import pytest
from soundmark_sdk import AsyncReceiver, AsyncReporter, DeliveryFailure, ReceiverFailure
from soundmark_sdk.client import AsyncClient, ServiceUnreachable
from soundmark_sdk.connecting import explain_network_failure

from .issuer import Issuer
from .measurements import measured
from .stand_ins import FakeClock

TOKEN = "brd_AAAAAAAAAAAAAAAA"


@pytest.fixture
def nobody() -> str:
    """An address of this machine at which nothing listens."""
    with closing(create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    return f"http://127.0.0.1:{port}"


async def test_a_receiver_names_the_address_that_nobody_answers_at(nobody: str) -> None:
    async with AsyncReceiver(nobody) as receiver:
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(TOKEN)
    assert str(failure.value) == f"network: Nothing answers at {nobody} (connection refused)."


async def test_a_client_names_it_too(nobody: str) -> None:
    async with AsyncClient(nobody, "xak_key", attempts_max=1) as client:
        with pytest.raises(ServiceUnreachable) as failure:
            await client.caller()
    assert str(failure.value) == f"Nothing answers at {nobody} (connection refused)."
    assert not failure.value.was_sent


def chained(*causes: BaseException) -> httpx2.ConnectError:
    """What the transport raises for a failure deep below it."""
    error = httpx2.ConnectError("All connection attempts failed")
    below: BaseException = error
    for cause in causes:
        below.__cause__ = cause
        below = cause
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (chained(OSError("all"), ConnectionRefusedError(111, "x")), "URL (connection refused)."),
        (chained(gaierror(-2, "x")), "URL (the host name cannot be resolved)."),
        (chained(ssl.SSLCertVerificationError(1, "x")), "URL (its TLS certificate cannot be verified)."),
        (chained(ssl.SSLError(1, "x")), "URL (it does not speak TLS as expected)."),
        (chained(OSError(113, "x")), "URL (no route to the host)."),
        (chained(ExceptionGroup("all", [OSError("?"), ConnectionRefusedError(111, "x")])), "URL (connection refused)."),
        (chained(), "URL (no connection can be made)."),
        (httpx2.ConnectTimeout("x"), "URL (no connection in time)."),
        (TimeoutError(), "URL did not answer completely in time."),
        (httpx2.ReadError("the server's words"), "URL did not answer completely: the connection broke."),
    ],
)
def test_each_failure_is_one_sentence_of_our_own(error: Exception, said: str) -> None:
    assert explain_network_failure("URL", error).removeprefix("Nothing answers at ") == said


def test_a_failure_that_causes_itself_is_told_all_the_same() -> None:
    error = chained()
    error.__cause__ = error
    assert "no connection can be made" in explain_network_failure("URL", error)


async def test_a_reporter_names_the_backend(nobody: str, issuer: Issuer, clock: FakeClock) -> None:
    """Delivering is repeated, since an event may be delivered any number of times; what is said at last is the same."""
    async with AsyncReporter(nobody, "a-reporting-token", clock=clock) as reporter:
        with pytest.raises(DeliveryFailure) as failure:
            await reporter.report(measured(issuer, clock))
    assert str(failure.value) == f"network: Nothing answers at {nobody} (connection refused)."

"""The sentence for a failed connection names the address and the reason."""

import ssl
from contextlib import closing
from socket import create_server, gaierror

import httpx2
import pytest
from soundmark_sdk import AsyncReceiver, AsyncReporter, DeliveryFailure, ReceiverFailure
from soundmark_sdk.client import AsyncClient, ServiceUnreachable
from soundmark_sdk.network_failures import explain_network_failure

from .issuer import Issuer
from .measurements import make_measurement
from .stand_ins import FakeClock

TOKEN = "brd_AAAAAAAAAAAAAAAA"


@pytest.fixture
def nobody() -> str:
    """An address of this machine where nothing listens."""
    with closing(create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    return f"http://127.0.0.1:{port}"


async def test_a_receiver_names_the_address_that_does_not_answer(nobody: str) -> None:
    async with AsyncReceiver(nobody) as receiver:
        with pytest.raises(ReceiverFailure) as failure:
            await receiver.resolve(TOKEN)
    assert str(failure.value) == f"network: Nothing answers at {nobody} (connection refused)."


async def test_a_client_names_the_address_that_does_not_answer(nobody: str) -> None:
    async with AsyncClient(nobody, "xak_key", attempts_max=1) as client:
        with pytest.raises(ServiceUnreachable) as failure:
            await client.caller()
    assert str(failure.value) == f"Nothing answers at {nobody} (connection refused)."
    assert not failure.value.was_sent


def chain_errors(*causes: BaseException) -> httpx2.ConnectError:
    """Return the error that the transport raises for a failure deep below it."""
    error = httpx2.ConnectError("All connection attempts failed")
    below: BaseException = error
    for cause in causes:
        below.__cause__ = cause
        below = cause
    return error


def test_each_failure_is_one_sentence_of_this_package(subtests: pytest.Subtests) -> None:
    for error, message in [
        (chain_errors(OSError("all"), ConnectionRefusedError(111, "x")), "URL (connection refused)."),
        (chain_errors(gaierror(-2, "x")), "URL (the host name cannot be resolved)."),
        (chain_errors(ssl.SSLCertVerificationError(1, "x")), "URL (its TLS certificate cannot be verified)."),
        (chain_errors(ssl.SSLError(1, "x")), "URL (it does not speak TLS as expected)."),
        (chain_errors(OSError(113, "x")), "URL (no route to the host)."),
        (
            chain_errors(ExceptionGroup("all", [OSError("?"), ConnectionRefusedError(111, "x")])),
            "URL (connection refused).",
        ),
        (chain_errors(), "URL (no connection can be made)."),
        (httpx2.ConnectTimeout("x"), "URL (no connection in time)."),
        (TimeoutError(), "URL did not answer completely in time."),
        (httpx2.ReadError("the server's words"), "URL did not answer completely: the connection broke."),
    ]:
        with subtests.test(error=error, message=message):
            assert explain_network_failure("URL", error).removeprefix("Nothing answers at ") == message


def test_a_failure_with_a_circular_cause_is_explained() -> None:
    error = chain_errors()
    error.__cause__ = error
    assert "no connection can be made" in explain_network_failure("URL", error)


async def test_a_reporter_names_the_backend(nobody: str, issuer: Issuer, clock: FakeClock) -> None:
    """A delivery is retried, and its last failure has the same sentence."""
    async with AsyncReporter(nobody, "a-reporting-token", clock=clock) as reporter:
        with pytest.raises(DeliveryFailure) as failure:
            await reporter.report(make_measurement(issuer, clock))
    assert str(failure.value) == f"network: Nothing answers at {nobody} (connection refused)."

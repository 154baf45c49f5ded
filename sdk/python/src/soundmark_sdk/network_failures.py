"""Explain in one sentence why a request got no complete answer: which address, and what happened."""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx2

_REASONS: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "network unreachable",
    errno.ETIMEDOUT: "no connection in time",
}
_CAUSES_MAX: Final = 16


def could_not_connect(error: Exception) -> bool:
    """Return whether there was no connection, so that the service cannot have seen the request."""
    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)


def explain_network_failure(base_url: str, error: Exception) -> str:
    """Return a sentence for a request that got no complete answer. It holds no text from the other side."""
    if could_not_connect(error):
        return f"Nothing answers at {base_url} ({_describe_cause(error)})."
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return f"{base_url} did not answer completely in time."
    return f"{base_url} did not answer completely: the connection broke."


def _describe_cause(error: Exception) -> str:
    for cause in _iterate_causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate cannot be verified"
        if isinstance(cause, ssl.SSLError):
            return "it does not speak TLS as expected"
        if isinstance(cause, socket.gaierror):
            return "the host name cannot be resolved"
        if isinstance(cause, OSError) and cause.errno in _REASONS:
            return _REASONS[cause.errno]
    return "no connection in time" if isinstance(error, httpx2.ConnectTimeout) else "no connection can be made"


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes. A host with several addresses may have failed at each for another reason."""
    waiting = [error]
    for _ in range(_CAUSES_MAX):
        if not waiting:
            return
        cause = waiting.pop()
        yield cause
        waiting += [deeper for deeper in (cause.__cause__, cause.__context__) if deeper is not None]
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions

"""What a connection that failed is to whoever reads about it: which address, and why."""

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
    """Return whether no connection was made, so that the service cannot have seen the request."""
    return isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)


def explain_network_failure(base_url: str, error: Exception) -> str:
    """Return the sentence for a request that got no complete answer. No word in it comes from the other side."""
    if could_not_connect(error):
        return f"Nothing answers at {base_url} ({_reason(error)})."
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return f"{base_url} did not answer completely in time."
    return f"{base_url} did not answer completely: the connection broke."


def _reason(error: Exception) -> str:
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate cannot be verified"
        if isinstance(cause, ssl.SSLError):
            return "it does not speak TLS as expected"
        if isinstance(cause, socket.gaierror):
            return "the host name cannot be resolved"
        if isinstance(cause, OSError) and cause.errno in _REASONS:
            return _REASONS[cause.errno]
    return "no connection in time" if isinstance(error, httpx2.ConnectTimeout) else "no connection can be made"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the failure and what is behind it. Several addresses of one name may each have failed in its own way."""
    waiting = [error]
    for _ in range(_CAUSES_MAX):
        if not waiting:
            return
        cause = waiting.pop()
        yield cause
        waiting += [behind for behind in (cause.__cause__, cause.__context__) if behind is not None]
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions

"""The headers of a private call, beside `Authorization` and `X-Request-Id`.

- `X-Svc-Operation-Id`: the id under which the component carries out a mutation once, however often it is sent.
- `X-Svc-Timeout-Ms`: how many milliseconds the caller still waits for the response, counted from when it sent the
  request. A duration, so that the clocks of two machines need not agree.
- `X-Svc-Caller`: which process calls, for the component's log. Nothing is permitted because of it.
"""

import re
from collections.abc import Iterable
from typing import Final

OPERATION_HEADER: Final = "x-svc-operation-id"
TIMEOUT_HEADER: Final = "x-svc-timeout-ms"
CALLER_HEADER: Final = "x-svc-caller"

TIMEOUT_MAX_S: Final = 60.0  # API v1, "Limits": the longest timeout of a private call.

_MS_OF_S: Final = 1000
_TIMEOUT: Final = re.compile(rb"[1-9][0-9]{0,8}")
_CALLER: Final = re.compile(rb"[a-z][a-z0-9-]{0,63}")

Headers = Iterable[tuple[bytes, bytes]]


def write_timeout(timeout_s: float) -> str:
    """Return the value of `X-Svc-Timeout-Ms` for a caller that waits `timeout_s`."""
    return str(max(1, round(timeout_s * _MS_OF_S)))


def read_timeout_s(headers: Headers) -> float:
    """Return how many seconds the caller of a request waits, at most `TIMEOUT_MAX_S`.

    A header that is missing, repeated or malformed counts as `TIMEOUT_MAX_S`.
    """
    value = _find_only(headers, TIMEOUT_HEADER.encode())
    if value is None or _TIMEOUT.fullmatch(value) is None:
        return TIMEOUT_MAX_S
    return min(int(value) / _MS_OF_S, TIMEOUT_MAX_S)


def read_caller(headers: Headers) -> str | None:
    """Return the name of the calling process; None if it is missing, repeated or malformed."""
    value = _find_only(headers, CALLER_HEADER.encode())
    return None if value is None or _CALLER.fullmatch(value) is None else value.decode()


def _find_only(headers: Headers, name: bytes) -> bytes | None:
    values = [value for each, value in headers if each == name]
    return values[0] if len(values) == 1 else None

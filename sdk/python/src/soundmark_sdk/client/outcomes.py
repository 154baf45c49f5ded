"""What a failed call says about the service: whether it did something, did nothing, or may have done something."""

from typing import Final

import httpx2

from soundmark_sdk.client.failures import AnswerMalformed, ApiProblem, ClientFailure, ServiceUnreachable

# The month's quota of Codes and that of events. A pause of seconds does not help.
_QUOTAS: Final = frozenset({"quota_exceeded", "event_quota_exceeded"})


def is_certainly_undone(failure: ClientFailure) -> bool:
    """Return whether the service did nothing and may do it later: it asked for a pause, or there was no connection."""
    if isinstance(failure, ServiceUnreachable):
        return not failure.was_sent
    if not isinstance(failure, ApiProblem):
        return False
    return failure.status == httpx2.codes.TOO_MANY_REQUESTS and failure.code not in _QUOTAS


def is_uncertain(failure: ClientFailure) -> bool:
    """Return whether the service may or may not have performed the call."""
    match failure:
        case ApiProblem():
            return failure.status >= httpx2.codes.INTERNAL_SERVER_ERROR
        case ServiceUnreachable():
            return failure.was_sent
        case _:
            return isinstance(failure, AnswerMalformed)

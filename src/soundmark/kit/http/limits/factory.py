"""The choice between a limit of this process and one that processes share."""

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits.local import LocalRateLimit, RateLimit
from soundmark.kit.http.limits.shared import SharedRateLimit


def make_rate_limit(url: Secret | None, quota: int, window_s: int, *, key_prefix: bytes, clock: Clock) -> RateLimit:
    """Return a limit that is counted at `url`, shared with other processes; if `url` is None, in this process alone."""
    alone = LocalRateLimit(quota, window_s, clock)
    if url is None:
        return alone
    return SharedRateLimit(url, quota, window_s, key_prefix=key_prefix, alone=alone, clock=clock)

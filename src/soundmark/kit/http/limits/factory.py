"""The choice between a limit of this process and one that processes share."""

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.limits.local import LocalRateLimit, RateLimit
from soundmark.kit.http.limits.shared import SharedRateLimit
from soundmark.kit.http.limits.shared_keys import SharedKeys


def make_rate_limit(url: Secret | None, quota: int, window_s: int, *, key_prefix: bytes, clock: Clock) -> RateLimit:
    """Return a limit that is counted at `url`, shared with other processes; if `url` is None, in this process alone."""
    alone = LocalRateLimit(quota, window_s, clock)
    if url is None:
        return alone
    return SharedRateLimit(url, quota, window_s, key_prefix=key_prefix, alone=alone, clock=clock)


def make_shared_keys(url: Secret | None, *, key_prefix: bytes, clock: Clock, entropy: Entropy) -> SharedKeys | None:
    """Return keys that processes at `url` hold one at a time; if it is None, each process is alone."""
    return None if url is None else SharedKeys(url, key_prefix=key_prefix, clock=clock, entropy=entropy)

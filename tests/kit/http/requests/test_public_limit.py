"""A limit that tells every client of a public route how much is left."""

import pytest
from structlog.testing import capture_logs
from support.processes.fake_clock import FakeClock

from soundmark.kit.http.limits.local import LocalRateLimit
from soundmark.kit.http.requests.public_limit import PublicRateLimit
from soundmark.kit.http.responses.problems import RateLimited

POLICY = '"proofs";q=1;w=60'


async def test_each_response_says_what_is_left_until_none_is() -> None:
    limit = PublicRateLimit("proofs", LocalRateLimit(1, 60, FakeClock()), quota=1, window_s=60)
    assert await limit.count(b"a") == {"ratelimit-policy": POLICY, "ratelimit": '"proofs";r=0;t=60'}
    with capture_logs() as logged:
        for _ in range(2):
            with pytest.raises(RateLimited) as refused:
                await limit.count(b"a")
            assert refused.value.headers == {
                "ratelimit-policy": POLICY,
                "ratelimit": '"proofs";r=0;t=60',
                "retry-after": "60",
            }
    assert [(line["event"], line["limit"], line["address"]) for line in logged] == [
        ("public_requests_limited", "proofs", "61")
    ]
    assert (await limit.count(b"b"))["ratelimit"] == '"proofs";r=0;t=60'

"""Rules of outbound webhooks that need no database: ids, types, messages, and what follows from an attempt."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from soundmark.core.domain.webhooks.attempt import (
    AHEAD_MAX,
    FAILING_FOR,
    INTERNAL_ERROR,
    LEASE,
    TIMEOUT_S,
    ClaimedDelivery,
    conclude,
)
from soundmark.core.domain.webhooks.delivery import RETRY_AFTER
from soundmark.core.domain.webhooks.endpoint import ENDPOINT_PREFIX, URL_MAX
from soundmark.core.domain.webhooks.event import EVENT_PREFIX, EVENT_TYPES, WebhookEvent, render_body

NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
DELIVERY: Final = ClaimedDelivery(
    organization_id="org_1",
    id="whd_1",
    endpoint_id="whe_1",
    attempts=0,
    lease_until=NOW,
    event_id="evn_1",
    project_id=None,
    event_type="code.issued",
    actor_type="user",
    actor_id="ada",
    data="{}",
    event_created_at=NOW,
    url="https://consumer.example.org/",
    sealed_secret=b"MARKsealed",
    sealed_earlier_secret=b"MARKearlier",
    earlier_secret_until=None,
    failing_since=None,
)


class FixedEntropy:
    """The bytes that it was made with, again and again."""

    def __init__(self, byte: bytes) -> None:
        self._byte = byte

    def take(self, size: int) -> bytes:
        return self._byte * size


LEAST, MOST = FixedEntropy(b"\x00"), FixedEntropy(b"\xff")


def test_what_is_published_has_the_names_of_the_contract() -> None:
    assert (ENDPOINT_PREFIX, EVENT_PREFIX, URL_MAX, INTERNAL_ERROR) == ("whe_", "evn_", 2048, "internal_error")
    without_audit_entry = {"code.expired", "quota.threshold_reached", "support.ticket_status_changed", "webhook.test"}
    assert without_audit_entry <= EVENT_TYPES


def test_a_message_is_short_utf_8() -> None:
    event = WebhookEvent("org_1", "evn_1", None, "code.issued", "user", "Zoë", '{"xr_id": "xr_ä"}', NOW)
    body = render_body(event)
    assert body == json.dumps(json.loads(body), ensure_ascii=False, separators=(",", ":")).encode()
    assert "Zoë".encode() in body


@pytest.mark.parametrize(("status", "is_success"), [(199, False), (200, True), (299, True), (300, False)])
def test_a_2xx_takes_the_message(status: int, *, is_success: bool) -> None:
    assert conclude(DELIVERY, status, now=NOW, entropy=LEAST).is_success is is_success


def test_an_endpoint_that_failed_for_five_days_is_disabled() -> None:
    since = replace(DELIVERY, failing_since=NOW - timedelta(days=5))
    assert timedelta(days=5) == FAILING_FOR
    assert conclude(since, 500, now=NOW, entropy=LEAST).disables == "failing"
    shortly_before = NOW - timedelta(microseconds=1)
    assert conclude(since, 500, now=shortly_before, entropy=LEAST).status == "pending"


def test_pauses_are_those_of_the_contract() -> None:
    assert [pause.total_seconds() for pause in RETRY_AFTER] == [5, 300, 1800, 7200, 18_000, 36_000, 36_000]


@pytest.mark.parametrize("attempts", range(len(RETRY_AFTER)))
def test_a_pause_differs_by_a_tenth_in_both_directions(attempts: int) -> None:
    delivery, pause = replace(DELIVERY, attempts=attempts), RETRY_AFTER[attempts]
    least, most = (conclude(delivery, 500, now=NOW, entropy=entropy).next_attempt_at for entropy in (LEAST, MOST))
    assert (least, most) == (NOW + pause * 0.9, NOW + pause * 1.1)


@pytest.mark.parametrize("attempts", range(len(RETRY_AFTER)))
def test_only_a_clock_that_was_set_back_finds_an_attempt_further_ahead(attempts: int) -> None:
    longest = conclude(replace(DELIVERY, attempts=attempts), 500, now=NOW, entropy=MOST).next_attempt_at
    assert longest is not None
    assert AHEAD_MAX[attempts + 1] == max(longest - NOW, LEASE) + timedelta(minutes=1), "clocks differ by so much"
    assert AHEAD_MAX[0] == LEASE + timedelta(minutes=1)


def test_a_lease_is_longer_than_an_attempt() -> None:
    assert timedelta(seconds=TIMEOUT_S) < LEASE


def test_secrets_are_in_no_traceback() -> None:
    assert "MARK" not in repr(DELIVERY)

"""A report of delivered events: each is counted once, and nothing in the report identifies anybody."""

import hashlib
import json
from typing import Any

from support.api.core_client import Answer
from support.audience.client import AudienceApi
from support.audience.event_publisher import Publisher, make_publisher, new_id
from support.audience.recorded_events import assert_reconciles, read_report
from support.processes.secret_leaks import find_leaks

CAMPAIGN = "cmp_" + "d" * 22


async def delivered(source: Publisher, event: dict[str, Any]) -> Answer:
    answer = await source.deliver(event)
    assert answer.status in {200, 201, 409}, answer.body
    return answer


async def test_a_delivered_measurement_is_counted_once(audience: AudienceApi) -> None:
    """Two measurements of one token, one of another; each kind of replay changes its own counter and no other count."""
    audience.clock.freeze()
    source = await make_publisher(audience)
    in_campaign = Publisher(source.integration, campaign_id=CAMPAIGN)
    token = new_id("mt_", 32)
    first = source.event(measurement_token=token, country=None)
    second = in_campaign.event(measurement_token=token, receiver_class="kiosk")
    third = source.event(country="FR")
    for event in (first, second, third):
        assert (await delivered(source, event)).status == 201
    await delivered(source, first)  # The same event again.
    await delivered(source, source.event(measurement_token=token))  # The same Code and token with another proof.
    await delivered(source, source.event(proof=first["proof"]))  # Another event with a spent proof.
    audience.clock.advance(seconds=1)

    report = (await read_report(source.integration)).json

    assert_reconciles(report)
    assert (report["events"], report["estimated_reach"], report["average_frequency"]) == (3, 2, 1.5)
    assert report["by_campaign"] == [
        {"campaign_id": None, "events": 2, "estimated_reach": 2},
        {"campaign_id": CAMPAIGN, "events": 1, "estimated_reach": 1},
    ]
    assert report["by_receiver"] == [
        {"receiver_class": "phone", "events": 2},
        {"receiver_class": "kiosk", "events": 1},
    ]
    assert {(row["country"], row["events"]) for row in report["by_country"]} == {(None, 1), ("FR", 1), ("TN", 1)}
    assert report["by_frequency"] == [{"frequency": 2, "tokens": 1}, {"frequency": 1, "tokens": 1}]
    signals = report["integrity_signals"]
    assert [signals[name] for name in ("event_replays", "code_token_duplicates", "proof_replays")] == [1, 1, 1]


async def test_no_report_holds_anything_of_an_event(audience: AudienceApi) -> None:
    """Neither its token, its id, its proof nor the publisher's secret, in clear or as a digest."""
    source = await make_publisher(audience)
    events = [source.event() for _ in range(3)]
    for event in events:
        await delivered(source, event)
    audience.clock.advance(seconds=1)

    report = [
        (await read_report(source.integration, accept=accept)).body.decode()
        for accept in ("application/json", "text/csv")
    ]

    assert json.loads(report[0])["events"] == len(events)
    hidden = [source.integration.hmac_secret]
    for event in events:
        proof = event["proof"]
        hidden += [event["event_id"], event["measurement_token"], proof["proof_id"], proof["signature"]]
    for text in report:
        assert not find_leaks(text)
        for secret in hidden:
            assert secret not in text
            assert secret[4:] not in text
            assert hashlib.sha256(secret.encode()).hexdigest()[:16] not in text

"""Recording events: the answer, what is stored, and what is not."""

import hashlib
from datetime import timedelta

from support.api.whole_responses import WholeResponses
from support.audience.client import AudienceApi, entitlement_body
from support.audience.event_publisher import make_publisher, new_id
from support.database.rival import Rival

from soundmark.audience.domain.packing import country_number
from soundmark.kit.text.timestamps import format_timestamp


async def test_an_event_is_recorded(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    event = source.event()

    answer = await source.deliver(event)

    assert (answer.status, answer.json) == (201, {"event_id": event["event_id"], "status": "recorded"})
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]


async def test_a_server_that_takes_whole_responses_gets_the_same_answers(audience: AudienceApi) -> None:
    """Our own server takes a response as one message, with its head as bytes."""
    source = await make_publisher(audience)
    events = source.event(), source.event()
    server = WholeResponses(audience.app)
    api = AudienceApi(server, audience.clock)
    named = {"X-Request-Id": "the-same"}

    divided = [await source.deliver(event, **named) for event in events[:1] * 2]
    whole = [await source.deliver(event, api=api, **named) for event in events[1:] * 2]

    assert server.statuses == [201, 200]
    assert [answer.status for answer in whole] == [answer.status for answer in divided] == [201, 200]
    assert [answer.json["status"] for answer in whole] == ["recorded", "duplicate"]
    for plain, taken in zip(divided, whole, strict=True):
        assert taken.headers.multi_items() == plain.headers.multi_items()


async def test_a_row_holds_what_is_counted_and_identifies_nobody(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    source.campaign_id = new_id("cmp_")
    audience.clock.freeze()
    audience.clock.advance(milliseconds=123)
    now = audience.clock.now()
    event = source.event(receiver_class="vehicle", country="DE")

    await source.deliver(event)

    [(integration, day, code, occurred_ms, receiver, country)] = await audience_rival.rows(
        "SELECT integration, day, code, occurred_ms, receiver, country FROM events"
    )
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    assert (day, occurred_ms) == (now.date(), (now - midnight) // timedelta(milliseconds=1))
    assert (receiver, country) == (6, country_number("DE"))
    assert await audience_rival.rows("SELECT number, integration, xr_id, campaign_id FROM measured_codes") == [
        (code, integration, source.xr_id, source.campaign_id)
    ]
    assert code == 1, "the Codes of each integration are numbered by themselves"
    [(event_id, proof, stored_day)] = await audience_rival.rows(
        "SELECT event_id, proof, event_ids.day FROM event_ids JOIN spent_proofs USING (integration)"
    )
    assert event_id.hex == hashlib.sha256(event["event_id"].encode()).hexdigest()[:32]
    assert int(proof.hex[:8], 16) == int(now.timestamp()), "proofs of one time stand together in their index"
    assert stored_day == now.date()


async def test_a_country_may_be_unknown(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    absent = source.event()
    del absent["country"]

    assert (await source.deliver(source.event(country=None))).status == 201
    assert (await source.deliver(absent)).status == 201

    assert await audience_rival.rows("SELECT country FROM events") == [(None,), (None,)]


async def test_the_campaign_is_that_of_the_proof(audience: AudienceApi, audience_rival: Rival) -> None:
    """An event has no member for a campaign: only the one that Core signed counts."""
    source = await make_publisher(audience)
    source.campaign_id = new_id("cmp_")

    answer = await source.deliver(source.event(campaign_id=new_id("cmp_")))
    await source.deliver()

    assert (answer.status, answer.json["code"]) == (422, "validation_failed")
    assert await audience_rival.rows("SELECT campaign_id FROM measured_codes") == [(source.campaign_id,)]


async def test_a_token_means_nothing_to_another_integration(audience: AudienceApi, audience_rival: Rival) -> None:
    """The same receiver has different digests under two integrations, so it cannot be followed across them."""
    one, other = await make_publisher(audience), await make_publisher(audience)
    token = new_id("mt_", 32)

    await one.deliver(one.event(measurement_token=token))
    await other.deliver(other.event(measurement_token=token))

    assert await audience_rival.rows("SELECT count(*), count(DISTINCT token) FROM events") == [(2, 2)]


async def test_a_late_delivery_counts_where_it_happened(audience: AudienceApi, audience_rival: Rival) -> None:
    """The event must lie in its proof's window; the proof itself may have expired days ago."""
    source = await make_publisher(audience)
    event = source.event()
    happened = audience.clock.now().date()
    audience.clock.advance(days=3)

    answer = await source.deliver(event)

    assert answer.status == 201
    assert await audience_rival.rows("SELECT day FROM events") == [(happened,)]


async def test_an_offset_names_the_same_moment(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    now = audience.clock.freeze()
    text = (now + timedelta(hours=5, minutes=30)).strftime("%Y-%m-%dT%H:%M:%S+05:30")

    assert (await source.deliver(source.event(occurred_at=text))).status == 201

    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    assert await audience_rival.rows("SELECT day, occurred_ms FROM events") == [
        (now.date(), (now - midnight) // timedelta(milliseconds=1))
    ]


async def test_the_oldest_kept_day_is_recorded_and_the_day_before_is_not(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience, retention_days=2)
    event, later_event = source.event(), source.event()
    day = audience.clock.now().date()
    audience.clock.advance(days=2)

    assert (await source.deliver(event)).status == 201
    audience.clock.advance(days=1)
    refused = await source.deliver(later_event)

    assert (refused.status, refused.json["code"]) == (422, "proof_invalid")
    assert await audience_rival.rows("SELECT day FROM events") == [(day,)]


async def test_an_integration_that_was_made_after_the_start_is_known(audience: AudienceApi) -> None:
    first = await make_publisher(audience)
    assert (await first.deliver()).status == 201
    second = await make_publisher(audience, mode="contract", entitlement=entitlement_body())

    assert (await second.deliver()).status == 201


async def test_recorded_events_are_counted_by_month_of_receipt(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    await source.deliver()
    await source.deliver()

    first = audience.clock.now().date().replace(day=1)
    assert await audience_rival.rows("SELECT mode, first_day, events FROM event_months") == [("demo", first, 2)]


async def test_a_method_other_than_post_is_refused(audience: AudienceApi) -> None:
    answer = await audience.call("GET", "/v1/events")

    assert (answer.status, answer.json["code"], answer.headers["allow"]) == (405, "method_not_allowed", "POST")


async def test_a_time_of_the_proof_is_verified_in_the_signed_spelling(audience: AudienceApi) -> None:
    """The signature covers the text, so every spelling that Core signed is verified as it is."""
    source = await make_publisher(audience)
    now = audience.clock.now()
    # Both from one moment, because a proof lives for five minutes at most.
    issued_at = format_timestamp(now).replace("Z", "+00:00")
    proof = source.proof(issued_at=issued_at, expires_at=format_timestamp(now + timedelta(minutes=5)))

    assert (await source.deliver(source.event(proof=proof))).status == 201

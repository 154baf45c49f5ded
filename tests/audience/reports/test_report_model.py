"""A report compared with a model that counts the same events one by one."""

import asyncio
from datetime import date, datetime, timedelta
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.audience.client import AudienceApi, entitlement_body
from support.audience.recorded_events import (
    RecordedEvent,
    assert_reconciles,
    expected_report,
    midnight,
    read_report,
    store_events,
    store_integrity_days,
)
from support.audience.report_events import CAMPAIGNS, RETENTION_DAYS, XR, make_event, refused

from soundmark.audience.features.reports import service
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp


def some_events(chance: Random, now: datetime) -> list[RecordedEvent]:
    """Return events of few tokens, so that many recur on the same day and on others."""
    tokens = [chance.choice([-(2**63), 2**63 - 1, 0, chance.getrandbits(64) - 2**63]) for _ in range(12)]
    made: dict[tuple[date, int, str], RecordedEvent] = {}
    for _ in range(chance.choice([0, 1, 20, 150])):
        at = now - timedelta(milliseconds=chance.randrange(RETENTION_DAYS * 2 * 86_400_000))
        if chance.random() < 0.3:
            at = midnight(at.date()) - timedelta(milliseconds=chance.choice([0, 1]))
        one = make_event(
            at,
            chance.choice(tokens),
            chance.choice(XR),
            receiver_class=chance.choice(["phone", "other", "kiosk"]),
            country=chance.choice(["TN", "FR", "AD", "ZW", None]),
        )
        made[at.date(), one.token, one.xr_id] = one
    return list(made.values())


def some_query(chance: Random, now: datetime, events: list[RecordedEvent]) -> dict[str, str]:
    """Return any filters together, whose bounds often equal the time of an event."""
    edges = [now - timedelta(days=days) for days in range(RETENTION_DAYS * 2)] + [one.at for one in events]
    edges += [midnight(edge.date()) for edge in edges]
    begin, end = sorted(chance.sample(edges, 2))
    query = {}
    if chance.random() < 0.6:
        query["from"] = format_timestamp(begin)
    if chance.random() < 0.6:
        query["to"] = format_timestamp(end if end > begin else end + timedelta(milliseconds=1))
    if chance.random() < 0.3:
        query["campaign_id"] = chance.choice([*CAMPAIGNS, "cmp_" + "z" * 22])
    if chance.random() < 0.3:
        query["xr_id"] = chance.choice([*XR, "xr_" + "Z" * 22])
    return query


@given(chance=st.randoms(use_true_random=True), at_once=st.sampled_from([1, 7, 250_000]))
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_report_equals_the_models(
    audience: AudienceApi, audience_url: Secret, now: datetime, chance: Random, at_once: int
) -> None:
    """For any events and queries, however few events are counted at once, on one connection or two."""
    integration = await audience.make_integration(
        mode="contract", retention_days=RETENTION_DAYS, entitlement=entitlement_body()
    )
    events = some_events(chance, now)
    integrity = {
        now.date() - timedelta(days=days): (chance.randrange(4), chance.randrange(4), chance.randrange(4))
        for days in range(RETENTION_DAYS * 2)
        if chance.random() < 0.5
    }
    await asyncio.to_thread(store_events, audience_url, integration.id, events)
    await asyncio.to_thread(store_integrity_days, audience_url, integration.id, integrity)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(service, "_AT_ONCE", at_once)
        patched.setattr(service, "_RANGES_MAX", 40)
        for _ in range(6):
            query = some_query(chance, now, events)
            if (
                "to" in query
                and "from" not in query
                and query["to"] <= format_timestamp(midnight(now.date() - timedelta(days=RETENTION_DAYS)))
            ):
                continue  # Another test covers this rule.
            if query.get("from", "") >= query.get("to", format_timestamp(now)):
                assert refused(await read_report(integration, **query)) == (422, "validation_failed")
                continue
            answer = await read_report(integration, **query)
            assert answer.status == 200, answer.body
            assert answer.json == expected_report(integration.view, events, query, integrity=integrity, now=now), query
            assert_reconciles(answer.json)

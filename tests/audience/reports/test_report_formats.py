"""A report as JSON and as CSV, and how large it may become."""

import asyncio
from datetime import datetime, timedelta

import numpy as np
import pytest
from support.audience.client import AudienceIntegration
from support.audience.recorded_events import (
    RecordedEvent,
    cells,
    read_report,
    store_events,
    store_integrity_days,
)
from support.audience.report_events import XR, make_event, refused

from soundmark.audience.domain.aggregation import Codes, tally
from soundmark.audience.features.reports import service
from soundmark.kit.crypto.secret import Secret
from soundmark.wire.audience_report import DIMENSION_MAX
from soundmark.wire.private.problems import ReportTooLarge


async def test_the_csv_holds_the_same_numbers(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    at = now - timedelta(hours=5)
    events = [
        make_event(at, 99, XR[3], country=None),
        *[make_event(at, token % 7, XR[token % 3]) for token in range(21)],
    ]
    store_events(audience_url, integration.id, events)
    store_integrity_days(audience_url, integration.id, {now.date(): (1, 2, 3)})
    report = (await read_report(integration)).json

    answer = await read_report(integration, accept="text/csv")

    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, "text/csv")
    assert answer.headers["vary"] == "Accept"
    rows = cells(answer.body)
    assert len(rows) == len(set(rows))
    assert ("total", "", "events", str(report["events"])) in rows
    assert ("total", "", "average_frequency", f"{report['average_frequency']:.4f}") in rows
    assert ("report", "", "from", report["period"]["from"]) in rows
    keys = {
        "by_day": "day",
        "by_receiver": "receiver_class",
        "by_frequency": "frequency",
        "by_campaign": "campaign_id",
        "by_xr_code": "xr_id",
        "by_country": "country",
    }
    for dimension, key in keys.items():
        expected = [
            (dimension, "" if row[key] is None else str(row[key]), metric, str(value))
            for row in report[dimension]
            for metric, value in row.items()
            if metric != key
        ]
        assert [row for row in rows if row[0] == dimension] == expected
    assert ("integrity_signals", now.date().isoformat(), "proof_replays", "3") in rows


@pytest.mark.parametrize(
    ("accept", "status"), [("text/html", 406), ("*/*", 200), ("text/csv;q=0, application/json", 200)]
)
async def test_the_accept_header_chooses_the_format(integration: AudienceIntegration, accept: str, status: int) -> None:
    answer = await read_report(integration, accept=accept)

    assert answer.status == status
    assert status != 200 or answer.headers["content-type"] == "application/json"


async def test_a_dimension_holds_at_most_ten_thousand_entries(
    integration: AudienceIntegration, audience_url: Secret, now: datetime
) -> None:
    """With a filter that leaves fewer, there is a report again."""
    at = now - timedelta(hours=1)
    codes = [RecordedEvent(at, token=7, xr_id=f"xr_{number:022d}") for number in range(DIMENSION_MAX)]
    await asyncio.to_thread(store_events, audience_url, integration.id, codes)

    full = await read_report(integration)
    store_events(audience_url, integration.id, [make_event(at)])
    over = await read_report(integration)
    narrowed = await read_report(integration, xr_id=XR[0])

    assert (full.status, len(full.json["by_xr_code"])) == (200, DIMENSION_MAX)
    assert refused(over) == (422, "report_too_large")
    assert narrowed.json["events"] == 1


@pytest.mark.parametrize("count", [DIMENSION_MAX, DIMENSION_MAX + 1])
def test_the_distribution_of_frequencies_is_a_dimension_too(count: int) -> None:
    """Each frequency that occurs is an entry; a real test would need fifty million events."""
    empty = tally([], days_count=1, codes=Codes(np.array([1]), np.array([1])))
    counted = empty + empty
    object.__setattr__(counted, "frequencies", np.append(0, np.ones(count, dtype=np.int64)))

    if count > DIMENSION_MAX:
        with pytest.raises(ReportTooLarge):
            service._refuse_too_large(counted)
    else:
        service._refuse_too_large(counted)

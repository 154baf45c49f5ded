"""Recorded events without their ingestion, and a model in plain Python of their report."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeVar

import psycopg

from soundmark.audience.domain.packing import RECEIVER_NUMBERS, country_number
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp
from support.api.core_client import Answer
from support.audience.client import AudienceIntegration

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class RecordedEvent:
    """The stored part of an event."""

    at: datetime
    token: int
    xr_id: str
    campaign_id: str | None = None
    receiver_class: str = "phone"
    country: str | None = "TN"


def store_events(url: Secret, integration_id: str, events: Sequence[RecordedEvent]) -> None:
    """Write events to the database as ingestion does, in one transaction."""
    with psycopg.connect(url.reveal()) as connection:
        found = connection.execute("SELECT number FROM integrations WHERE id = %s", [integration_id]).fetchone()
        assert found is not None, "the integration exists"
        codes = {event.xr_id: event.campaign_id for event in events}
        connection.execute(
            "INSERT INTO measured_codes (integration, number, xr_id, campaign_id)"
            " SELECT %(integration)s, known.count + new.number, new.xr_id, new.campaign_id FROM"
            " unnest(%(xr_ids)s::text[], %(campaigns)s::text[]) WITH ORDINALITY AS new (xr_id, campaign_id, number),"
            " (SELECT coalesce(max(number), 0) AS count FROM measured_codes WHERE integration = %(integration)s) known"
            " ON CONFLICT (integration, xr_id) DO NOTHING",
            {"integration": found[0], "xr_ids": list(codes), "campaigns": list(codes.values())},
        )
        known = connection.execute("SELECT xr_id, number FROM measured_codes WHERE integration = %s", [found[0]])
        numbers = dict(known.fetchall())
        columns = "token, integration, day, code, occurred_ms, receiver, country"
        with connection.cursor() as cursor, cursor.copy(f"COPY events ({columns}) FROM STDIN".encode()) as copy:
            for event in events:
                country = None if event.country is None else country_number(event.country)
                receiver = RECEIVER_NUMBERS[event.receiver_class]
                day, ms = event.at.date(), ms_of_day(event.at)
                copy.write_row((event.token, found[0], day, numbers[event.xr_id], ms, receiver, country))


def store_integrity_days(url: Secret, integration_id: str, days: dict[date, tuple[int, int, int]]) -> None:
    """Write integrity counters to the database."""
    with psycopg.connect(url.reveal()) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO integrity_days (integration, day, event_replays, code_token_duplicates, proof_replays)"
            " SELECT number, %s, %s, %s, %s FROM integrations WHERE id = %s",
            [(day, *counts, integration_id) for day, counts in days.items()],
        )


def ms_of_day(moment: datetime) -> int:
    return (moment - midnight(moment.date())) // timedelta(milliseconds=1)


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


async def read_report(
    given: AudienceIntegration, *, accept: str = "application/json", timeout_ms: int = 60_000, **query: str
) -> Answer:
    """Request a report, as Core does."""
    headers = {"Accept": accept, "X-Svc-Timeout-Ms": str(timeout_ms)}
    return await given.api.call("GET", f"/v1/reports/{given.id}", params={**given.query, **query}, headers=headers)


def expected_report(
    integration: dict[str, Any],
    events: Sequence[RecordedEvent],
    query: dict[str, str],
    *,
    integrity: dict[date, tuple[int, int, int]],
    now: datetime,
) -> dict[str, Any]:
    """Return the report that Audience must send about the integration with this view."""
    kept_from = midnight(now.date() - timedelta(days=integration["retention_days"]))
    from_at = parse_timestamp(query["from"]) if "from" in query else kept_from
    to_at = parse_timestamp(query["to"]) if "to" in query else now
    begin = max(from_at, kept_from)
    left = [
        event
        for event in events
        if begin <= event.at < to_at
        and query.get("campaign_id") in {None, event.campaign_id}
        and query.get("xr_id") in {None, event.xr_id}
    ]
    tokens = Counter(event.token for event in left)
    touched = {
        day: counts
        for day, counts in sorted(integrity.items())
        if begin.date() <= day <= (to_at - timedelta(milliseconds=1)).date()
    }
    frequencies = Counter(tokens.values())
    sums = [sum(counts[place] for counts in touched.values()) for place in range(3)]
    names = ("event_replays", "code_token_duplicates", "proof_replays")
    return {
        "integration_id": integration["id"],
        "mode": integration["mode"],
        "period": {"from": format_timestamp(from_at), "to": format_timestamp(to_at)},
        "filters": {"campaign_id": query.get("campaign_id"), "xr_id": query.get("xr_id")},
        "events": len(left),
        "estimated_reach": len(tokens),
        "average_frequency": round(len(left) / len(tokens), 4) if tokens else 0,
        "by_day": sorted(
            expected_rows(left, "day", lambda event: event.at.date().isoformat(), has_reach=True),
            key=lambda row: row["day"],
        ),
        "by_receiver": expected_rows(left, "receiver_class", lambda event: event.receiver_class),
        "by_frequency": [
            {"frequency": frequency, "tokens": count}
            for frequency, count in sorted(frequencies.items(), key=lambda item: (-item[0] * item[1], item[0]))
        ],
        "by_campaign": expected_rows(left, "campaign_id", lambda event: event.campaign_id, has_reach=True),
        "by_xr_code": expected_rows(left, "xr_id", lambda event: event.xr_id, has_reach=True),
        "by_country": expected_rows(left, "country", lambda event: event.country),
        "integrity_signals": {
            "scope": "integration_period",
            **dict(zip(names, sums, strict=True)),
            "by_day": [
                {"day": day.isoformat(), **dict(zip(names, counts, strict=True))} for day, counts in touched.items()
            ],
        },
    }


def expected_rows(
    events: Iterable[RecordedEvent], name: str, key_of: Callable[[RecordedEvent], K], *, has_reach: bool = False
) -> list[dict[str, Any]]:
    """Return the rows of one dimension."""
    grouped: dict[K, list[int]] = {}
    for event in events:
        grouped.setdefault(key_of(event), []).append(event.token)
    rows = []
    for key, tokens in sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0] or "")):
        row: dict[str, Any] = {name: key, "events": len(tokens)}
        rows.append({**row, "estimated_reach": len(set(tokens))} if has_reach else row)
    return rows


def assert_reconciles(report: dict[str, Any]) -> None:
    """Check every sum that the contract names."""
    events, reach = report["events"], report["estimated_reach"]
    for dimension in ("by_day", "by_receiver", "by_campaign", "by_xr_code", "by_country"):
        assert sum(row["events"] for row in report[dimension]) == events, dimension
        assert all(row["events"] > 0 for row in report[dimension]), dimension
        assert all(0 < row.get("estimated_reach", 1) <= row["events"] for row in report[dimension]), dimension
    assert sum(row["tokens"] for row in report["by_frequency"]) == reach
    assert sum(row["frequency"] * row["tokens"] for row in report["by_frequency"]) == events
    assert report["average_frequency"] == (round(events / reach, 4) if reach else 0)
    signals = report["integrity_signals"]
    for name in ("event_replays", "code_token_duplicates", "proof_replays"):
        assert sum(day[name] for day in signals["by_day"]) == signals[name], name


def cells(content: bytes) -> list[tuple[str, ...]]:
    """Return the rows of a CSV after checking its header."""
    rows = [tuple(row) for row in csv.reader(io.StringIO(content.decode(), newline=""))]
    assert rows[0] == ("dimension", "key", "metric", "value")
    return rows[1:]

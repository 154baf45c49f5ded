"""True answers of the API for exports, drawn by hypothesis, and every place in them."""

import copy
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from soundmark.console.exports.report_request import ReportRequest
from soundmark.kit.text.timestamps import parse_timestamp
from support.audience.recorded_events import RecordedEvent, expected_report
from support.audience.report_events import CAMPAIGN_OF, CAMPAIGNS, XR

Place = tuple[str | int, ...]

NOW = datetime(2026, 11, 23, 18, 30, tzinfo=UTC)
INTEGRATION = {"id": "int_c3R1ZGlvLW1lYXN1cmVtZW50", "mode": "contract", "retention_days": 6}
ORGANIZATION, PROJECT = "org_b2xkLXJhZGlvLWV4YW1wbA", "prj_bW9ybmluZy1zaG93LWV4YW"
RECEIVERS = ("phone", "kiosk", "vehicle")

_events = st.builds(
    lambda hours, token, xr_id, receiver_class, country: RecordedEvent(
        NOW - timedelta(hours=hours), token, xr_id, CAMPAIGN_OF[xr_id], receiver_class, country
    ),
    hours=st.integers(1, 60),
    token=st.integers(1, 6),
    xr_id=st.sampled_from(XR),
    receiver_class=st.sampled_from(RECEIVERS),
    country=st.sampled_from(["TN", "FR", None]),
)
_integrity: st.SearchStrategy[dict[date, tuple[int, int, int]]] = st.dictionaries(
    st.integers(0, 3).map(lambda days: NOW.date() - timedelta(days=days)),
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)),
    max_size=3,
)
queries: st.SearchStrategy[dict[str, str]] = st.fixed_dictionaries(
    {},
    optional={
        "campaign_id": st.sampled_from(CAMPAIGNS),
        "xr_id": st.sampled_from(XR),
        "from": st.just("2026-11-22T04:00:00.000Z"),
        "to": st.just("2026-11-23T12:00:00.000Z"),
    },
)


@st.composite
def true_reports(draw: st.DrawFn, *, events_min: int = 0) -> tuple[dict[str, str], dict[str, Any]]:
    """Draw a query and the report that answers it, by the model that also judges Audience."""
    events = draw(st.lists(_events, min_size=events_min, max_size=12))
    query = draw(queries) if not events_min else {}
    return query, expected_report(INTEGRATION, events, query, integrity=draw(_integrity), now=NOW)


def make_report() -> dict[str, Any]:
    """Return the report of five events of four tokens on two days, in which every dimension has several rows."""
    day = timedelta(days=1)
    events = [
        RecordedEvent(NOW - day, 1, XR[0], CAMPAIGNS[0], "phone", "TN"),
        RecordedEvent(NOW - day, 2, XR[0], CAMPAIGNS[0], "phone", "FR"),
        RecordedEvent(NOW - day / 12, 1, XR[2], CAMPAIGNS[1], "kiosk", "TN"),
        RecordedEvent(NOW - day / 12, 3, XR[3], None, "phone", None),
        RecordedEvent(NOW - day / 12, 4, XR[3], None, "phone", "TN"),
    ]
    integrity = {NOW.date(): (3, 2, 1), NOW.date() - day: (1, 0, 0)}
    return expected_report(INTEGRATION, events, {}, integrity=integrity, now=NOW)


def make_request(query: dict[str, str]) -> ReportRequest:
    """Return the request that the query makes."""
    moments = {f"{name}_at": parse_timestamp(query[name]) for name in ("from", "to") if name in query}
    return ReportRequest(
        organization_id=ORGANIZATION,
        project_id=PROJECT,
        integration_id=str(INTEGRATION["id"]),
        campaign_id=query.get("campaign_id"),
        xr_id=query.get("xr_id"),
        from_at=moments.get("from_at"),
        to_at=moments.get("to_at"),
    )


def list_places(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every value of a document with its place, the document itself first."""
    yield place, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from list_places(child, (*place, key))


def replace_value(document: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """Return a copy of a document with another value at one place."""
    changed = copy.deepcopy(document)
    _find_parent(changed, place)[place[-1]] = value
    return changed


def remove_value(document: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a copy of a document without the value at one place."""
    changed = copy.deepcopy(document)
    del _find_parent(changed, place)[place[-1]]
    return changed


def name_place(name: str, place: Place) -> str:
    """Return a place as a refusal names it."""
    return name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)


def _find_parent(document: Any, place: Place) -> Any:
    for part in place[:-1]:
        document = document[part]
    return document

"""The dashboards beside this file, one for each component, from one list.

After a change, run `python3 deploy/grafana/dashboards.py`. It needs no package.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
WIDTH, HEIGHT = 12, 8  # Of a panel; a row of a dashboard has 24 columns.


@dataclass(frozen=True)
class Panel:
    """A graph: what it shows, in which unit of Grafana, and one expression for each legend."""

    title: str
    unit: str
    lines: dict[str, str]


def rate_by(metric: str, label: str) -> dict[str, str]:
    """Return one line for each value of a counter's label, in events per second."""
    legend = " ".join(f"{{{{{name}}}}}" for name in label.split(", "))
    return {legend: f'sum by ({label}) (rate({metric}{{job="$job"}}[$__rate_interval]))'}


def quantiles(metric: str) -> dict[str, str]:
    """Return the median and the 99th percentile of a histogram."""
    buckets = f'sum by (le) (rate({metric}_bucket{{job="$job"}}[$__rate_interval]))'
    return {name: f"histogram_quantile({share}, {buckets})" for name, share in (("median", 0.5), ("99th", 0.99))}


def shared(metric: str, by: str = "") -> dict[str, str]:
    """Return what every process reports alike: the largest, never a sum."""
    return {f"{{{{{by}}}}}" if by else "": f'max{f" by ({by})" if by else ""} ({metric}{{job="$job"}})'}


COMMON = (
    Panel("Processes that answer", "short", {"up": 'sum(up{job="$job"})', "configured": 'count(up{job="$job"})'}),
    Panel("Connections ended by a limit", "cps", rate_by("soundmark_connections_ended_total", "limit")),
)
PROXIES = Panel(
    "Requests without a readable client address", "reqps", rate_by("soundmark_forwarded_unreadable_total", "instance")
)
DASHBOARDS: dict[str, tuple[Panel, ...]] = {
    "core": (
        Panel("Resolutions", "reqps", rate_by("soundmark_resolutions_total", "outcome")),
        Panel("Tokens in one query", "short", quantiles("soundmark_resolve_batch_size")),
        Panel("Codes and keys that do not verify", "short", shared("soundmark_integrity_failures_total", "reader")),
        Panel("Reports of abuse", "reqps", rate_by("soundmark_abuse_reports_total", "outcome")),
        Panel("Payment notifications", "reqps", rate_by("soundmark_payment_notifications_total", "provider, outcome")),
        Panel("Deliveries of the support desk", "reqps", rate_by("soundmark_desk_deliveries_total", "outcome")),
        Panel("Draft invoices", "short", shared("soundmark_draft_invoices", "status")),
        Panel("Oldest waiting draft invoice", "s", shared("soundmark_draft_invoices_oldest_seconds")),
        Panel(
            "Seconds from the database's clock",
            "s",
            {"{{instance}}": 'abs(soundmark_clock_offset_seconds{job="$job"})'},
        ),
        PROXIES,
        *COMMON,
    ),
    "work-core": (
        Panel("Attempts to deliver a webhook", "reqps", rate_by("soundmark_webhook_attempts_total", "outcome")),
        Panel("Undelivered webhooks", "short", shared("soundmark_webhook_deliveries_pending")),
        Panel("Oldest undelivered webhook", "s", shared("soundmark_webhook_oldest_pending_seconds")),
        Panel("Lateness of the next webhook", "s", shared("soundmark_webhook_overdue_seconds")),
        Panel("Entries that wait for the log", "short", shared("soundmark_log_waiting_entries")),
        Panel("Log stopped", "bool", shared("soundmark_log_stopped")),
        COMMON[0],
    ),
    "audience": (
        Panel("Events", "reqps", rate_by("soundmark_events_total", "outcome")),
        Panel("Events in one transaction", "short", quantiles("soundmark_events_group_size")),
        Panel("Duration of a transaction", "s", quantiles("soundmark_events_group_seconds")),
        PROXIES,
        *COMMON,
    ),
    "audio": (
        Panel("Renderings", "reqps", rate_by("soundmark_audio_renders_total", "outcome")),
        Panel("Duration of a rendering", "s", quantiles("soundmark_audio_render_seconds")),
        *COMMON,
    ),
    "console": (PROXIES, *COMMON),
}


def dashboard(component: str, panels: tuple[Panel, ...]) -> dict[str, Any]:
    """Return the dashboard of one component, as Grafana 9 and newer import it."""
    source = {"type": "prometheus", "uid": "${source}"}
    job = {"name": "job", "type": "constant", "hide": 2, "query": f"soundmark-{component}"}
    return {
        "uid": f"soundmark-{component}",
        "title": f"Soundmark: {component}",
        "tags": ["soundmark"],
        "schemaVersion": 37,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}, job]},
        "panels": [
            {
                "id": number + 1,
                "type": "timeseries",
                "title": panel.title,
                "datasource": source,
                "gridPos": {"x": number % 2 * WIDTH, "y": number // 2 * HEIGHT, "w": WIDTH, "h": HEIGHT},
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + index), "datasource": source, "expr": expression, "legendFormat": legend}
                    for index, (legend, expression) in enumerate(panel.lines.items())
                ],
            }
            for number, panel in enumerate(panels)
        ],
    }


def texts() -> dict[str, str]:
    """Return the text of each dashboard by its file's name."""
    return {
        f"{component}.json": json.dumps(dashboard(component, panels), indent=1) + "\n"
        for component, panels in DASHBOARDS.items()
    }


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")

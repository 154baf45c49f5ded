"""The alarms in deploy/prometheus: each one fires when it should, and only then, as Prometheus itself says."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import alarms_page
import pytest
import yaml
from support.deployment.commands import DEPLOY, ROOT

PROMETHEUS: Final = DEPLOY / "prometheus"
RULES: Final = PROMETHEUS / "rules.yaml"
RUN_MINUTES: Final = 90

# For each alarm: series, as promtool writes them, for which it fires, and for which it does not. `0+60x90` begins at 0
# and grows by 60 a minute.
NONE, SLOW, FAST = "0x90", "0+60x90", "0+6000x90"
Series = dict[str, str]


def share(metric: str, bad: str, good: str = 'outcome="other"') -> tuple[Series, Series]:
    return {f"{metric}{{{bad}}}": FAST, f"{metric}{{{good}}}": NONE}, {
        f"{metric}{{{bad}}}": NONE,
        f"{metric}{{{good}}}": FAST,
    }


def rate(series: str) -> tuple[Series, Series]:
    return {series: FAST}, {series: NONE}


def level(series: str, high: str, low: str) -> tuple[Series, Series]:
    return {series: high}, {series: low}


def slow_histogram(metric: str, bound: str) -> tuple[Series, Series]:
    bucket, count = f'{metric}_bucket{{le="{bound}"}}', f"{metric}_count"
    return {bucket: SLOW, count: FAST}, {bucket: FAST, count: FAST}


EVENTS, PAYMENTS = "soundmark_events_total", "soundmark_payment_notifications_total"
RENDERS: Final = 'soundmark_audio_render_seconds_bucket{le="%s"}'
CASES: Final[dict[str, tuple[Series, Series]]] = {
    "SoundmarkProcessDown": level('up{job="soundmark-core"}', "0x90", "1x90"),
    "SoundmarkIntegrityFailure": level('soundmark_integrity_failures_total{reader="tenant"}', "1x90", "0x90"),
    "SoundmarkResolutionsFail": rate('soundmark_resolutions_total{outcome="failed"}'),
    "SoundmarkClockWrong": level("soundmark_clock_offset_seconds", "-1.5x90", "0.9x90"),
    "SoundmarkLookupsQueue": slow_histogram("soundmark_resolve_batch_size", "128.0"),
    "SoundmarkReceiversRateLimited": share("soundmark_resolutions_total", 'outcome="rate_limited"'),
    "SoundmarkCodesUnavailable": share("soundmark_resolutions_total", 'outcome="code_unavailable"'),
    "SoundmarkAbuseReported": rate('soundmark_abuse_reports_total{outcome="stored"}'),
    "SoundmarkForwardedUnreadable": rate("soundmark_forwarded_unreadable_total"),
    "SoundmarkConnectionsEnded": level('soundmark_connections_ended_total{limit="slow_request"}', FAST, "0+30x90"),
    "SoundmarkDeskDeliveriesUnauthenticated": share("soundmark_desk_deliveries_total", 'outcome="unauthenticated"'),
    "SoundmarkPaymentProviderUnavailable": rate(f'{PAYMENTS}{{provider="card", outcome="unavailable"}}'),
    "SoundmarkCardNotificationsUnauthenticated": share(
        PAYMENTS, 'provider="card", outcome="unauthenticated"', 'provider="card", outcome="processed"'
    ),
    "SoundmarkLocalNotificationsRefused": rate(f'{PAYMENTS}{{provider="local", outcome="unknown"}}'),
    "SoundmarkDraftInvoicesFailed": level('soundmark_draft_invoices{status="failed"}', "1x90", "0x90"),
    "SoundmarkDraftInvoicesLate": level("soundmark_draft_invoices_oldest_seconds", "3601x90", "3599x90"),
    "SoundmarkLogStopped": level("soundmark_log_stopped", "1x90", "0x90"),
    "SoundmarkLogWaiting": level("soundmark_log_waiting_entries", "1x90", "0x90"),
    "SoundmarkWebhooksOverdue": level("soundmark_webhook_overdue_seconds", "31x90", "29x90"),
    "SoundmarkWebhookBacklogGrows": level("soundmark_webhook_deliveries_pending", "0+2x90", "0+1x90"),
    "SoundmarkWebhookDeliveriesOld": level("soundmark_webhook_oldest_pending_seconds", "108001x90", "107999x90"),
    "SoundmarkWebhookAttemptsFail": share("soundmark_webhook_attempts_total", 'outcome="retried"'),
    "SoundmarkEventsNotStored": rate(f'{EVENTS}{{outcome="database_unavailable"}}'),
    "SoundmarkEventsQueue": slow_histogram("soundmark_events_group_size", "128.0"),
    "SoundmarkEventsSlow": slow_histogram("soundmark_events_group_seconds", "0.25"),
    "SoundmarkEventsUnauthenticated": share(EVENTS, 'outcome="unauthenticated"'),
    "SoundmarkEventProofsInvalid": share(EVENTS, 'outcome="proof_invalid"'),
    "SoundmarkRendersFail": rate('soundmark_audio_renders_total{outcome="failed"}'),
    "SoundmarkRendersSlow": (
        {RENDERS % "0.05": NONE, RENDERS % "0.1": FAST, RENDERS % "+Inf": FAST},
        {RENDERS % "0.05": FAST, RENDERS % "0.1": FAST, RENDERS % "+Inf": FAST},
    ),
}


def read_rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def promtool(*arguments: str) -> None:
    done = subprocess.run(["promtool", *arguments], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def labels_that_remain(rule: dict[str, Any], series: Series) -> dict[str, str]:
    """Return the labels of the alarm: those of the first series that its expression keeps, and its own."""
    given = dict(re.findall(r'(\w+)="([^"]*)"', next(iter(series))))
    expression = rule["expr"]
    if by := re.search(r"by \(([^)]*)\)", expression):
        kept: Iterable[str] = set(by[1].split(", ")) - {"le"}
    else:
        kept = () if re.match(r"(max|min)\(", expression) else given
    return {name: value for name, value in given.items() if name in kept} | rule["labels"]


def promtool_test(rule: dict[str, Any], rules: Path) -> dict[str, Any]:
    """Return a test of one alarm, in the file `rules`: with the others in it, it would take ten times as long."""
    firing, quiet = CASES[rule["alert"]]
    alarm = {"exp_labels": labels_that_remain(rule, firing), "exp_annotations": rule["annotations"]}
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"eval_time": f"{RUN_MINUTES}m", "alertname": rule["alert"], "exp_alerts": alarms}],
        }
        for series, alarms in ((firing, [alarm]), (quiet, []))
    ]
    return {"rule_files": [str(rules)], "evaluation_interval": "5m", "tests": tests}


def test_each_alarm_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    rules = read_rules()
    assert {rule["alert"] for rule in rules} == set(CASES)
    for rule in rules:
        alone = tmp_path / f"{rule['alert']}.yaml"
        write(alone, {"groups": [{"name": "alone", "rules": [rule]}]})
        write(tmp_path / f"{rule['alert']}.test.yaml", promtool_test(rule, alone))
    promtool("check", "rules", str(RULES))
    promtool("test", "rules", *(str(path) for path in sorted(tmp_path.glob("*.test.yaml"))))


def write(path: Path, content: Any) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=10_000), "utf-8")


def test_prometheus_accepts_what_to_scrape() -> None:
    promtool("check", "config", str(PROMETHEUS / "prometheus.yaml"))


def test_every_label_of_an_alarm_is_one_that_the_code_sets() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src" / "soundmark").rglob("*.py"))
    for rule in read_rules():
        for name, values in re.findall(r'(\w+)=~?"([^"]*)"', rule["expr"]):
            if name not in {"job", "le"}:
                unknown = [value for value in values.split("|") if f'"{value}"' not in source]
                assert not unknown, rule["alert"]


def test_what_every_process_reports_alike_is_never_added_up() -> None:
    shared = "soundmark_draft_invoices|soundmark_webhook_(?:deliveries|oldest|overdue)"
    files = [RULES, *(DEPLOY / "grafana").glob("*.json")]
    assert not [
        file.name for file in files if re.search(rf"sum(?: by \([^)]*\))? ?\(({shared})", file.read_text("utf-8"))
    ]


def test_the_page_of_alarms_is_printed_from_the_rules() -> None:
    page = alarms_page.PAGE.read_text("utf-8")
    if page != alarms_page.printed(page):
        pytest.fail(alarms_page.RENEW)

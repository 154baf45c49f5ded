"""The dashboards in deploy/grafana: printed from the list, and Prometheus understands every expression."""

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml
from support.deployment.commands import DEPLOY

FOLDER: Final = DEPLOY / "grafana"
# Without what the name of a histogram's series ends with.
METRIC: Final = re.compile(r"(?:soundmark_\w+?|\bup)(?=(?:_bucket|_count)?\b(?!\w))")
GRAFANA: Final = {"$__rate_interval": "1m", '"$job"': '"a-job"'}


def load_generator() -> Any:
    spec = importlib.util.spec_from_file_location("dashboards", FOLDER / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_dashboards() -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}


def expressions(dashboard: Any) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_the_dashboards_are_printed_from_the_list() -> None:
    printed = load_generator().texts()
    assert {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")} == printed, (
        "if the list was changed on purpose, run deploy/grafana/dashboards.py and review the diff"
    )


def test_a_dashboard_stands_for_each_job_that_prometheus_scrapes() -> None:
    scraped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8"))["scrape_configs"]
    assert {f"soundmark-{name}" for name in read_dashboards()} == {job["job_name"] for job in scraped}


def test_prometheus_understands_every_expression(tmp_path: Path) -> None:
    rules = []
    for name, dashboard in read_dashboards().items():
        for number, expression in enumerate(expressions(dashboard)):
            for variable, value in GRAFANA.items():
                expression = expression.replace(variable, value)  # noqa: PLW2901 - as Grafana does it
            assert "$" not in expression
            rules.append({"record": f"{name.replace('-', '_')}:{number}", "expr": expression})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}), "utf-8")
    done = subprocess.run(
        ["promtool", "check", "rules", str(file)], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_panels_do_not_overlap() -> None:
    for name, dashboard in read_dashboards().items():
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
        assert len(set(places)) == len(places), name
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


def test_every_metric_of_the_alarms_is_on_a_dashboard() -> None:
    """Whoever is called by an alarm wants to see it."""
    groups = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))["groups"]
    watched = {name for group in groups for rule in group["rules"] for name in METRIC.findall(rule["expr"])}
    shown = {
        name
        for it in read_dashboards().values()
        for expression in expressions(it)
        for name in METRIC.findall(expression)
    }
    assert watched == shown

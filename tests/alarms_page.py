"""The table of docs/operating/alarms.md, generated from the alarms; the prose around it is written by hand.

After a change of deploy/prometheus/rules.yaml: `.venv/bin/python tests/alarms_page.py`, then read the diff.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "operating" / "alarms.md"
RENEW: Final = "if a rule was changed on purpose, run `.venv/bin/python tests/alarms_page.py` and review the diff"
_BEGIN, _END = "<!-- begin: alarms -->\n", "<!-- end: alarms -->\n"


def printed(page: str) -> str:
    """Return `page` with its table as the alarms are now."""
    groups = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yaml").read_text("utf-8"))["groups"]
    table = "".join(line for group in groups for rule in group["rules"] for line in _row(rule))
    head = "| alarm | metric | severity | meaning | what to do |\n| --- | --- | --- | --- | --- |\n"
    page, count = re.subn(f"{_BEGIN}.*?{_END}", lambda _: _BEGIN + head + table + _END, page, flags=re.DOTALL)
    assert count == 1, "the page has one place for the table"
    return page


def _row(rule: dict[str, Any]) -> Iterator[str]:
    metrics = dict.fromkeys(re.findall(r"(?:soundmark_\w+?|\bup)(?=(?:_bucket|_count)?\b(?!\w))", rule["expr"]))
    named = ", ".join(f"`{metric}`" for metric in metrics)
    summary, action = (rule["annotations"][name].strip() for name in ("summary", "action"))
    yield f"| {rule['alert']} | {named} | {rule['labels']['severity']} | {summary} | {action} |\n"


if __name__ == "__main__":
    PAGE.write_text(printed(PAGE.read_text("utf-8")), "utf-8")

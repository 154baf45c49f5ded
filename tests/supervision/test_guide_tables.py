"""The tables in the guides name everything that there is, and nothing else."""

import re
from typing import Any, Final, get_args

from soundmark_sdk import ArchiveFailure, CertificateFailure, DeliveryReason, Reason
from soundmark_sdk.failures import RETRYABLE_DELIVERY_REASONS, RETRYABLE_REASONS
from soundmark_sdk.measuring import RECEIVER_CLASSES, Obstacle
from soundmark_sdk.publisher import configuration
from support.processes.guide_blocks import ROOT

from soundmark.cli.leaving import ADVICE
from soundmark.core.domain.webhooks.delivery import RETRY_AFTER
from soundmark.core.domain.webhooks.event import EVENT_TYPES
from soundmark.studio.play.journal import Journal


def read(name: str) -> str:
    return (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")


LEAVING: Final = read("leaving")
MEASURING: Final = read("measuring")
WEBHOOKS: Final = read("webhooks")


def rows(page: str, pattern: str) -> list[Any]:
    return re.findall(pattern, page, re.MULTILINE)


def list_names(heading: str) -> list[str]:
    """Return the names in the first column of the table in a section of the guide on leaving."""
    section = LEAVING[LEAVING.index(f"\n## {heading}\n") :].partition("\n## ")[2]
    return rows(section.partition("\n## ")[0], r"^\| `(\w+)` \| \S.*\|$")


def test_leaving_names_every_failure() -> None:
    assert list_names("Check what you took") == list(get_args(ArchiveFailure))
    assert list_names("Check the proof") == list(get_args(CertificateFailure))
    assert list_names("See what would be deleted") == list(ADVICE)


def test_receiving_names_every_failure() -> None:
    named = rows(read("receiving"), r"^\| `(\w+)` \| (yes|no) \| \S.*\| \S.*\|$")
    assert named == [(reason, "yes" if reason in RETRYABLE_REASONS else "no") for reason in get_args(Reason)]


def test_measuring_names_every_outcome() -> None:
    deliveries = rows(MEASURING, r"^\| `(\w+)` \| (yes|no) \| \S.*\|$")
    reasons = get_args(DeliveryReason)
    assert deliveries == [(reason, "yes" if reason in RETRYABLE_DELIVERY_REASONS else "no") for reason in reasons]
    table = MEASURING[MEASURING.index("| `obstacle` |") : MEASURING.index("A receiver class that does not exist")]
    assert rows(table, r"^\| `(\w+)` \|")[1:] == list(get_args(Obstacle))


def test_measuring_names_every_class_and_setting() -> None:
    (classes,) = rows(MEASURING, r"^\| `receiver_class` \| (.*) \|$")
    assert set(re.findall(r"`(\w+)`", classes)) == RECEIVER_CLASSES
    needed = {configuration.URL, configuration.INTEGRATION_ID, configuration.HMAC_SECRET, configuration.REPORTING_KEY}
    settings = {*needed, configuration.WEB_ORIGINS}
    assert set(rows(MEASURING, r"^\| `(PUBLISHER_\w+)` \|")) == settings
    assert set(re.findall(r"\bPUBLISHER_\w+", MEASURING)) == settings


def test_webhooks_names_every_type_and_every_pause() -> None:
    cells = rows(WEBHOOKS, r"^\| (`[a-z_]+\.[^|]*) \|")
    named = [name for cell in cells for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", cell)]
    assert sorted(named) == sorted(EVENT_TYPES)
    assert len(rows(WEBHOOKS, r"^\| \d \|")) == len(RETRY_AFTER) + 1


def test_venue_names_every_metric() -> None:
    metrics = Journal(lambda _: None).registry.collect()
    known = {metric.name + ("_total" if metric.type == "counter" else "") for metric in metrics}
    assert set(rows(read("venue"), r"^\| `(soundmark_play_\w+)` \|")) == known

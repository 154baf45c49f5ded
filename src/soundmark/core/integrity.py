"""What happens when a stored signature does not hold: nothing is answered, and somebody is told."""

from typing import Final, Literal, get_args

import structlog
from prometheus_client import Counter

Path = Literal["resolution", "tenant"]

_log: Final = structlog.get_logger()
_failures: Final = Counter(
    "soundmark_integrity_failures_total",
    "Stored Codes whose signature or facts did not verify; anything above zero means that the database was altered.",
    ["path"],
)
for _path in get_args(Path):
    _failures.labels(_path)  # Zero is a figure too: an alarm on a metric that is not there yet would be none.


def report_broken(path: Path, **identity: str | None) -> None:
    """Count and log one stored Code that does not verify. `identity` holds ids, never a token."""
    _failures.labels(path).inc()
    _log.error("stored_code_does_not_verify", path=path, **identity)

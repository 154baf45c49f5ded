"""What happens when a stored signature does not hold: nothing is answered, and somebody is told."""

from typing import Final

import structlog
from prometheus_client import Counter

_log: Final = structlog.get_logger()
_failures: Final = Counter(
    "soundmark_integrity_failures_total",
    "Stored Codes whose signature or facts did not verify; anything above zero means that the database was altered.",
    ["path"],
)


def report_broken(path: str, **identity: str | None) -> None:
    """Count and log one stored Code that does not verify. `identity` holds ids, never a token."""
    _failures.labels(path).inc()
    _log.error("stored_code_does_not_verify", path=path, **identity)

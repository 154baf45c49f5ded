"""Alarms about stored Codes and keys that do not verify. The caller must not return them."""

from typing import Final, Literal, get_args

import structlog
from prometheus_client import Counter

Reader = Literal["keyring", "resolution", "tenant"]

_log: Final = structlog.get_logger()
_failures: Final = Counter(
    "soundmark_integrity_failures_total",
    "Stored Codes and keys that did not verify; anything above zero means that the database was altered.",
    ["reader"],
)
for _reader in get_args(Reader):
    _failures.labels(_reader)  # Exported as zero from the start: an alarm cannot watch a metric that does not exist.


def report_broken(reader: Reader, **identity: str | None) -> None:
    """Count and log one stored Code that does not verify. `identity` holds ids, never a token."""
    _failures.labels(reader).inc()
    _log.error("stored_code_does_not_verify", reader=reader, **identity)


def report_foreign_key(key_id: str) -> None:
    """Count and log one stored signing key that Core did not make."""
    _failures.labels("keyring").inc()
    _log.error("stored_signing_key_is_not_ours", key_id=key_id)

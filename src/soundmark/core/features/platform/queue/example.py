"""The examples of a job that failed, and of the same job after a retry."""

from dataclasses import replace
from typing import Final

from soundmark.core.domain.platform.queued_job import QueuedJob
from soundmark.core.edge.examples import ISSUED_AT

FAILED: Final = QueuedJob(4711, "forget_mail_counts", "failed", 1, ISSUED_AT, None)
RETRIED: Final = replace(FAILED, state="retrying", failed_at=None)

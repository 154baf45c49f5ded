"""The job that reads the release evidence."""

import asyncio
from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.platform.release import EvidenceFinding, EvidenceRefused, StoredReadiness, write_evidence
from soundmark.core.features.platform.release.evidence_file import read_evidence_file
from soundmark.core.store.platform import release_readiness
from soundmark.kit.postgres.jobs import add_periodic

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` read the evidence every five minutes; the worker reads it at start too."""
    add_periodic(app, ctx, "read_release_evidence", "*/5 * * * *", read_evidence)


async def read_evidence(ctx: Context) -> EvidenceFinding | None:
    """Read the evidence file and store what was found; return the finding, None for usable evidence.

    What was found before is replaced, also by a finding: old evidence says nothing about a file that is broken now.

    Raises: DatabaseUnavailable.
    Source: contract, section 7, release readiness.
    """
    evidence: str | None = None
    finding: EvidenceFinding | None = None
    try:
        evidence = write_evidence(await asyncio.to_thread(read_evidence_file, ctx.release_evidence_path))
    except EvidenceRefused as refused:
        finding = refused.finding
    async with ctx.db.transaction() as tx:
        before = await release_readiness.lock(tx)
        await release_readiness.insert_or_update(tx, evidence=evidence, finding=finding, now=ctx.clock.now())
    _report(before, finding)
    return finding


def _report(before: StoredReadiness | None, finding: EvidenceFinding | None) -> None:
    """Log a finding once, not at every reading. Without a configured file, nothing is wrong."""
    finding_before = None if before is None else before.finding
    if finding in {finding_before, "not_configured"}:
        return
    if finding is None:
        _log.info("release_evidence_usable")
    else:
        _log.warning("release_evidence_unusable", finding=finding)

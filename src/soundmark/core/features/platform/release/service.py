"""Queries about the readiness of the SDK's release."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark.core.context import Context
from soundmark.core.domain.platform.release import EvidenceFinding, EvidenceRefused, ReleaseEvidence, parse_evidence
from soundmark.core.problems import ReleaseReadinessUnavailable
from soundmark.core.store.platform import release_readiness

Unavailability = EvidenceFinding | Literal["never_computed", "stale"]


@dataclass(frozen=True, slots=True)
class ReleaseReadiness:
    """Usable evidence, and when the worker read it."""

    computed_at: datetime
    evidence: ReleaseEvidence


async def read_readiness(ctx: Context) -> ReleaseReadiness:
    """Return the readiness of the release.

    Raises: ReleaseReadinessUnavailable if there is no usable evidence of the last ten minutes.
    Source: API v1, "Platform settings", release readiness; contract, section 7.
    """
    readiness = await judge_readiness(ctx)
    if isinstance(readiness, str):
        raise ReleaseReadinessUnavailable
    return readiness


async def judge_readiness(ctx: Context) -> ReleaseReadiness | Unavailability:
    """Return the readiness of the release or, for operators, why it is not known.

    Stored evidence is judged again, so that a row that somebody altered is not published.
    """
    async with ctx.db.snapshot() as tx:
        stored = await release_readiness.find(tx)
    if stored is None:
        return "never_computed"
    if stored.is_stale(ctx.clock.now()):
        return "stale"
    if stored.evidence is None:
        assert stored.finding is not None, "a CHECK requires the one or the other"
        return stored.finding
    try:
        return ReleaseReadiness(stored.computed_at, parse_evidence(stored.evidence.encode()))
    except EvidenceRefused as refused:
        return refused.finding

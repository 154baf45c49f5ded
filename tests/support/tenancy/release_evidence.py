"""Evidence of a release, as a pipeline writes it and as the worker stores it."""

import json
from datetime import datetime
from typing import Any, Final

from support.database.rival import Rival

GATES: Final = ("available", "store_uploaded", "android_acoustic", "ios_acoustic", "stable_channel_signed")
PREVIEW: Final = {"version": "0.3.0-preview.4", "revision": "9f2c41d7be03"}
STABLE: Final = {"version": "1.0.0", "revision": "0" * 40}


def make_evidence(**changes: Any) -> dict[str, Any]:
    """Return evidence of a preview with one gate closed and no stable release."""
    gates = {gate: gate != "ios_acoustic" for gate in GATES}
    return {"preview": PREVIEW, "gates": gates, "stable": None, **changes}


async def insert_evidence(rival: Rival, computed_at: datetime, evidence: str | None = None) -> None:
    await rival.run(
        "INSERT INTO release_readiness (computed_at, evidence) VALUES (%s, %s)"
        " ON CONFLICT (is_only) DO UPDATE SET computed_at = excluded.computed_at, evidence = excluded.evidence,"
        " finding = NULL",
        computed_at,
        json.dumps(make_evidence()) if evidence is None else evidence,
    )

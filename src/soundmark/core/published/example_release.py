"""The example of release readiness."""

from datetime import datetime
from typing import Any

from soundmark.core.domain.platform.release import ReleaseEvidence, ReleaseGates, SdkRelease
from soundmark.core.features.platform.release.service import ReleaseReadiness
from soundmark.core.features.platform.release.wire import readiness_view


def example_release(computed_at: datetime) -> dict[str, Any]:
    """Return the response of the operation on release readiness, by operation id."""
    evidence = ReleaseEvidence(
        preview=SdkRelease("0.3.0-preview.4", "9f2c41d7be03"),
        gates=ReleaseGates(
            available=True, store_uploaded=True, android_acoustic=True, ios_acoustic=False, stable_channel_signed=False
        ),
        stable=None,
    )
    return {"get_release_readiness": readiness_view(ReleaseReadiness(computed_at, evidence))}

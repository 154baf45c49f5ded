"""The example of release readiness."""

from typing import Final

from soundmark.core.domain.platform.release import ReleaseEvidence, ReleaseGates, SdkRelease
from soundmark.core.edge.examples import LATER
from soundmark.core.features.platform.release.service import ReleaseReadiness
from soundmark.core.features.platform.release.wire import readiness_view

READINESS: Final = readiness_view(
    ReleaseReadiness(
        LATER,
        ReleaseEvidence(
            preview=SdkRelease("0.3.0-preview.4", "9f2c41d7be03"),
            gates=ReleaseGates(
                available=True,
                store_uploaded=True,
                android_acoustic=True,
                ios_acoustic=False,
                stable_channel_signed=False,
            ),
            stable=None,
        ),
    )
)

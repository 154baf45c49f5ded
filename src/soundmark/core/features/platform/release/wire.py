"""The response shape of release readiness."""

from dataclasses import asdict
from typing import Annotated

from pydantic import Field, StringConstraints

from soundmark.core.domain.platform.release import REVISION_PATTERN, VERSION_PATTERN, SdkRelease
from soundmark.core.features.platform.release.service import ReleaseReadiness
from soundmark.wire.shape import Timestamp, Wire

Version = Annotated[
    str, StringConstraints(pattern=VERSION_PATTERN), Field(description="A version of Semantic Versioning 2.0.0.")
]
Revision = Annotated[str, StringConstraints(pattern=REVISION_PATTERN), Field(description="The commit of the release.")]


class SdkReleaseView(Wire):
    """A release of the SDK."""

    version: Version
    revision: Revision


class ReleaseGatesView(Wire):
    """The conditions for a stable release."""

    available: Annotated[bool, Field(description="The preview can be obtained.")]
    store_uploaded: Annotated[bool, Field(description="The preview was uploaded to the app stores.")]
    android_acoustic: Annotated[bool, Field(description="An Android device heard a Code through the air.")]
    ios_acoustic: Annotated[bool, Field(description="An iOS device heard a Code through the air.")]
    stable_channel_signed: Annotated[bool, Field(description="The stable channel is signed.")]


class ReleaseReadinessView(Wire):
    """The release status of the SDK. `stable` is null until the SDK has a stable release."""

    computed_at: Timestamp
    preview: SdkReleaseView
    gates: ReleaseGatesView
    stable: SdkReleaseView | None


def readiness_view(readiness: ReleaseReadiness) -> ReleaseReadinessView:
    """Return the view of a release's readiness."""
    evidence = readiness.evidence
    return ReleaseReadinessView(
        computed_at=readiness.computed_at,
        preview=_release_view(evidence.preview),
        gates=ReleaseGatesView(**asdict(evidence.gates)),
        stable=None if evidence.stable is None else _release_view(evidence.stable),
    )


def _release_view(release: SdkRelease) -> SdkReleaseView:
    return SdkReleaseView(version=release.version, revision=release.revision)

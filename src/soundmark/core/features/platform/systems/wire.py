"""The response of a test."""

from typing import Annotated

from pydantic import Field

from soundmark.core.domain.platform.system_test import SystemName, SystemTest, SystemTestCode
from soundmark.wire.shape import Timestamp, Wire


class SystemTestView(Wire):
    """What a test of a system found."""

    system: SystemName
    ok: Annotated[bool, Field(description="Whether the system works with the settings.")]
    code: Annotated[SystemTestCode, Field(description="What the test found.")]
    reason: Annotated[str, Field(description="The same in words, without any text of the system's response.")]
    checked_at: Timestamp


def system_test_view(tested: SystemTest) -> SystemTestView:
    """Return the view of a test."""
    return SystemTestView(
        system=tested.system,
        ok=tested.is_passed,
        code=tested.code,
        reason=tested.reason,
        checked_at=tested.checked_at,
    )

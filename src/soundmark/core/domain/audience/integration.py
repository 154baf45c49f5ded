"""Core's view of measurement: integrations, their secrets, and entitlements."""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from soundmark.kit.crypto.secret import Secret
from soundmark.wire.private.integrations import EntitlementTerms, IntegrationResponse
from soundmark.wire.shape import EntitledMode

_INTEGRATION_ID: Final = re.compile(r"int_[A-Za-z0-9_-]{8,128}", re.ASCII)


def may_be_integration_id(text: str) -> bool:
    """Return whether this can be an integration's id. For any other text, Audience need not be called."""
    return _INTEGRATION_ID.fullmatch(text) is not None


def derive_integration_id(intent_id: str) -> str:
    """Return the id of the integration that is created under an audit intent.

    It is known before Audience is called, so that the integration's cell is stored before any event can arrive.
    """
    return "int_" + intent_id.removeprefix("aud_")


@dataclass(frozen=True, slots=True)
class Target:
    """The integration that a caller names, by its project and its id."""

    project_id: str
    integration_id: str


@dataclass(frozen=True, slots=True)
class Entitlement:
    """The number of events that an organisation may measure in a mode each month, until `ends_at` if that is not None.

    `revision` grows with each change and orders the copies that Audience receives.
    """

    mode: EntitledMode
    monthly_event_quota: int
    ends_at: datetime | None
    revision: int

    def holds(self, now: datetime) -> bool:
        """Return whether the entitlement is still active at `now`."""
        return self.ends_at is None or now < self.ends_at

    def ended(self, now: datetime) -> "Entitlement":
        """Return the entitlement as one that has ended by `now`."""
        return replace(self, ends_at=now) if self.holds(now) else self

    def terms(self) -> EntitlementTerms:
        """Return the terms that are sent to Audience."""
        return EntitlementTerms(
            monthly_event_quota=self.monthly_event_quota, ends_at=self.ends_at, revision=self.revision
        )


@dataclass(frozen=True, slots=True)
class Suspension:
    """Whether an organisation is suspended. `revision` orders the copies that Audience receives."""

    is_suspended: bool
    revision: int


@dataclass(frozen=True, slots=True)
class DescribedIntegration:
    """An integration with what Core knows of it: its name, None if it has none."""

    integration: IntegrationResponse
    name: str | None


@dataclass(frozen=True, slots=True)
class IntegrationSecret:
    """An integration and its new HMAC secret, which is revealed once."""

    integration: DescribedIntegration
    hmac_secret: Secret = field(repr=False)

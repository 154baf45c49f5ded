"""Endpoints, to which an organisation has its events sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

DisabledReason = Literal["gone", "failing"]

ENDPOINT_PREFIX: Final = "whe_"
ENDPOINTS_MAX: Final = 20  # Contract, section 9: of one organisation.
URL_MAX: Final = 2_048
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix that Standard Webhooks gives to secrets, not one of them
EARLIER_SECRET_FOR: Final = timedelta(hours=24)  # How long a replaced secret signs beside the new one.


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint.

    It gets the events of its project, or those of every project and of the organisation itself if `project_id` is None.
    `event_types` are the types that it gets, None for all. `disabled_reason` is why the service disabled it, None if a
    person did.
    """

    organization_id: str
    id: str
    project_id: str | None
    url: str
    event_types: Sequence[str] | None
    description: str | None
    enabled: bool
    disabled_reason: DisabledReason | None
    created_at: datetime

    def matches(self, event_type: str, project_id: str | None) -> bool:
        """Return whether it gets an event of this type and project; `store.webhooks` has the same rule in SQL."""
        is_of_project = self.project_id is None or self.project_id == project_id
        return is_of_project and (self.event_types is None or event_type in self.event_types)

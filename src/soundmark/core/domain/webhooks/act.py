"""Acts: what a transaction did that endpoints are to hear of, before it is turned into events."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soundmark.core.domain.tenancy.scope import ActorType

ACT_PREFIX: Final = "act_"
# The Codes of a large act are spread over several rows, so that each is turned into events in a short transaction.
ACT_CODES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Act:
    """An act, which becomes one event with `data`, or one for each of the Codes `xr_ids`."""

    organization_id: str
    id: str
    project_id: str | None
    type: str
    actor_type: ActorType
    actor_id: str
    data: str
    xr_ids: tuple[str, ...] | None
    created_at: datetime

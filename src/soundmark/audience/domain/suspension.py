"""Whether the platform has suspended an organisation."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suspension:
    """An organisation's suspension or restoration, as Core last sent it. A smaller `revision` is an older one."""

    organization_id: str
    is_suspended: bool
    revision: int

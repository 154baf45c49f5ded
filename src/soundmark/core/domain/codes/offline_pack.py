"""The record of an offline pack, which is all of it that Core keeps."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PackRecord:
    """An offline pack without its Codes. If `campaign_id` is None, it is for the whole project."""

    id: str
    project_id: str
    campaign_id: str | None
    issued_at: datetime
    valid_until: datetime

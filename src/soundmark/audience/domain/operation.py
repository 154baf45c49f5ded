"""What Core has done, once, however often it asks."""

from dataclasses import dataclass
from typing import Literal

from soundmark.audience.domain.integration import Workspace

OperationAction = Literal["create", "revoke", "rotate_secret", "change_retention", "replace_core_key"]


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation as it is asked for; `integration_id` None where it makes one."""

    id: str
    action: OperationAction
    workspace: Workspace
    integration_id: str | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that was done. `answer` is the JSON text of what was answered, without any secret."""

    id: str
    organization_id: str
    project_id: str
    integration_id: str
    action: OperationAction
    answer: str
